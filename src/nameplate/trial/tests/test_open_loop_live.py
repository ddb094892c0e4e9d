"""An open loop over real sockets, while the server or the client stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.measure.result import TrialResult, decode
from nameplate.schedule.stage import stages_of
from nameplate.sim.process import SimProcess, running
from nameplate.verdict.gate import Gate
from nameplate.verify import verify

pytestmark = pytest.mark.live

MS = 1_000_000
SECOND_NS = 10**9
RATE, REQUESTS = 50, 100
TRIAL = (
    "--shape",
    "64/4",
    "--rate",
    str(RATE),
    "--requests",
    str(REQUESTS),
    "--warmup",
    "1",
    "--slo",
    "ttft p95 < 5s",
)
# A machine that others share is late by itself: what is asked of sends here is far above that, and far below a stop.
PROMPT_NS = 100 * MS


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    with running("demo") as process:
        yield process


def start(url: str, out: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nameplate", "trial", url, *TRIAL, *more, "--ordinary-scheduling"]
    return subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def load_of(parent: int, timeout_s: float = 20.0) -> int:
    """Wait for the load process and return its id."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if b"nameplate.client.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.005)
    raise AssertionError("no load began")


def await_reads(out: Path, timeout_s: float = 20.0) -> None:
    """Wait until the first reads of the load are on disk, which is within a second of its begin."""
    until = time.monotonic() + timeout_s
    while not any(path.stat().st_size for path in out.glob(f"trials/*/{layout.READS}*")):
        assert time.monotonic() < until, "no load began"
        time.sleep(0.01)


def stand_still(pid: int, seconds: float) -> tuple[int, int]:
    """Stop a process and continue it; return when it was stopped and continued."""
    os.kill(pid, signal.SIGSTOP)
    stopped_ns = time.monotonic_ns()
    try:
        time.sleep(seconds)
    finally:
        continued_ns = time.monotonic_ns()
        os.kill(pid, signal.SIGCONT)
    return stopped_ns, continued_ns


def found(process: subprocess.Popen[bytes], out: Path) -> tuple[TrialResult, list[RequestRow]]:
    """Await the end; return the result and the measured rows in order. The plan was sent whole, each at its time."""
    said, errors = process.communicate(timeout=60)
    (directory,) = (out / "trials").iterdir()
    assert (directory / layout.RESULT).exists(), (said, errors)
    result = decode((directory / layout.RESULT).read_bytes())
    rows = sorted((row for row in TrialReader(directory).rows() if row.measured), key=lambda row: row.index)
    stage = stages_of(result.plan)[-1]
    assert [row.index - stage.first_index for row in rows] == list(range(REQUESTS))
    began = {(row.worker, row.scheduled_ns - (stage.schedule.due_ns(n) or 0)) for n, row in enumerate(rows)}
    assert len(began) == len({row.worker for row in rows})
    assert all(row.outcome == "ok" for row in rows)
    assert verify(directory).exit_code == 0
    return result, rows


def lag(row: RequestRow) -> int:
    assert row.sent_ns is not None
    return row.sent_ns - row.scheduled_ns


def wait(row: RequestRow) -> int:
    """Return the TTFT from schedule."""
    assert row.first_output_ns is not None
    return row.first_output_ns - row.scheduled_ns


def test_a_server_that_stands_still_stalls_no_arrival(server: SimProcess, tmp_path: Path) -> None:
    """While the server stands still for a second all arrivals are sent on time, and what waits shows as waiting."""
    out = tmp_path / "out"
    process = start(server.url, out, "--workers", "2")
    await_reads(out)
    stopped_ns, continued_ns = stand_still(server.pid, 1.0)
    result, rows = found(process, out)
    meanwhile = [row for row in rows if stopped_ns + 5 * MS < row.scheduled_ns < continued_ns - 5 * MS]
    assert len(meanwhile) > RATE // 3
    assert sorted(map(lag, meanwhile))[len(meanwhile) // 2] < 5 * MS
    assert max(map(lag, meanwhile)) < PROMPT_NS
    for row in meanwhile:
        assert row.first_output_ns is not None and row.first_output_ns > continued_ns
        assert wait(row) >= continued_ns - row.scheduled_ns
    assert max(map(wait, meanwhile)) > 0.8 * (continued_ns - stopped_ns)
    assert result.gate(Gate.arrivals).status == "pass", result.gate(Gate.arrivals).detail
    assert (result.measurement.concurrency.max or 0) >= len(meanwhile) // 2
    slo = result.verdict.slos[0]
    assert slo.whole.n == REQUESTS


def test_a_client_that_stands_still_is_no_server_that_does(server: SimProcess, tmp_path: Path) -> None:
    """While the load process stands still sends are late: the trial is client-limited, latency from schedule counts the
    delay, and what was due meanwhile is sent, all of it."""
    out = tmp_path / "out"
    process = start(server.url, out)
    load = load_of(process.pid)
    await_reads(out)
    stopped_ns, continued_ns = stand_still(load, 0.5)
    result, rows = found(process, out)
    meanwhile = [row for row in rows if stopped_ns + 5 * MS < row.scheduled_ns < continued_ns - 5 * MS]
    assert len(meanwhile) > RATE // 8
    for row in meanwhile:
        assert row.sent_ns is not None and row.sent_ns >= continued_ns
        assert wait(row) >= continued_ns - row.scheduled_ns
        assert row.ttft_ns is not None and row.ttft_ns < wait(row)
    assert result.verdict.status == "invalid"
    assert result.gate(Gate.client_lateness).status == "invalid"
    assert "client-limited" in result.gate(Gate.client_lateness).detail
    latencies = result.measurement.latencies.whole
    assert (latencies.ttft_from_schedule.max or 0) >= max(map(wait, meanwhile))


def test_several_workers_end_together_at_the_limit(server: SimProcess, tmp_path: Path) -> None:
    """Where one worker has too many unanswered, all end: none goes on with its share of the load."""
    out = tmp_path / "out"
    process = start(server.url, out, "--workers", "2", "--requests", "1000", "--outstanding-limit", "20")
    await_reads(out)
    stopped_ns, continued_ns = stand_still(server.pid, 1.0)
    said, errors = process.communicate(timeout=60)
    (directory,) = (out / "trials").iterdir()
    result = decode((directory / layout.RESULT).read_bytes())
    assert process.returncode == 1, (said, errors)
    assert result.gate(Gate.outstanding).status == result.verdict.status == "fail"
    rows = [row for row in TrialReader(directory).rows() if row.measured]
    assert max(row.scheduled_ns for row in rows) < continued_ns + SECOND_NS
    assert (result.measurement.concurrency.max or 0) <= 20
    assert any(row.outcome == "cancelled" for row in rows) and stopped_ns < continued_ns
    assert verify(directory).exit_code == 0
