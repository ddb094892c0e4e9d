"""Trend lines: only where the verdict says that a series drifted or stepped, and over the windows that it judged."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.series import points_of
from nameplate.pages.timeline import Trend
from nameplate.report.soak_words import SERIES, quantity
from nameplate.statistics.ranks import median
from nameplate.verdict.drift import Series, SeriesDrift, SeriesPoints

DRAWN = ("drifting up", "drifting down", "stepped")


def trends_of(result: SoakResult, series: Series, tint: str) -> tuple[Trend, ...]:
    """Return a series' trends and levels over time, one line a stretch; nothing where the verdict found none."""
    found = [held for held in result.drift.series if held.series == series and held.conclusion in DRAWN]
    if not found:
        return ()
    judged = points_of(result.segments, result.parts, result.warm_up.windows)
    lines: list[Trend] = []
    for held in found:
        points = next(
            (one for one in judged if (one.series, one.stretch) == (series, held.stretch) and one.times_s),
            None,
        )
        if points is not None:
            lines += (_steps if held.conclusion == "stepped" else _slope)(held, points, tint)
    return tuple(lines)


def _slope(held: SeriesDrift, points: SeriesPoints, tint: str) -> Sequence[Trend]:
    """Return the robust line: its slope through the medians of times and values (Theil and Sen)."""
    if held.slope_per_hour is None or held.level is None:
        return ()
    middle, begin, end = median(points.times_s), points.times_s[0], points.times_s[-1]
    per_s = held.slope_per_hour / 3600
    said = f"{SERIES.get(held.series, held.series)} {held.conclusion}"
    return (
        Trend(
            begin, end, held.level + per_s * (begin - middle), held.level + per_s * (end - middle), said, tint
        ),
    )


def _steps(held: SeriesDrift, points: SeriesPoints, tint: str) -> Sequence[Trend]:
    """Return a level before each step and one after the last."""
    if not held.shifts:
        return ()
    name = SERIES.get(held.series, held.series)
    edges = [points.starts_s[0], *(shift.at_s for shift in held.shifts), points.times_s[-1]]
    levels = [*(shift.before for shift in held.shifts), held.shifts[-1].after]
    return [
        Trend(begin, end, level, level, f"{name} at {quantity(level, held.unit)}", tint)
        for begin, end, level in zip(edges, edges[1:], levels, strict=False)
    ]
