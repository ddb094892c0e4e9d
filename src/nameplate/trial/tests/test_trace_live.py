"""Traces, ramps and a server that stands still, over real sockets and with several workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.result import TrialResult, decode
from nameplate.measure.trace_on_disk import read_header
from nameplate.schedule.stage import stages_of
from nameplate.sim.process import SimProcess, running
from nameplate.trial.tests.test_open_loop_live import await_reads, stand_still
from nameplate.verdict.gate import Gate
from nameplate.verify import verify

pytestmark = pytest.mark.live

SECOND_NS = 10**9


@pytest.fixture(scope="module")
def server() -> Iterator[SimProcess]:
    with running("demo") as process:
        yield process


def start(url: str, out: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "nameplate", "trial", url, *arguments, "--warmup", "1", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[bytes], out: Path) -> tuple[TrialResult, Path, str]:
    said, errors = process.communicate(timeout=60)
    (directory,) = (out / "trials").iterdir()
    assert (directory / layout.RESULT).exists(), (said, errors)
    assert verify(directory).exit_code == 0
    return decode((directory / layout.RESULT).read_bytes()), directory, " ".join(said.decode().split())


def delivered_to_the_nanosecond(directory: Path) -> None:
    """Hold that each request was due when the plan has it, counted from one beginning over all workers."""
    plan = read_header(TrialReader(directory)).plan
    stage = stages_of(plan)[-1]
    rows = [row for row in TrialReader(directory).rows() if row.measured]
    assert len(rows) == plan.requests
    assert (
        len({row.scheduled_ns - (stage.schedule.due_ns(row.index - stage.first_index) or 0) for row in rows})
        == 1
    )


def test_a_trace_is_repeated_by_several_workers(server: SimProcess, tmp_path: Path) -> None:
    """Each request at its time from one beginning, its shared prefix found by the server's cache."""
    lines = [{"nameplate_trace": 1, "time_unit": "ms", "block_tokens": 64}]
    lines += [
        {"time": 20 * n, "input_tokens": 300, "output_tokens": 4, "class": "ab"[n % 2], "prefix": [n % 2, 7]}
        for n in range(60)
    ]  # fmt: skip
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    process = start(
        server.url, tmp_path / "out", "--trace", str(tmp_path / "t.jsonl"), "--trace-format", "jsonl", "--workers", "2"
    )  # fmt: skip
    result, directory, said = finished(process, tmp_path / "out")
    delivered_to_the_nanosecond(directory)
    rows = sorted((row for row in TrialReader(directory).rows() if row.measured), key=lambda row: row.index)
    assert all(row.outcome == "ok" and abs((row.prompt_tokens or 0) - 300) <= 8 for row in rows)
    assert sum((row.cached_tokens or 0) >= 128 for row in rows) >= 50
    assert result.gate(Gate.cached_tokens).status == "pass"
    arrivals = result.plan.arrivals
    assert arrivals is not None and arrivals.trace is not None and arrivals.trace.name == "t.jsonl"
    assert "Classes of the trace" in said


def test_a_ramp_is_delivered_by_several_workers(server: SimProcess, tmp_path: Path) -> None:
    """Even constant gaps, which are shorter and shorter, are held across workers that begin together."""
    process = start(
        server.url, tmp_path / "out", "--shape", "64/4", "--ramp", "10:60:3s", "--arrivals", "constant",
        "--workers", "2",
    )  # fmt: skip
    result, directory, said = finished(process, tmp_path / "out")
    delivered_to_the_nanosecond(directory)
    assert "Tenths of the ramp" in said and result.measurement.queueing is None


def test_a_person_sees_that_the_server_stood_still(server: SimProcess, tmp_path: Path) -> None:
    """The report names the stall: how long, when, how many waited, how many of them were sent meanwhile."""
    process = start(server.url, tmp_path / "out", "--shape", "64/4", "--rate", "40", "--requests", "160")
    await_reads(tmp_path / "out")
    stopped_ns, continued_ns = stand_still(server.pid, 1.6)
    result, directory, said = finished(process, tmp_path / "out")
    delivered_to_the_nanosecond(directory)
    assert result.measurement.stalls is not None and result.measurement.stalls.count == 1
    (stall,) = result.measurement.stalls.listed
    until = stall.begin_ns + stall.length_ns
    assert stall.begin_ns <= stopped_ns + SECOND_NS // 4 and until >= continued_ns
    assert stall.length_ns > 1.3 * SECOND_NS and stall.sent > 30 and stall.waited >= stall.sent
    assert "Nothing came from the server for" in said and f"while {stall.waited} requests waited" in said


def test_an_interrupted_trace_keeps_what_it_has(server: SimProcess, tmp_path: Path) -> None:
    """Ended by a person, the trial is sealed with its trace, and verifies as interrupted."""
    lines = [
        {"timestamp": 50 * n, "input_length": 80, "output_length": 4, "hash_ids": []} for n in range(2000)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    form = ("--trace-format", "mooncake", "--trace-time-unit", "ms")
    process = start(server.url, tmp_path / "out", "--trace", str(tmp_path / "t.jsonl"), *form)
    await_reads(tmp_path / "out")
    os.kill(process.pid, signal.SIGINT)
    result, directory, said = finished(process, tmp_path / "out")
    assert process.returncode == 130 and result.interrupted
    assert (directory / layout.TRACE).exists() and "The trial was interrupted" in said
