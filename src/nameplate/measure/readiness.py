"""When held streams are ready to be measured: the server runs exactly ours, none waits, and every one has produced.

The same pure rules answer the running trial, which reads the server's samples as they are written, and whoever reads
its evidence later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow

# A gauge shows the server's last step, so a stream that ends and starts again may be missing in it for a while.
RESTART_SLACK_NS = 250_000_000
# One that still waits so long after it started again is not between two steps: the server has no room for it.
RESTART_WAIT_NS = 1_000_000_000
# Fewer samples than this within the stable time, or samples of less than this share of it, are no observation of it.
LEAST_SAMPLES = 2
LEAST_SPAN = 0.5
# After this many stable times with more running than ours it will not get better: it is somebody else's.
EXTRA_PATIENCE = 3


class Restarts:
    """Count the streams that were between two of their requests at a moment.

    An interval is a stream with the send and the first output of a later request of its. A stream counts once,
    however often it starts again.
    """

    def __init__(self, intervals: Iterable[tuple[int, int, int]], slack_ns: int = RESTART_SLACK_NS) -> None:
        whole = sorted((stream, begin - slack_ns, end + slack_ns) for stream, begin, end in intervals)
        recent = [
            (stream, begin, min(end, begin + 2 * slack_ns + RESTART_WAIT_NS)) for stream, begin, end in whole
        ]
        self._whole, self._recent = _Cover(whole), _Cover(recent)

    @classmethod
    def of(cls, rows: Iterable[RequestRow], until_ns: int, slack_ns: int = RESTART_SLACK_NS) -> Restarts:
        """Take the later requests of streams, each from its send to its first output."""
        intervals = (
            (row.slot or 0, row.sent_ns, _restarted_ns(row, until_ns))
            for row in rows
            if row.phase == "steady" and row.sent_ns is not None
        )
        return cls(intervals, slack_ns)

    def at(self, sample: ServerSample) -> int:
        """Return how many streams had started again and not produced: a server may count them as running or not."""
        return self._whole.between(*_told_between(sample))

    def lately(self, sample: ServerSample) -> int:
        """Return how many of them had done so within a moment: these may also wait."""
        return self._recent.between(*_told_between(sample))


class _Cover:
    """Count the streams that an interval of theirs covers; `ordered` is by stream and begin."""

    def __init__(self, ordered: Sequence[tuple[int, int, int]]) -> None:
        merged: list[tuple[int, int, int]] = []
        for stream, begin, end in ordered:
            if merged and merged[-1][0] == stream and begin <= merged[-1][2]:
                merged[-1] = (stream, merged[-1][1], max(end, merged[-1][2]))
            else:
                merged.append((stream, begin, end))
        self._by_begin = sorted((begin, end, stream) for stream, begin, end in merged)
        self._begins = [begin for begin, _, _ in self._by_begin]

    def between(self, begin_ns: int, end_ns: int) -> int:
        begun = self._by_begin[: bisect_right(self._begins, end_ns)]
        return len({stream for _, end, stream in begun if end >= begin_ns})


def _told_between(sample: ServerSample) -> tuple[int, int]:
    """Return when the server may have looked at its gauges: a busy one takes its time for the page."""
    return sample.t_ns - (sample.scrape_ns or 0), sample.t_ns


def _restarted_ns(row: RequestRow, until_ns: int) -> int:
    if row.first_output_ns is not None:
        return row.first_output_ns
    return row.end_ns if row.end_ns is not None else until_ns


def full(sample: ServerSample, concurrency: int, restarts: Restarts) -> bool:
    """Say whether the server runs exactly ours and none waits, but for streams that are starting again."""
    running = sample.running or 0
    return (
        running <= concurrency
        and (sample.waiting or 0) <= restarts.lately(sample)
        and not below(sample, concurrency, restarts)
    )


def below(sample: ServerSample, concurrency: int, restarts: Restarts) -> bool:
    """Say whether fewer than ours run, beyond streams that are starting again and not kept waiting for it."""
    running = sample.running or 0
    if running < concurrency - restarts.at(sample):
        return True
    return running < concurrency and (sample.waiting or 0) > restarts.lately(sample)


def told(samples: Iterable[ServerSample]) -> list[ServerSample]:
    """Return the samples that tell how many requests run."""
    return [sample for sample in samples if sample.error is None and sample.running is not None]


def last_before(t_ns: int, samples: Iterable[ServerSample]) -> ServerSample | None:
    """Return the last sample that tells by a moment: what it shows held then, for all that was seen."""
    return max((s for s in told(samples) if s.t_ns <= t_ns), key=lambda s: s.t_ns, default=None)


class Look(Struct, frozen=True, kw_only=True):
    """Hold what the gate sees at one moment: how many streams have produced, and the server's last word."""

    streams: int
    produced: int
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    server_tells: bool = False
    recent_samples: int | None = None

    def __str__(self) -> str:
        said = f"{self.produced} of {self.streams} streams had produced output"
        if not self.server_tells:
            return f"{said}; the server does not tell what it runs"
        said += f"; the server ran {_known(self.running)} and kept {_known(self.waiting)} waiting"
        if self.kv_usage is not None:
            said += f", its KV pool {self.kv_usage:.0%} full"
        if self.recent_samples is not None and self.recent_samples < LEAST_SAMPLES:
            said += (
                f" when it last told; {self.recent_samples} of its samples could be read in the stable time"
            )
        return said


class Gate(Struct, frozen=True):
    """Judge readiness of `streams` streams; times in monotonic nanoseconds."""

    streams: int
    stable_ns: int

    def look(self, now_ns: int, first_outputs_ns: Sequence[int], samples: Sequence[ServerSample]) -> Look:
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
            recent_samples=len(self._recent(now_ns, samples)),
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
        if len(recent) < LEAST_SAMPLES or recent[-1].t_ns - recent[0].t_ns < LEAST_SPAN * self.stable_ns:
            return False
        before = last_before(now_ns - self.stable_ns, samples)
        return before is not None and all(
            full(sample, self.streams, restarts) for sample in (before, *recent)
        )

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
