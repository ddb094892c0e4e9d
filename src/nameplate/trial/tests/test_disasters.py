"""What is left on disk when the worst happens: the client killed at any moment, the disk full, the server gone."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.from_disk import load_evidence
from nameplate.measure.result import decode
from nameplate.sim.process import SimProcess, running
from nameplate.verify import verify

pytestmark = pytest.mark.live

KILLS = 6
TRIAL = ("--shape", "64/40", "-c", "6", "--requests", "60", "--warmup", "1", "--ordinary-scheduling")


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    with running("demo") as process:
        yield process


def start(url: str, out: Path, *extra: str) -> subprocess.Popen[bytes]:
    """Start a trial in a process group of its own."""
    command = [sys.executable, "-m", "nameplate", "trial", url, *TRIAL, *extra, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def await_load(out: Path, timeout_s: float = 30.0) -> Path:
    """Wait until a trial's first reads are on disk, and return its directory."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = list(out.glob(f"trials/*/{layout.READS}"))
        if found and found[0].stat().st_size:
            return found[0].parent
        time.sleep(0.02)
    raise AssertionError("no load began")


@pytest.mark.parametrize("moment", range(KILLS))
def test_kill_at_a_random_moment(server: SimProcess, tmp_path: Path, moment: int) -> None:
    """Killed at any moment of its load, a trial leaves whole rows and reads, and never looks complete."""
    process = start(server.url, tmp_path / "out")
    trial = await_load(tmp_path / "out")
    # The whole load takes about 1.5 s; its first second's reads have just been written.
    time.sleep(random.Random(moment).uniform(0.0, 0.4))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (trial / layout.MANIFEST).exists() or (trial / layout.RESULT).exists()
    evidence = load_evidence(trial)
    assert evidence.rows, "what was written is there"
    assert {row.outcome for row in evidence.rows} <= {"ok", "unfinished"}
    reader = TrialReader(trial)
    assert {row.index for row in reader.rows()} <= {row.index for row in evidence.rows}
    report = verify(trial)
    if not (trial / layout.MANIFEST).exists():
        assert report.exit_code == 3, report
    assert not [check for check in report.checks if check.status == "fail"], report


def test_orphaned_load_stops(server: SimProcess, tmp_path: Path) -> None:
    """When only the parent dies, its load process cancels what is in flight, writes what it holds, and ends."""
    process = start(server.url, tmp_path / "out", "--concurrency", "4")
    trial = await_load(tmp_path / "out")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _members(process.pid):
        time.sleep(0.05)
    assert not _members(process.pid), "a load process outlived its parent"
    outcomes = {row.outcome for row in TrialReader(trial).rows()}
    assert outcomes <= {"ok", "cancelled"}


def _members(group: int) -> list[int]:
    """List the processes of a group that are no zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def test_server_killed_in_the_middle(tmp_path: Path) -> None:
    """A server that dies under load is named as lost, and the trial's evidence says what became of each request."""
    with running("demo") as doomed:
        process = start(doomed.url, tmp_path / "out")
        trial = await_load(tmp_path / "out")
        os.kill(doomed.pid, signal.SIGKILL)
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 5, err.decode()
    assert b"lost" in err and b"Traceback" not in err
    rows = TrialReader(trial).rows()
    assert {row.outcome for row in rows} - {"ok"} <= {"reset", "connect_failed", "truncated", "cancelled"}
    assert any(row.outcome != "ok" for row in rows)
    assert decode((trial / layout.RESULT).read_bytes()).interrupted


def test_first_interrupt_drains_and_seals(server: SimProcess, tmp_path: Path) -> None:
    """One interrupt stops starting requests, awaits what is in flight, and seals a result marked as interrupted."""
    process = start(server.url, tmp_path / "out", "--requests", "400")
    trial = await_load(tmp_path / "out")
    os.killpg(process.pid, signal.SIGINT)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err.decode()
    assert {row.outcome for row in TrialReader(trial).rows()} == {"ok"}
    result = decode((trial / layout.RESULT).read_bytes())
    assert result.interrupted and result.facts.sent < 400
    assert verify(trial).exit_code in (0, 3)


def test_second_interrupt_cancels_and_seals(server: SimProcess, tmp_path: Path) -> None:
    """A second interrupt cancels what is in flight; the rows say so, and the trial is sealed."""
    process = start(server.url, tmp_path / "out", "--shape", "64/2000", "--requests", "400")
    trial = await_load(tmp_path / "out")
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err.decode()
    assert "cancelled" in {row.outcome for row in TrialReader(trial).rows()}
    assert (trial / layout.MANIFEST).exists()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Mount a disk of 96 MiB; skip where that is not allowed."""
    directory = Path(tempfile.mkdtemp())
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(directory)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        directory.rmdir()
        pytest.skip("mounting a small disk needs root")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=False)
        directory.rmdir()


def test_full_disk_ends_the_trial_clearly(server: SimProcess, small_disk: Path) -> None:
    """A disk that fills up under load ends the trial with a sentence that says so, and what was written is whole."""
    process = start(server.url, small_disk / "out", "--requests", "2000")
    trial = await_load(small_disk / "out")
    with (small_disk / "filler").open("wb") as filler:
        try:
            while True:
                filler.write(bytes(1 << 20))
                filler.flush()
        except OSError:
            pass
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err.decode()
    assert b"disk" in err and b"Traceback" not in err
    reader = TrialReader(trial)
    assert reader.rows()
    assert sum(1 for _record in reader.records())
    assert not reader.torn


def test_too_little_disk_is_refused_first(server: SimProcess, small_disk: Path) -> None:
    """A disk that is too full to begin with is refused before any load."""
    (small_disk / "filler").write_bytes(bytes(80 << 20))
    process = start(server.url, small_disk / "out")
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err.decode()
    assert b"MiB left" in err
    assert not list((small_disk / "out").glob(f"trials/*/{layout.READS}"))
