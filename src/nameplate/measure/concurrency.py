"""How many requests were really in flight, rebuilt from when each was sent and when it ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.verdict.tolerances import LATENESS_FLOOR_NS


class InFlight:
    """Answer how many intervals overlap at a moment or over a stretch; an end at a moment comes before a start."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        steps: dict[int, list[int]] = {}
        # An interval of no length is in flight at its moment and never longer.
        for begin, end in intervals:
            steps.setdefault(begin, [0, 0])[1] += 1
            steps.setdefault(max(begin, end), [0, 0])[0] += 1
        self._times = sorted(steps)
        self._levels = list(accumulate(steps[t][1] - steps[t][0] for t in self._times))

    @property
    def highest(self) -> int:
        return max(self._levels, default=0)

    def _level_at(self, position: int) -> int:
        return self._levels[position] if position >= 0 else 0

    def highest_between(self, begin: int, end: int) -> int:
        """Return the largest number in flight at any moment of [begin, end]."""
        first, last = bisect_right(self._times, begin) - 1, bisect_right(self._times, end) - 1
        return max(self._level_at(position) for position in range(first, last + 1))

    def segments(self, begin: int, end: int) -> Iterable[tuple[int, int]]:
        """Yield (nanoseconds, number in flight) for each stretch of [begin, end)."""
        at = begin
        position = bisect_right(self._times, begin) - 1
        while at < end:
            following = self._times[position + 1] if position + 1 < len(self._times) else end
            until = min(end, following)
            if until > at:
                yield until - at, self._level_at(position)
            at = until
            position += 1

    def mean_between(self, begin: int, end: int) -> float | None:
        """Return the time average over [begin, end); None where that is empty."""
        if end <= begin:
            return None
        return sum(length * level for length, level in self.segments(begin, end)) / (end - begin)


class Concurrency(Struct, frozen=True):
    """Hold the effective concurrency of a trial's load.

    `mean` and `below_share` are over the time between the last opening send and the last start (after a handover:
    from the first measured send), null where that is empty. `mean_whole_run` is from the first send to the last
    end. `below_share` is the share of that time with fewer than the planned requests in flight, and
    `underfilled_share` the same without the handovers of a slot from one request to the next, as far as each is
    within the client's own lateness allowance: many short requests add these up to a percent of the time while
    no slot is ever idle, and how late the client sends is judged by a gate of its own.
    """

    planned: int
    max: int | None = None
    mean: float | None = None
    mean_whole_run: float | None = None
    below_share: float | None = None
    underfilled_share: float | None = None


def intervals(rows: Iterable[RequestRow], until_ns: int) -> list[tuple[int, int]]:
    """Return (sent, end) of each request that was sent; one without an end lasts until `until_ns`."""
    return [
        (row.sent_ns, row.end_ns if row.end_ns is not None else max(until_ns, row.sent_ns))
        for row in rows
        if row.sent_ns is not None
    ]


def rebuild(rows: Sequence[RequestRow], planned: int, until_ns: int) -> Concurrency:
    """Rebuild the concurrency of the loaded part: measured requests, and the ramp of a handover."""
    loaded = [row for row in rows if row.phase != "warmup"]
    held = intervals(loaded, until_ns)
    sent = [row.sent_ns for row in loaded if row.measured and row.sent_ns is not None]
    if not held or not sent:
        return Concurrency(planned)
    flight = InFlight(held)
    opening = [row.sent_ns for row in loaded if row.phase == "opening" and row.sent_ns is not None]
    begin, end = (max(opening) if opening else min(sent)), max(sent)
    return Concurrency(
        planned=planned,
        max=flight.highest,
        mean=flight.mean_between(begin, end),
        mean_whole_run=flight.mean_between(min(sent), max(last for _, last in held)),
        below_share=_share_below(flight, planned, begin, end),
        underfilled_share=_share_below(InFlight(handed_over(loaded, until_ns)), planned, begin, end),
    )


def handed_over(rows: Iterable[RequestRow], until_ns: int) -> list[tuple[int, int]]:
    """Return the intervals of `intervals`, each prolonged to its slot's next send, by 2 ms at most."""
    by_slot: dict[int | None, list[tuple[int, int]]] = {}
    for row in rows:
        by_slot.setdefault(row.slot, []).extend(intervals([row], until_ns))
    held = by_slot.pop(None, [])
    for slot in by_slot.values():
        slot.sort()
        for (begin, end), (following, _) in pairwise(slot):
            held.append((begin, max(end, min(following, end + LATENESS_FLOOR_NS))))
        held += slot[-1:]
    return held


def _share_below(flight: InFlight, planned: int, begin: int, end: int) -> float | None:
    if end <= begin:
        return None
    return sum(length for length, level in flight.segments(begin, end) if level < planned) / (end - begin)
