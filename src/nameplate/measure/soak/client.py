"""The client's own samples over a segment, and the steps of the wall clock that they show."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable

from nameplate.evidence.client_sample import ClientSample
from nameplate.evidence.header import ClockPair
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
_UNKNOWN_WALL = -1


class _Process:
    """Keep one process's samples as columns, in the order of its own file."""

    def __init__(self) -> None:
        self.t_ns = array("q")
        self.wall_ns = array("q")
        self.columns = {name: array("d") for name in _COLUMNS}


class Client:
    """Keep a segment's client samples: each process writes a file of its own, and they may be joined one by one."""

    def __init__(self) -> None:
        self._processes: dict[tuple[str, int | None], _Process] = {}

    @property
    def last_ns(self) -> int | None:
        """Return the moment of the last sample; None where there is none."""
        return max((held.t_ns[-1] for held in self._processes.values()), default=None)

    def take(self, sample: ClientSample) -> None:
        """Take the next sample of its process."""
        held = self._processes.setdefault((sample.process, sample.worker), _Process())
        held.t_ns.append(sample.t_ns)
        held.wall_ns.append(_UNKNOWN_WALL if sample.wall_ns is None else sample.wall_ns)
        for name, column in held.columns.items():
            value = getattr(sample, name)
            column.append(math.nan if value is None else value)

    def summed(self) -> ClientColumns:
        """Return all processes together: each sample with the last one of every other process."""
        found = ClientColumns()
        processes = list(self._processes.values())
        latest: dict[int, tuple[_Process, int]] = {}
        for t_ns, number, place in self._in_time():
            latest[number] = (processes[number], place)
            found.t_ns.append(t_ns)
            for name, column in found.columns.items():
                values = (held.columns[name][at] for held, at in latest.values())
                known = [value for value in values if value == value]
                total = (max(known) if name == _LAG else sum(known)) if known else math.nan
                column.append(total)
        return found

    def clock_steps(self, segment: str, started: ClockPair) -> tuple[ClockStep, ...]:
        """Find the steps of the wall clock between pairs of both clocks, whichever process read them."""
        processes = list(self._processes.values())
        pairs = (
            (t_ns, processes[number].wall_ns[place])
            for t_ns, number, place in self._in_time()
            if processes[number].wall_ns[place] != _UNKNOWN_WALL
        )
        return tuple(_steps(segment, started, pairs))

    def _in_time(self) -> list[tuple[int, int, int]]:
        """Return (moment, process, place) of all samples in the order of time."""
        return sorted(
            (t_ns, number, place)
            for number, held in enumerate(self._processes.values())
            for place, t_ns in enumerate(held.t_ns)
        )


class ClientColumns:
    """Hold the client as a whole over time."""

    def __init__(self) -> None:
        self.t_ns = array("q")
        self.columns = {name: array("d") for name in _COLUMNS}

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


def _steps(segment: str, started: ClockPair, pairs: Iterable[tuple[int, int]]) -> Iterable[ClockStep]:
    before_ns, wall_before_ns = started.monotonic_ns, started.wall_ns
    found = 0
    for t_ns, wall_ns in pairs:
        if t_ns <= before_ns:
            continue
        elapsed_ns = t_ns - before_ns
        step_ns = wall_ns - wall_before_ns - elapsed_ns
        if abs(step_ns) > LEAST_STEP_NS + elapsed_ns * SLEW_PPM // 1_000_000 and found < MOST_STEPS:
            found += 1
            yield ClockStep(segment=segment, after_ns=before_ns, before_ns=t_ns, step_ns=step_ns)
        before_ns, wall_before_ns = t_ns, wall_ns
