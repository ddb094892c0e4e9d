"""A soak of a real vLLM, whose client and whose server are killed on the way: some four minutes in all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from integration.command import nameplate
from integration.vllm_cpu import serving

pytestmark = pytest.mark.vllm

PORT = 8133
FLAGS = (
    "--max-num-seqs",
    "4",
    "--max-model-len",
    "2048",
    "--block-size",
    "32",
    "--num-gpu-blocks-override",
    "128",
)
# Long enough for a server to come back on a machine that does other things as well: its start took up to two minutes.
DURATION_S = 330
SOAK = (
    "--shape", "128/32", "-c", "6", "--duration", f"{DURATION_S}s", "--window", "15s", "--drain", "30s",
    "--max-error-rate", "100%",
)  # fmt: skip
# Longer than the whole soak with its drain.
WAIT_S = 500.0


class Soaked(Struct, frozen=True):
    """Hold a soak that was killed, went on and lost its server: its record's result, its code and its directory."""

    result: dict[str, Any]
    code: int
    out: Path


def start(out: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "nameplate", "soak", *arguments, "--quiet-terminal"],
        stdout=(out.parent / "stdout").open("ab"),
        stderr=(out.parent / "stderr").open("ab"),
        start_new_session=True,
    )


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.2)


def rows_in(out: Path, key: str) -> int:
    path = out / "trials" / key / "requests.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soaked]:
    """Kill every process of the client after some requests, go on, and restart the server under the second segment."""
    out = tmp_path_factory.mktemp("soak") / "x"
    with ExitStack() as first:
        url = first.enter_context(serving(PORT, FLAGS))
        process = start(out, url, *SOAK, "--out", str(out))
        wait_for(lambda: rows_in(out, "soak.s1") > 20)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process = start(out, "--resume", str(out))
        wait_for(lambda: rows_in(out, "soak.s2") > 20)
    with serving(PORT, FLAGS):
        code = process.wait(WAIT_S)
        yield Soaked(nameplate("show", str(out)), code, out)


def test_the_whole_duration_was_submitted(soaked: Soaked) -> None:
    """Both segments together cover it, and the gap between them is told."""
    assert abs(soaked.result["submitted_s"] - DURATION_S) < 2
    (gap,) = soaked.result["gaps"]
    assert gap["length_s"] > 0
    first, second = soaked.result["segments"]
    assert not first["ended"] and second["ended_by"] == "duration"


def test_only_a_late_client_makes_it_invalid(soaked: Soaked) -> None:
    """Failures are allowed here, so that nothing else decides: on two processors the server may hold up the client."""
    verdict = soaked.result["verdict"]
    assert soaked.code == 0 or all(said.startswith("client_lateness") for said in verdict["reasons"])


def test_every_request_is_accounted_for(soaked: Soaked) -> None:
    """The sum holds; what the kill left open is named with what was known of it; what the server lost has failed."""
    counts = soaked.result["counts"]
    ended = counts["ok"] + counts["failed"] + counts["cancelled"] + counts["unfinished"]
    assert counts["sent"] == ended and counts["ok"] > 40 and counts["failed"] > 0
    left = soaked.result["segments"][0]["unfinished"]
    assert 0 < len(left) <= 12 and all(
        request["fate"] in ("queued", "accepted", "decoding") for request in left
    )


def test_the_restart_is_told_with_its_recovery(soaked: Soaked) -> None:
    """Another process of the same configuration: two lives in the second segment, each with its own KV pool."""
    second = soaked.result["segments"][1]
    (outage,) = second["outages"]
    assert outage["restarted"] and outage["recovery_ns"] > 5 * 10**9
    assert len(second["parts"]) == 2
    assert {part["kv_tokens"] for part in second["parts"]} == {4096}
    assert {part["full_budget_tokens"] for part in second["parts"]} == {160}


def test_queue_and_prefill_are_apart(soaked: Soaked) -> None:
    """Six clients on four places: the server tells of both in the windows it was there for."""
    windows = soaked.result["segments"][0]["windows"]
    told = [window["server"] for window in windows if window["server"]["timed"]]
    assert told and all(one["queue_mean_s"] is not None and one["prefill_mean_s"] is not None for one in told)


def test_all_of_it_verifies(soaked: Soaked) -> None:
    """What was cut short is stated, and nothing contradicts."""
    nameplate("verify", str(soaked.out), expected=(0,))


def test_whoever_looks_on_sees_that_it_ended(soaked: Soaked) -> None:
    """The watcher needs nothing but the directory, or the one above it."""
    for directory in (soaked.out, soaked.out.parent):
        sight = nameplate("watch", str(directory))
        assert sight["state"] == "ended" and sight["left_ns"] == 0
