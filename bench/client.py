"""Measure the client against the metronome, whose own log knows when every token was sent.

    python -m bench.client [--runs N] [--streams 32,128,...]

One metronome process, one load process, both on this machine. For each number of streams (100 tokens a second each)
it prints, as the median over the runs: how far our TTFT percentiles lie from those of the server's log over the same
requests, the same for chunk gaps, the client's CPU time a chunk (everything included: receiving, framing, recording,
parsing, compressing, start-up apart), its peak memory, and how late it was by its own account.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import msgspec
from msgspec import Struct

from nameplate.client.order import Ask, LoadOrder
from nameplate.client.process import carry
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.plan import TrialPlan
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.target import Credentials, Target
from nameplate.evidence.header import Keeping
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind
from nameplate.prompts.body import BodyOptions, build_body, prompt_hashes
from nameplate.prompts.store import PromptWriter
from nameplate.prompts.text import PromptKey, compose
from nameplate.schedule.stage import stages_of
from nameplate.sim.process import running
from nameplate.sim.truth import TruthRow
from nameplate.statistics.percentile import percentile

TOKENS = 128
ROUNDS = 4
WORDS = 24
COLUMNS = (
    "streams",
    "tokens/s",
    "TTFT p50 error",
    "TTFT p99 error",
    "gap p50 error",
    "gap p99 error",
    "CPU a chunk",
    "memory",
    "since empty p99",
)


class Run(Struct, frozen=True):
    """Hold one run's figures; times in ms, CPU in us a chunk, memory in MB."""

    ttft_truth_p50: float
    ttft_error_p50: float
    ttft_error_p99: float
    gap_error_p50: float
    gap_error_p99: float
    cpu_us: float
    memory_mb: float
    since_empty_p99: float
    chunks: int
    rate: float


def load(url: str, streams: int, directory: Path) -> tuple[float, float, float]:
    """Run one load; return CPU seconds less start-up, memory in MB, and wall seconds."""
    target = msgspec.structs.replace(Target.parse(url), model="metronome")
    plan = TrialPlan("bench", "single", Shape(32, TOKENS), streams, ROUNDS * streams, 0)
    options = BodyOptions.of(target, Sampling())
    asks = []
    with PromptWriter(directory / "prompts.zst") as writer:
        for index in range(plan.requests):
            text = compose(PromptKey("bench", "bench", 0, index), WORDS)
            hashes = prompt_hashes(text)
            asks.append(Ask("bench", TOKENS, hashes.sha256, hashes.head_sha256))
            writer.append(index, build_body(options, text, TOKENS))
    order = LoadOrder(
        target=target,
        credentials=Credentials(),
        deadlines=Deadlines(),
        stages=stages_of(plan),
        asks=tuple(asks),
        directory=str(directory),
        prompts_path=str(directory / "prompts.zst"),
        keeping=Keeping(),
    )
    began = time.monotonic()
    finished = carry(order, lambda _progress: None)
    return finished.cpu_s - finished.startup_cpu_s, finished.peak_memory_bytes / 1e6, time.monotonic() - began


def truth(url: str) -> list[TruthRow]:
    """Read the metronome's log of the requests that ended since the last look."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/log", timeout=60) as reply:
        lines = reply.read().splitlines()
    rows = [line for line in lines if not line.startswith(b'{"kind"')]
    return [msgspec.json.decode(row, type=TruthRow) for row in rows]


def measure(url: str, streams: int, skip: int) -> tuple[Run, int]:
    """Run once and compare with the server's log; `skip` of its rows belong to earlier runs."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        cpu_s, memory_mb, _wall_s = load(url, streams, directory)
        reader = TrialReader(directory)
        ours = reader.rows()
        gaps = [b - a for line in reader.timelines() for a, b in itertools.pairwise(line.times_ns)]
        empty = [record.since_empty_ns for record in reader.records() if record.kind == Kind.READ]
    rows = truth(url)
    own = rows[skip:]
    assert len(own) == len(ours), f"{len(own)} requests in the log, {len(ours)} in the evidence"
    bad = [row for row in ours if row.outcome != "ok"]
    assert not bad, bad[:3]
    ttft = [row.ttft_ns for row in ours if row.ttft_ns is not None]
    true_ttft = [row.first_sent_ns - row.received_ns for row in own if row.first_sent_ns is not None]
    events = [row.events_ns for row in own if row.events_ns]
    true_gaps = [b - a for line in events for a, b in itertools.pairwise(line)]
    chunks = sum(row.output_events for row in ours)
    span_s = (max(row.end_ns or 0 for row in ours) - min(row.sent_ns or 0 for row in ours)) / 1e9

    def difference(p: float, mine: list[int], true: list[int]) -> float:
        return (percentile(sorted(mine), p) - percentile(sorted(true), p)) / 1e6

    run = Run(
        ttft_truth_p50=percentile(sorted(true_ttft), 50.0) / 1e6,
        ttft_error_p50=difference(50.0, ttft, true_ttft),
        ttft_error_p99=difference(99.0, ttft, true_ttft),
        gap_error_p50=difference(50.0, gaps, true_gaps),
        gap_error_p99=difference(99.0, gaps, true_gaps),
        cpu_us=cpu_s / chunks * 1e6,
        memory_mb=memory_mb,
        since_empty_p99=percentile(sorted(empty), 99.0) / 1e6,
        chunks=chunks,
        rate=chunks / span_s,
    )
    return run, len(rows)


def middle(runs: list[Run], name: str) -> float:
    """Return the median over the runs of one figure."""
    return statistics.median(float(getattr(run, name)) for run in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--streams", default="32,128,256,512")
    given = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(f"median of {given.runs} runs; {TOKENS} tokens a request, TTFT 50 ms, one token every 10 ms\n")
    print("|".join(("", *(f" {name} " for name in COLUMNS), "")))
    print("|---" * len(COLUMNS) + "|")
    for streams in map(int, given.streams.split(",")):
        with running("metronome", "--ttft-ms", "50", "--itl-ms", "10", "--log-events") as server:
            runs: list[Run] = []
            skip = 0
            for _ in range(given.runs):
                run, skip = measure(server.url, streams, skip)
                runs.append(run)

        cells = (
            f"{streams}",
            f"{middle(runs, 'rate'):,.0f}",
            f"{middle(runs, 'ttft_error_p50'):+.2f} ms",
            f"{middle(runs, 'ttft_error_p99'):+.2f} ms",
            f"{middle(runs, 'gap_error_p50'):+.3f} ms",
            f"{middle(runs, 'gap_error_p99'):+.3f} ms",
            f"{middle(runs, 'cpu_us'):.1f} us",
            f"{middle(runs, 'memory_mb'):.0f} MB",
            f"{middle(runs, 'since_empty_p99'):.1f} ms",
        )
        print("|".join(("", *(f" {cell} " for cell in cells), "")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
