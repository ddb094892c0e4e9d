"""The client's own samples over a segment, and the steps of the wall clock that they show."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left

from nameplate.evidence.client_sample import ClientSample
from nameplate.measure.soak.segment import ClockStep
from nameplate.measure.soak.server import spread_of
from nameplate.measure.soak.window import ClientWindow

# A disciplined clock is slewed by 500 ppm at most (RFC 5905, 11.3); a pair is read within far less than 50 ms.
SLEW_PPM = 500
LEAST_STEP_NS = 50_000_000
# A clock that steps more often is no clock; the first ones say so.
MOST_STEPS = 100

# The worst of any process; everything else is a sum over them.
_LAG = "send_lag_max_ns"
_COLUMNS = ("rss_bytes", "descriptors", "unparsed", "queued_blocks", _LAG)


class Client:
    """Keep a segment's client samples over all its processes: each sample with the last one of every other."""

    def __init__(self) -> None:
        self.t_ns = array("q")
        self.columns = {name: array("d") for name in _COLUMNS}
        self._latest: dict[tuple[str, int | None], ClientSample] = {}

    def take(self, sample: ClientSample) -> None:
        """Take the next sample."""
        self._latest[sample.process, sample.worker] = sample
        # Processes write to one file and a line may be overtaken by another's.
        self.t_ns.append(max(sample.t_ns, self.t_ns[-1]) if self.t_ns else sample.t_ns)
        for name, column in self.columns.items():
            known = [value for held in self._latest.values() if (value := getattr(held, name)) is not None]
            column.append((max(known) if name == _LAG else sum(known)) if known else math.nan)

    def window(self, begin_ns: int, end_ns: int) -> ClientWindow:
        """Measure one window."""
        first, after = bisect_left(self.t_ns, begin_ns), bisect_left(self.t_ns, end_ns)
        spreads = {name: spread_of(column[first:after]) for name, column in self.columns.items()}
        return ClientWindow(
            samples=after - first,
            memory_bytes=spreads["rss_bytes"],
            descriptors=spreads["descriptors"],
            backlog=spreads["unparsed"],
            queued_blocks=spreads["queued_blocks"],
        )


class Clocks:
    """Find steps of the wall clock in pairs of both clocks, in the order in which they were read."""

    def __init__(self, segment: str, monotonic_ns: int, wall_ns: int) -> None:
        self._segment = segment
        self._last = monotonic_ns, wall_ns
        self.steps: list[ClockStep] = []

    def take(self, t_ns: int, wall_ns: int) -> None:
        """Take the next pair."""
        before, wall_before = self._last
        if t_ns <= before:
            return
        self._last = t_ns, wall_ns
        step = (wall_ns - wall_before) - (t_ns - before)
        if (
            abs(step) > LEAST_STEP_NS + (t_ns - before) * SLEW_PPM // 1_000_000
            and len(self.steps) < MOST_STEPS
        ):
            self.steps.append(ClockStep(segment=self._segment, after_ns=before, before_ns=t_ns, step_ns=step))
