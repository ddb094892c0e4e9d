"""Carry a soak of very many requests out in simulated time, in this one process, and see that its memory stays low.

    python -m bench.soak [--requests 1000000] [--concurrency 32] [--shape 48/2] [--out DIR] [--grown] [--limit 300MiB]

The process holds the simulated server, the load, the feeding of its prompts and the writing of its evidence. The
exit code is 1 where the peak of its memory is above `--limit`: some 22 bytes a request stay (where its prompt begins).
`--grown` lists what allocated the memory that was gained between a tenth of the requests and the last (slower).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from nameplate.client.order import Progress
from nameplate.client.self_sample import self_sample
from nameplate.client.standing import peak_memory_bytes
from nameplate.contract.quantity import parse_bytes
from nameplate.trial.interruption import Interruption
from nameplate.trial.tests.soaks import SoakRun, Watching

TENTHS = 10
MOST_SECONDS = 10_000_000
MIB = 1 << 20


class Counting(Watching):
    """Stop the load after so many requests, and tell at each tenth what this process takes."""

    def __init__(self, requests: int, interruption: Interruption, grown: bool) -> None:
        super().__init__()
        self._requests = requests
        self._interruption = interruption
        self._grown = grown
        self._tenth = 0
        self._began_s = time.monotonic()
        self.first: tracemalloc.Snapshot | None = None

    def progress(self, _plan: object, progress: Progress, ttfts_ns: Any, directory: object) -> None:
        super().progress(_plan, progress, ttfts_ns, directory)
        if progress.started * TENTHS >= (self._tenth + 1) * self._requests:
            self._tenth += 1
            self._tell(progress)
            if self._grown and self.first is None:
                self.first = tracemalloc.take_snapshot()
        if progress.started >= self._requests and not self._interruption.count:
            self._interruption.interrupt()

    def _tell(self, progress: Progress) -> None:
        own, passed_s = self_sample(), time.monotonic() - self._began_s
        print(
            f"{progress.started:>10,} requests  {(own.rss_bytes or 0) / MIB:7.1f} MiB resident  "
            f"{own.cpu_s:7.1f} s CPU  {passed_s:7.1f} s  {own.descriptors} descriptors",
            flush=True,
        )


def main() -> int:
    """Carry the soak out; return 1 where its memory went beyond the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--shape", default="48/2")
    parser.add_argument("--out", type=Path, help="keep the evidence there")
    parser.add_argument("--grown", action="store_true")
    parser.add_argument("--limit", type=parse_bytes, default=300 * MIB, help="most memory: 300MB  [300MiB]")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="soak-"))
    directory = given.out or place / "soak.s1"
    if given.grown:
        tracemalloc.start()
    try:
        run = SoakRun(
            directory,
            seconds=MOST_SECONDS,
            shape=given.shape,
            concurrency=given.concurrency,
            client_sample_ns=10 * 10**9,
        )
        counting = Counting(given.requests, run.setup.interruption, given.grown)
        run.watch_with(counting).carry()
        if counting.first is not None:
            for line in tracemalloc.take_snapshot().compare_to(counting.first, "lineno")[:15]:
                print(line)
        peak_bytes = peak_memory_bytes()
        print(f"peak {peak_bytes / MIB:.1f} MiB, {self_sample().cpu_s:.1f} s CPU; on disk:")
        for path in sorted(directory.iterdir()):
            print(f"  {path.name:16} {path.stat().st_size / MIB:9.1f} MiB")
        if peak_bytes > given.limit:
            print(f"above the limit of {given.limit / MIB:.1f} MiB")
            return 1
        return 0
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main())
