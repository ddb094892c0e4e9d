"""The part of each request that lies within a window: its ITL, its gaps, and silences that the window's edges cut."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.windows import Window, tokens_an_event
from nameplate.statistics.percentile import Distribution, summarise

# A stream has stalled when the window's end finds it silent for this share of the window, and for so many times as long
# as in any gap of its before: a server that steps slowly is not one that hangs.
STALLED_SHARE = 1 / 3
STALLED_GAPS = 3


class Part(Struct, frozen=True):
    """Hold the part of one request that lies within a window.

    `itl_ns` is (last - first event) / tokens after the first, None without such tokens. `gaps_ns` are those that end
    in the window. `silent` says that when the window ended the request was in flight, and had been silent for longer
    than in any gap within the window; `stalled` that it had for so long that nothing more was to come in it.
    """

    index: int
    events: int
    itl_ns: float | None
    gaps_ns: array[int]
    silent: bool
    stalled: bool = False


def parts_of(
    window: Window,
    timelines: Sequence[Timeline],
    tokens_of: Mapping[int, int | None],
    rows: Sequence[RequestRow],
) -> list[Part]:
    """Return the parts of all requests of which anything arrived within the window.

    A window's edge cuts a gap of every stream, and these are nobody's. One that is longer than all whole gaps of its
    request is a stall, and without it the stream that stalls would look as fast as the others: it belongs to the part.
    A request without a whole gap is held against the longest of all.
    """
    cuts = [cut for cut in (_cut(window, t) for t in timelines if t.index in tokens_of) if cut is not None]
    longest = max((cut.longest_ns for cut in cuts), default=0)
    going = _going_on(rows, window)
    return [_part(window, cut, tokens_of[cut.timeline.index], longest, going) for cut in cuts]


def silent_streams(streams: int, rows: Sequence[RequestRow], parts: Sequence[Part]) -> int:
    """Count the streams of which nothing arrived within the window."""
    slots = {row.index: row.slot for row in rows}
    return max(0, streams - len({slots[part.index] for part in parts}))


def gaps_of(parts: Sequence[Part], silent: int) -> Distribution:
    """Summarise the gaps that ended in the window; those that outlast it, and `silent` streams, are censored."""
    pooled = array("q")
    for part in parts:
        pooled.extend(part.gaps_ns)
    return summarise(pooled, censored=silent + sum(part.silent for part in parts))


class _Cut(Struct, frozen=True):
    """Hold which of a request's events lie within the window, and the gaps between them."""

    timeline: Timeline
    first: int
    last: int
    gaps_ns: array[int]
    longest_ns: int


def _cut(window: Window, timeline: Timeline) -> _Cut | None:
    times = timeline.times_ns
    first, last = bisect_left(times, window.begin_ns), bisect_left(times, window.end_ns)
    if last <= first:
        return None
    gaps = array("q", map(int.__sub__, times[first + 1 : last], times[first:last]))
    return _Cut(timeline, first, last, gaps, max(gaps, default=0))


def _part(window: Window, cut: _Cut, tokens: int | None, longest_ns: int, going: set[int]) -> Part:
    timeline, first, last, gaps = cut.timeline, cut.first, cut.last, cut.gaps_ns
    times, counts = timeline.times_ns, timeline.tokens
    most_ns = cut.longest_ns if gaps else longest_ns
    begin_ns, end_ns, after = times[first], times[last - 1], first + 1
    if first and begin_ns - window.begin_ns > most_ns:
        begin_ns, after = window.begin_ns, first
    silent_ns = window.end_ns - end_ns if timeline.index in going else 0
    silent = silent_ns > most_ns
    stalled = silent_ns > max(STALLED_SHARE * window.length_ns, STALLED_GAPS * most_ns)
    if silent:
        end_ns = window.end_ns
    if counts is not None:
        later: float = sum(counts[after:last])
    else:
        later = (last - after) * tokens_an_event(timeline, tokens)
    itl_ns = (end_ns - begin_ns) / later if later > 0 else None
    ended = gaps + array("q", [times[first] - times[first - 1]]) if first else gaps
    return Part(timeline.index, last - first, itl_ns, ended, silent, stalled)


def _going_on(rows: Sequence[RequestRow], window: Window) -> set[int]:
    """Return the requests that were in flight when the window ended."""
    return {
        row.index
        for row in rows
        if row.sent_ns is not None
        and row.sent_ns < window.end_ns
        and (row.end_ns is None or row.end_ns >= window.end_ns)
    }
