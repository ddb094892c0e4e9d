"""A soak over real sockets: its client killed and gone on with, its server killed and back, its person in a hurry."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nameplate.cli.tests.soaks import record_of
from nameplate.evidence import layout
from nameplate.sim.process import SimProcess, running
from nameplate.verify import verify

pytestmark = pytest.mark.live

NAMEPLATE = (sys.executable, "-m", "nameplate")
LOAD = ("--shape", "64/8", "-c", "2", "--window", "1s", "--ordinary-scheduling")
WAIT_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    with running("demo") as process:
        yield process


def start(url: str, out: Path, *more: str) -> subprocess.Popen[bytes]:
    """Begin a soak in a session of its own."""
    return subprocess.Popen(
        [*NAMEPLATE, "soak", url, *LOAD, *more, "--out", str(out), "--quiet-terminal"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.05)


def rows_in(out: Path, key: str = "soak.s1") -> int:
    path = out / layout.TRIALS / key / layout.REQUESTS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rows_begun(out: Path) -> bool:
    path = out / layout.TRIALS / "soak.s1" / layout.JOURNAL
    return path.exists() and b"submit_began" in path.read_bytes()


def ended(process: subprocess.Popen[bytes]) -> int:
    _out, err = process.communicate(timeout=WAIT_S)
    assert b"Traceback" not in err
    return process.returncode


def holds(out: Path, code: int) -> bool:
    """Tell whether a soak held, or failed for nothing but a machine that others keep busy."""
    result = record_of(out).result
    assert result is not None
    late = all(reason.startswith("client_lateness") for reason in result.verdict.reasons)
    return code == 0 or (code == 4 and late)


def go_on(out: Path) -> int:
    return subprocess.run(
        [*NAMEPLATE, "soak", "--resume", str(out), "--quiet-terminal"],
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    ).returncode


def test_a_client_that_is_killed_goes_on(server: SimProcess, tmp_path: Path) -> None:
    """Every process of the soak is killed at once: what was left is submitted as a second segment, and all verifies."""
    out = tmp_path / "x"
    process = start(server.url, out, "--duration", "8s")
    wait_for(lambda: rows_in(out) > 30)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / layout.MANIFEST).exists()
    assert holds(out, go_on(out))
    record = record_of(out)
    first, second = record.segments
    assert (first.state, second.ended_by, record.left_ns) == ("killed", "duration", 0)
    assert abs(first.covered_ns + second.planned_ns - 8 * 10**9) < 10**9
    assert record.result is not None and record.result.gaps[0].length_s
    assert record.result.counts.unfinished == len(record.result.segments[0].unfinished) <= 4
    report = verify(out)
    assert report.exit_code == 0, [
        check for check in report.all_checks() if check.status in ("fail", "unverified")
    ]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def serve(port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "nameplate.sim", "demo", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None and process.stdout.readline()
    return process


def test_a_server_that_is_killed_and_started_again_is_told(tmp_path: Path) -> None:
    """Failures are named, recovery is measured, each life has its part, and all verifies."""
    out, port = tmp_path / "x", free_port()
    engine = serve(port)
    try:
        process = start(f"http://127.0.0.1:{port}", out, "--duration", "12s", "--max-error-rate", "100%")
        wait_for(lambda: rows_in(out) > 30)
        engine.kill()
        engine.wait()
        time.sleep(1.5)
        engine = serve(port)
        assert holds(out, ended(process))
    finally:
        engine.kill()
        engine.wait()
    result = record_of(out).result
    assert result is not None and result.counts.failed and len(result.parts) == 2
    (outage,) = result.segments[0].outages
    assert outage.restarted and outage.recovery_ns is not None and outage.recovery_ns > 10**9
    report = verify(out)
    assert report.exit_code == 0, [
        check for check in report.all_checks() if check.status in ("fail", "unverified")
    ]


def test_an_interrupt_drains_and_a_second_one_cancels(server: SimProcess, tmp_path: Path) -> None:
    """Either way the exit code is 130 and everything so far is sealed; what is left can be gone on with."""
    out = tmp_path / "x"
    process = start(server.url, out, "--duration", "7s")
    wait_for(lambda: rows_in(out) > 30)
    process.send_signal(signal.SIGINT)
    assert ended(process) == 130
    record = record_of(out)
    assert record.segments[0].ended_by == "interrupted" and record.left_ns > 0
    assert record.result is not None and record.result.counts.sent == record.result.counts.ok
    assert verify(out).exit_code == 0
    assert holds(out, go_on(out)) and record_of(out).left_ns == 0 and verify(out).exit_code == 0
    out = tmp_path / "y"
    process = start(server.url, out, "--duration", "1h", "--shape", "64/6000")
    wait_for(lambda: rows_begun(out))
    process.send_signal(signal.SIGINT)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert ended(process) == 130
    result = record_of(out).result
    assert result is not None and result.counts.cancelled == 2 == len(result.segments[0].unfinished)
    assert verify(out).exit_code == 0
