"""A soak over time as lines: its windows and its thinned courses on one axis, from the first request on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from msgspec import Struct

from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.segment import Course, SegmentResult
from nameplate.measure.soak.window import WindowResult
from nameplate.pages.timeline import MOST_POINTS, Axis, Between, Kind, Mark, Point, Trace, thinned
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_fates import since_s
from nameplate.report.soak_words import SERIES

# What is shaded one by one; a server that is lost more often is told in the table.
MOST_BETWEEN = 200
# A window that was seen for less of its length says too little to be drawn; it stands in the table.
LEAST_SEEN = 0.1


def axis_of(result: SoakResult) -> Axis:
    """Return the time axis of a soak: losses of the server, gaps, drains, collapses, and where segments begin."""
    between: list[Between] = []
    ends = [since_s(result, segment, segment.observed_ns) for segment in result.segments]
    for segment, end_s in zip(result.segments, ends, strict=True):
        for outage in segment.outages:
            begin_s = since_s(result, segment, outage.lost_ns)
            back_s = end_s if outage.back_ns is None else since_s(result, segment, outage.back_ns)
            back = "not back" if outage.back_ns is None else f"away {numbers.duration(outage.away_ns)}"
            said = f"server lost, {back}, {numbers.count(outage.failures, 'request')} failed"
            between.append(_between("outage", begin_s, back_s, said))
        if segment.submit_ended_ns is not None and segment.observed_ns > segment.submit_ended_ns:
            begin_s = since_s(result, segment, segment.submit_ended_ns)
            between.append(_between("drain", begin_s, end_s, "nothing more was submitted"))
    for (before, before_end_s), (after, _) in pairwise(zip(result.segments, ends, strict=True)):
        begin_s = since_s(result, after, after.submitted_ns)
        said = (
            f"between {safe(before.segment, 40)} and {safe(after.segment, 40)}: nothing submitted, in no rate"
        )
        between.append(_between("gap", min(before_end_s, begin_s), max(before_end_s, begin_s), said))
    for held in result.drift.series:
        if held.collapse is not None:
            until_s = max(ends) if held.collapse.until_s is None else held.collapse.until_s
            name = SERIES.get(held.series, held.series)
            between.append(_between("collapse", held.collapse.from_s, until_s, f"{name} collapsed"))
    marks = [
        Mark(since_s(result, segment, segment.submitted_ns), safe(segment.segment.rpartition(".")[2], 40))
        for segment in result.segments
    ]
    return Axis(
        end_s=max(1e-9, *ends),
        between=tuple(between[:MOST_BETWEEN]),
        marks=tuple(marks) if 1 < len(marks) <= MOST_BETWEEN else (),
    )


def _between(kind: Kind, begin_s: float, end_s: float, said: str) -> Between:
    return Between(kind, begin_s, max(begin_s, end_s), said)


class Shown(Struct, frozen=True):
    """Hold the windows that a page shows, each with its segment and its place there: one of `every` of the `whole`."""

    windows: tuple[tuple[SegmentResult, int, WindowResult], ...]
    every: int
    whole: int


def windows_shown(result: SoakResult, most: int = MOST_POINTS) -> Shown:
    """Return at most so many windows, evenly: percentiles have no mean, so none is made of them."""
    held = [(segment, at, window) for segment in result.segments for at, window in enumerate(segment.windows)]
    every = max(1, -(-len(held) // most))
    return Shown(tuple(held[::every]), every, len(held))


def window_trace(
    result: SoakResult, shown: Shown, name: str, read: Callable[[WindowResult], float | None]
) -> Trace:
    """Return one value of the windows as a line: each at its middle, a piece a segment."""
    pieces: dict[str, list[Point]] = {}
    for segment, _, window in shown.windows:
        middle_s = since_s(result, segment, window.begin_ns + window.observed_ns // 2)
        seen = window.observed_ns >= LEAST_SEEN * (window.end_ns - window.begin_ns)
        value = read(window) if seen else None
        pieces.setdefault(segment.segment, []).append(Point(middle_s, value, partial=window.partial))
    return Trace(name, tuple(map(tuple, pieces.values())))


def courses_named(result: SoakResult, name: str) -> list[tuple[int, int, Course]]:
    """Return a series of every segment, with the segment's place and its own."""
    return [
        (at, place, course)
        for at, segment in enumerate(result.segments)
        for place, course in enumerate(segment.courses)
        if course.name == name
    ]


def course_trace(result: SoakResult, name: str, said: str) -> Trace | None:
    """Return a thinned course of all segments as a line with its band, a piece a segment; None where there is none."""
    found = courses_named(result, name)
    if not found:
        return None
    most = max(2, MOST_POINTS // len(found))
    pieces = []
    for at, _, course in found:
        segment = result.segments[at]
        points = [
            Point(since_s(result, segment, t_ns), mean, low, high)
            for t_ns, mean, low, high in zip(course.t_ns, course.mean, course.min, course.max, strict=True)
        ]
        pieces.append(thinned(points, most))
    return Trace(said, tuple(pieces))
