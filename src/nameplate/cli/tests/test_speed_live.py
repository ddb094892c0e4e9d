"""A live speed study at the worst moments: killed, interrupted once and twice, the disk full."""

from __future__ import annotations

import json
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

from nameplate.measure.speed_result import decode_speed
from nameplate.sim.process import SimProcess, running
from nameplate.verify import verify

pytestmark = pytest.mark.live

MATRIX = ("--contexts", "512", "-c", "1,2,3", "--window", "1s", "--stable", "1s", "--no-prefill",
          "--output", "256", "--ordinary-scheduling", "--quiet-terminal")  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    with running("demo") as process:
        yield process


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a study in a process group of its own."""
    command = [sys.executable, "-m", "nameplate", "speed", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def await_trial(out: Path, name: str, timeout_s: float = 60.0) -> Path:
    """Wait until a trial's first reads are on disk, and return its directory."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = [path for path in out.glob(f"trials/{name}/reads.zst") if path.stat().st_size]
        if found:
            return found[0].parent
        time.sleep(0.02)
    raise AssertionError("the trial never began")


def digests(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in out.glob("trials/*/manifest.json")}


@pytest.mark.parametrize("moment", [1, 2])
def test_killed_and_resumed(server: SimProcess, tmp_path: Path, moment: int) -> None:
    """Killed at any moment, a study goes on: sealed cells are not run again, and each has its status once."""
    out = tmp_path / "out"
    process = start(server.url, *MATRIX, "--out", str(out))
    await_trial(out, f"decode.512.c{moment}")
    time.sleep(random.Random(moment).uniform(0.0, 1.5))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not [check for check in verify(out).checks if check.status == "fail"]
    before = digests(out)
    again = start(server.url, "--resume", str(out), "--ordinary-scheduling", "--quiet-terminal", "--json")
    stdout, stderr = again.communicate(timeout=120)
    # A busy machine may void a cell; it then has that status.
    assert again.returncode in (0, 4), stderr.decode()
    assert {name: digests(out)[name] for name in before} == before
    result = decode_speed((out / "result.json").read_bytes())
    assert json.loads(stdout)["rows"] == json.loads((out / "result.json").read_text())["rows"]
    assert [(row.kind, row.concurrency) for row in result.rows] == [
        ("decode", 1),
        ("decode", 2),
        ("decode", 3),
    ]
    keys = [key for row in result.rows for key in row.trials]
    assert len(keys) == len(set(keys)) and set(before) - {"warmup.512"} <= set(keys)
    assert {row.status.value for row in result.rows} <= {"valid", "client_limited", "underfilled"}
    assert not [check for check in verify(out).checks if check.status == "fail"]


@pytest.mark.parametrize("interrupts", [1, 2])
def test_interrupted(server: SimProcess, tmp_path: Path, interrupts: int) -> None:
    """An interrupt ends the cell at once, seals it, and every cell has its status: exit 130."""
    out = tmp_path / "out"
    process = start(server.url, *MATRIX, "--window", "60s", "--out", str(out))
    await_trial(out, "decode.512.c1")
    for _ in range(interrupts):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    _stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert b"Traceback" not in stderr
    result = decode_speed((out / "result.json").read_bytes())
    assert [row.status.value for row in result.rows] == ["interrupted"] * 3
    assert all(row.values is None and row.reason for row in result.rows)
    assert not [check for check in verify(out).checks if check.status == "fail"]


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


def test_a_full_disk(server: SimProcess, small_disk: Path) -> None:
    """A disk that fills up ends the study with 4 and a sentence that says so; what was sealed before stands."""
    out = small_disk / "out"
    process = start(server.url, *MATRIX, "--window", "20s", "--out", str(out))
    await_trial(out, "decode.512.c1")
    with (small_disk / "filler").open("wb") as filler:
        try:
            while True:
                filler.write(bytes(1 << 20))
                filler.flush()
        except OSError:
            pass
    _stdout, stderr = process.communicate(timeout=90)
    assert process.returncode == 4, stderr.decode()
    assert b"disk" in stderr.lower() and b"Traceback" not in stderr and b"nameplate itself" not in stderr
    assert "warmup.512" in digests(out)
