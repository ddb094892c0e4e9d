"""When held streams are ready to be measured: the server runs exactly ours, none waits, and every one has produced.

The same pure rules answer the running trial, which reads the server's samples as they are written, and whoever reads
its evidence later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow

# A gauge shows the server's last step, so a stream that ends and starts again may be missing in it for a while.
RESTART_SLACK_NS = 250_000_000
# Fewer samples than this within the stable time are no observation of a second or more.
LEAST_SAMPLES = 2
# After this many stable times with more running than ours it will not get better: it is somebody else's.
EXTRA_PATIENCE = 3


class Restarts:
    """Count the streams that were between two of their requests at a moment."""

    def __init__(self, intervals: Iterable[tuple[int, int]], slack_ns: int = RESTART_SLACK_NS) -> None:
        pairs = list(intervals)
        self._begins = sorted(begin - slack_ns for begin, _ in pairs)
        self._ends = sorted(end + slack_ns for _, end in pairs)

    @classmethod
    def of(cls, rows: Iterable[RequestRow], until_ns: int, slack_ns: int = RESTART_SLACK_NS) -> Restarts:
        """Take the later requests of streams, each from its send to its first output."""
        intervals = (
            (row.sent_ns, row.first_output_ns or row.end_ns or until_ns)
            for row in rows
            if row.phase == "steady" and row.sent_ns is not None
        )
        return cls(intervals, slack_ns)

    def at(self, t_ns: int) -> int:
        return bisect_right(self._begins, t_ns) - bisect_left(self._ends, t_ns)


def full(sample: ServerSample, concurrency: int, restarting: int) -> bool:
    """Say whether the server runs exactly ours and none waits, but for streams that are starting again."""
    running, waiting = sample.running or 0, sample.waiting or 0
    return concurrency - restarting <= running <= concurrency and waiting <= restarting


def told(samples: Iterable[ServerSample]) -> list[ServerSample]:
    """Return the samples that tell how many requests run."""
    return [sample for sample in samples if sample.error is None and sample.running is not None]


class Look(Struct, frozen=True, kw_only=True):
    """Hold what the gate sees at one moment: how many streams have produced, and the server's last word."""

    streams: int
    produced: int
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    server_tells: bool = False

    def __str__(self) -> str:
        said = f"{self.produced} of {self.streams} streams had produced output"
        if not self.server_tells:
            return f"{said}; the server does not tell what it runs"
        said += f"; the server ran {_known(self.running)} and kept {_known(self.waiting)} waiting"
        return said if self.kv_usage is None else f"{said}, its KV pool {self.kv_usage:.0%} full"


class Gate(Struct, frozen=True):
    """Judge readiness of `streams` streams; times in monotonic nanoseconds."""

    streams: int
    stable_ns: int

    def look(self, first_outputs_ns: Sequence[int], samples: Sequence[ServerSample]) -> Look:
        """Return what there is to see; `first_outputs_ns` holds one moment for each stream that has produced."""
        tell = told(samples)
        last = tell[-1] if tell else None
        return Look(
            streams=self.streams,
            produced=len(first_outputs_ns),
            running=last.running if last else None,
            waiting=last.waiting if last else None,
            kv_usage=last.kv_usage_mean if last else None,
            server_tells=last is not None,
        )

    def ready(
        self,
        now_ns: int,
        first_outputs_ns: Sequence[int],
        samples: Sequence[ServerSample],
        restarts: Restarts,
        server_tells: bool,
    ) -> bool:
        """Say whether everything has held for the stable time until `now_ns`.

        Without a server that tells what it runs, every stream's output is all there is to go by.
        """
        if not self._produced(now_ns, first_outputs_ns):
            return False
        if not server_tells:
            return True
        recent = self._recent(now_ns, samples)
        if len(recent) < LEAST_SAMPLES:
            return False
        return all(full(sample, self.streams, restarts.at(sample.t_ns)) for sample in recent)

    def crowded(self, now_ns: int, first_outputs_ns: Sequence[int], samples: Sequence[ServerSample]) -> bool:
        """Say whether more than ours have run for so long that they are not going to end."""
        patience_ns = EXTRA_PATIENCE * self.stable_ns
        if not self._produced(now_ns, first_outputs_ns):
            return False
        recent = [s for s in told(samples) if now_ns - patience_ns <= s.t_ns <= now_ns]
        return (
            len(recent) >= EXTRA_PATIENCE * LEAST_SAMPLES
            and max(first_outputs_ns, default=now_ns) <= now_ns - patience_ns
            and all((sample.running or 0) > self.streams for sample in recent)
        )

    def _produced(self, now_ns: int, first_outputs_ns: Sequence[int]) -> bool:
        return (
            len(first_outputs_ns) >= self.streams
            and max(first_outputs_ns, default=0) <= now_ns - self.stable_ns
        )

    def _recent(self, now_ns: int, samples: Sequence[ServerSample]) -> list[ServerSample]:
        return [s for s in told(samples) if now_ns - self.stable_ns <= s.t_ns <= now_ns]


def _known(value: int | None) -> str:
    return "an unknown number" if value is None else str(value)
