"""The server's samples over a segment, as columns: gauges as they were read, counters as they grew between readings.

A sample a second is 150 bytes, 13 MB a day, whatever the load.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence

from nameplate.engines.state import ServerSample
from nameplate.measure.server_side import delta, finished_delta
from nameplate.measure.soak.segment import ServerAtEnd
from nameplate.measure.soak.window import ServerWindow, Spread

_GAUGES = ("running", "waiting", "kv_usage")
_COUNTERS = (
    "preemptions",
    "requests",
    "prompt_tokens",
    "output_tokens",
    "cache_hits",
    "queue_s",
    "queue_n",
    "prefill_s",
    "prefill_n",
)
_UNKNOWN = math.nan
# Two readings of one process's start agree to within this: some engines round it.
START_TOLERANCE_S = 1.0


class Server:
    """Keep a segment's samples; `restarts` are (last reading of one process, first of the next)."""

    def __init__(self) -> None:
        self.t_ns = array("q")
        self.failed = array("b")
        self.columns = {name: array("d") for name in (*_GAUGES, *_COUNTERS)}
        self.restarts: list[tuple[int, int]] = []
        self._last: ServerSample | None = None

    def take(self, sample: ServerSample) -> None:
        """Take the next sample."""
        self.t_ns.append(sample.t_ns)
        self.failed.append(sample.error is not None)
        values: dict[str, float | None] = {}
        if sample.error is None:
            values = {"running": sample.running, "waiting": sample.waiting, "kv_usage": sample.kv_usage_mean}
            last, self._last = self._last, sample
            if last is not None and restarted(last, sample):
                self.restarts.append((last.t_ns, sample.t_ns))
            elif last is not None:
                values |= _growth(last, sample)
        for name, column in self.columns.items():
            value = values.get(name)
            column.append(_UNKNOWN if value is None else value)

    def between(self, begin_ns: int, end_ns: int) -> range:
        """Return the places of the samples of begin <= t < end."""
        return range(bisect_left(self.t_ns, begin_ns), bisect_left(self.t_ns, end_ns))

    def spread(self, name: str, inside: range) -> Spread | None:
        """Summarise a gauge over samples; None where none tells it."""
        return spread_of(self.columns[name][inside.start : inside.stop])

    def grown(self, name: str, inside: range) -> float | None:
        """Return how much a counter grew; None where no reading tells."""
        known = [value for value in self.columns[name][inside.start : inside.stop] if value == value]
        return math.fsum(known) if known else None

    def window(self, begin_ns: int, end_ns: int) -> ServerWindow:
        """Measure one window."""
        inside = self.between(begin_ns, end_ns)
        timed = _whole(self.grown("queue_n", inside))
        return ServerWindow(
            scrapes=len(inside),
            scrape_failures=sum(self.failed[inside.start : inside.stop]),
            running=self.spread("running", inside),
            waiting=self.spread("waiting", inside),
            kv_usage=self.spread("kv_usage", inside),
            preemptions=_whole(self.grown("preemptions", inside)),
            requests=_whole(self.grown("requests", inside)),
            prompt_tokens=_whole(self.grown("prompt_tokens", inside)),
            output_tokens=_whole(self.grown("output_tokens", inside)),
            cache_hits=_whole(self.grown("cache_hits", inside)),
            timed=timed,
            queue_mean_s=_ratio(self.grown("queue_s", inside), timed),
            prefill_mean_s=_ratio(self.grown("prefill_s", inside), self.grown("prefill_n", inside)),
        )

    def at_end(self, t_ns: int) -> ServerAtEnd | None:
        """Return the last gauges that were read by a moment; None where none were."""
        for place in range(bisect_left(self.t_ns, t_ns + 1) - 1, -1, -1):
            if self.failed[place]:
                continue
            kv = self.columns["kv_usage"][place]
            return ServerAtEnd(
                t_ns=self.t_ns[place],
                age_ns=t_ns - self.t_ns[place],
                running=_whole(self.columns["running"][place]),
                waiting=_whole(self.columns["waiting"][place]),
                kv_usage=None if math.isnan(kv) else kv,
            )
        return None


def restarted(before: ServerSample, after: ServerSample) -> bool:
    """Tell whether two readings are of different server processes: by its start, or by a counter that fell."""
    if before.process_start_time_s is not None and after.process_start_time_s is not None:
        return abs(after.process_start_time_s - before.process_start_time_s) > START_TOLERANCE_S
    names = ("prompt_tokens_total", "output_tokens_total", "preemptions_total")
    return any((delta(before, after, name) or 0) < 0 for name in names)


def spread_of(values: Sequence[float]) -> Spread | None:
    """Summarise values, unknown ones left out."""
    known = [value for value in values if value == value]
    return Spread(len(known), math.fsum(known) / len(known), min(known), max(known)) if known else None


def _growth(before: ServerSample, after: ServerSample) -> dict[str, float | None]:
    cached = delta(before, after, "cached_tokens_total")
    queue, prefill = _timed(before, after, "queue_s"), _timed(before, after, "prefill_s")
    return {
        "preemptions": delta(before, after, "preemptions_total"),
        "requests": finished_delta(before, after),
        "prompt_tokens": delta(before, after, "prompt_tokens_total"),
        "output_tokens": delta(before, after, "output_tokens_total"),
        "cache_hits": cached if cached is not None else delta(before, after, "cache_hit_tokens_total"),
        "queue_s": queue[0],
        "queue_n": queue[1],
        "prefill_s": prefill[0],
        "prefill_n": prefill[1],
    }


def _timed(before: ServerSample, after: ServerSample, name: str) -> tuple[float | None, int | None]:
    first: tuple[float, int] | None = getattr(before, name)
    last: tuple[float, int] | None = getattr(after, name)
    if first is None or last is None:
        return None, None
    return last[0] - first[0], last[1] - first[1]


def _whole(value: float | None) -> int | None:
    return None if value is None or math.isnan(value) else round(value)


def _ratio(total: float | None, count: float | None) -> float | None:
    return total / count if total is not None and count else None
