"""When the server stood still: stretches in which nothing at all came from it while requests waited for it."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.concurrency import intervals
from nameplate.measure.samples import cut_by_us
from nameplate.statistics.percentile import percentile

# Below this nobody speaks of a server that stands still; a step of a large model with a long prefill takes tenths.
FLOOR_NS = 1_000_000_000
# A server that reads one prompt at a time is silent for as long as that takes, and that is no stall. The time in which
# it reads one is what the fastest tenth of all first outputs took, which a stall does not touch.
FAST_PERCENT, FAST_TIMES = 10.0, 3
# So many are listed, the longest; all are counted.
LISTED = 20


class Stall(Struct, frozen=True):
    """Hold one stretch without anything from the server, while at least one request was unanswered throughout.

    `begin_ns` is on the trial's clock, `after_ns` from the first measured send. `waited` requests were unanswered at
    some time in it, `sent` of them sent in it. `ended` is false where it lasted until the trial ended or all were cut.
    """

    begin_ns: int
    after_ns: int
    length_ns: int
    waited: int
    sent: int
    ended: bool


class Stalls(Struct, frozen=True, kw_only=True):
    """Hold the stalls longer than `bound_ns`: `count` of them, `total_ns` in all, the longest ones in order of time.

    The bound is max(1 s, three times the p10 of the TTFT).
    """

    bound_ns: int
    count: int = 0
    total_ns: int = 0
    listed: tuple[Stall, ...] = ()


def measure_stalls(rows: Sequence[RequestRow], timelines: Iterable[Timeline], until_ns: int) -> Stalls | None:
    """Find the stalls from the first measured send on; None where nothing measured was sent."""
    sent = [row.sent_ns for row in rows if row.measured and row.sent_ns is not None]
    if not sent:
        return None
    begin_ns = min(sent)
    ttfts = sorted(value for row in rows if row.measured and (value := row.ttft_ns) is not None)
    bound_ns = max(FLOOR_NS, round(FAST_TIMES * percentile(ttfts, FAST_PERCENT))) if ttfts else FLOOR_NS
    waits = sorted(intervals([row for row in rows if row.phase != "warmup"], until_ns))
    arrivals = _arrivals(rows, timelines, begin_ns)
    end_ns = max([*arrivals[-1:], *(end for _, end in waits)])
    found = [stall for stall in _silences(waits, arrivals, begin_ns, end_ns) if stall.length_ns > bound_ns]
    longest = heapq.nlargest(LISTED, found, key=lambda stall: stall.length_ns)
    return Stalls(
        bound_ns=bound_ns,
        count=len(found),
        total_ns=sum(stall.length_ns for stall in found),
        listed=tuple(sorted(longest, key=lambda stall: stall.begin_ns)),
    )


def _arrivals(rows: Sequence[RequestRow], timelines: Iterable[Timeline], begin_ns: int) -> array[int]:
    """Return when anything came: outputs, and ends that the server made."""
    times = array("q")
    for timeline in timelines:
        times.extend(timeline.times_ns)
    times.extend(row.end_ns for row in rows if row.end_ns is not None and not cut_by_us(row))
    # Each request's times are in order: sorting is merging.
    return array("q", (time for time in sorted(times) if time >= begin_ns))


def _silences(
    waits: Sequence[tuple[int, int]], arrivals: Sequence[int], begin_ns: int, end_ns: int
) -> Iterator[Stall]:
    """Yield each stretch of a second or more between two arrivals, for the part in which some request waited."""
    active: list[tuple[int, int]] = []
    ahead = 0
    for before, after in pairwise((begin_ns, *arrivals, end_ns)):
        if after - before < FLOOR_NS:
            continue
        while ahead < len(waits) and waits[ahead][0] < after:
            sent_ns, answered_ns = waits[ahead]
            heapq.heappush(active, (answered_ns, sent_ns))
            ahead += 1
        while active and active[0][0] <= before:
            heapq.heappop(active)
        if active:
            # The last stretch ends with the trial, or with what its client cut.
            ended = bool(arrivals) and after <= arrivals[-1]
            yield from _unbroken(active, before, after, begin_ns, ended)


def _unbroken(
    active: Sequence[tuple[int, int]], before: int, after: int, begin_ns: int, ended: bool
) -> Iterator[Stall]:
    """Yield the parts of a stretch throughout which some request waited; those cut by us may leave holes in it."""
    inside = sorted((max(sent, before), min(answered, after), sent) for answered, sent in active)
    group: list[tuple[int, int, int]] = []
    reach = before
    for each in [*inside, None]:
        if each is None or (group and each[0] > reach):
            if group:
                first = group[0][0]
                sent = sum(one[2] > first for one in group)
                yield Stall(
                    first, first - begin_ns, reach - first, len(group), sent, ended and reach == after
                )
            group = []
        if each is not None:
            reach = max(reach, each[1]) if group else each[1]
            group.append(each)
