"""Timelines: lines that break where nothing was seen, thinning that keeps extremes and says how many there are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.pages.timeline import (
    MOST_POINTS,
    Axis,
    Between,
    Mark,
    Point,
    Trace,
    Trend,
    every,
    runs_of,
    thinned,
    timeline,
)

LINE = Trace("one", (tuple(Point(float(at), float(at)) for at in range(20)),))


def rows(axis: Axis, trace: Trace) -> list[dict[str, Any]]:
    spec = timeline(axis, (trace,), "value", "about").spec
    found: list[dict[str, Any]] = spec["data"]["values"]
    return found


def runs(found: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Return the first and last moment of each run."""
    numbers = sorted({row["r"] for row in found})
    times = [[row["t"] for row in found if row["r"] == number] for number in numbers]
    return [(min(held), max(held)) for held in times]


def test_no_line_crosses_a_loss() -> None:
    """A run ends before an outage or gap; what was seen within one is a run of its own. A drain is crossed."""
    for kind, parts in (("outage", 3), ("gap", 3), ("drain", 1)):
        between = Between(kind, 4.5, 9.5, "gone")  # type: ignore[arg-type]
        found = runs_of(LINE, [between])
        assert len(found) == parts
        if parts == 3:
            assert [(run[0].t_s, run[-1].t_s) for run in found] == [(0, 4), (5, 9), (10, 19)]


def test_no_line_crosses_what_is_missing() -> None:
    """A missing value, missing points, another piece and a partial point each end a run, by its number."""
    missing = tuple(Point(float(at), None if at == 7 else 1.0) for at in range(20))
    assert [len(run) for run in runs_of(Trace("a", (missing,)))] == [7, 12]
    sparse = tuple(point for point in LINE.points if not 5 <= point.t_s < 9)
    assert [len(run) for run in runs_of(Trace("a", (sparse,)))] == [5, 11]
    assert len(runs_of(Trace("a", (LINE.pieces[0][:10], LINE.pieces[0][10:])))) == 2
    partial = tuple(Point(point.t_s, point.value, partial=point.t_s == 3) for point in LINE.points)
    assert [len(run) for run in runs_of(Trace("a", (partial,)))] == [3, 1, 16]
    found = rows(Axis(end_s=19.0), Trace("a", (missing,)))
    assert runs(found) == [(0, 6), (8, 19)] and all(row["v"] is not None for row in found)


def test_a_point_that_stands_alone_is_drawn() -> None:
    """A run of one point would be no line: it is marked as a dot."""
    alone = Trace("a", ((Point(0.0, 1.0), Point(1.0, None), Point(2.0, 1.0), Point(3.0, 2.0)),))
    assert [row.get("p") for row in rows(Axis(end_s=3.0), alone)] == [True, None, None]


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), max_size=3000),
    st.integers(2, 500),
)
def test_thinning_is_bounded_and_keeps_extremes(values: list[float | None], most: int) -> None:
    """However many points there are, so many are left, in order, and neither the lowest nor the highest is lost."""
    points = [Point(float(at), value) for at, value in enumerate(values)]
    found = thinned(points, most)
    assert len(found) <= max(most, 0) and len(every(points, most)) <= most
    assert [point.t_s for point in found] == sorted(point.t_s for point in found)
    known = [value for value in values if value is not None]
    held = [point for point in found if point.value is not None]
    assert bool(known) == bool(held)
    if known:
        assert min(p.low if p.low is not None else p.value or 0 for p in held) == pytest.approx(min(known))
        assert max(p.high if p.high is not None else p.value or 0 for p in held) == pytest.approx(max(known))


def test_a_band_is_drawn_of_lowest_and_highest() -> None:
    """Thinned points carry both; a point of one sample has no band."""
    points = tuple(Point(float(at), float(at % 7)) for at in range(5000))
    found = rows(Axis(end_s=5000.0), Trace("a", (thinned(points),)))
    assert len(found) <= MOST_POINTS and all(row["l"] <= row["v"] <= row["h"] for row in found)
    assert not any("l" in row for row in rows(Axis(end_s=19.0), LINE))


def test_an_axis_has_one_unit() -> None:
    """Hours for a soak of hours, seconds for one of seconds; every layer uses the same."""
    axis = Axis(end_s=28_800.0, marks=(Mark(3600.0, "s2"),), between=(Between("gap", 7200.0, 9000.0, "gap"),))
    assert axis.scale.unit == "h" and axis.at(7200.0) == 2.0
    assert Axis(end_s=60.0).scale.unit == "s"
    trend = Trend(0.0, 3600.0, 1.0, 2.0, "up", "s1")
    spec: Any = timeline(axis, (LINE,), "value", "about", trends=(trend,), named=True).spec
    shades = [layer for layer in spec["layer"] if "data" in layer]
    assert {row["b"] for layer in shades for row in layer["data"]["values"]} == {0.0, 1.0, 2.0}


def test_zeros_have_an_axis() -> None:
    """A line of nothing but zeros stands at the bottom, not in the middle of an axis without extent."""
    flat = Trace("a", ((Point(0.0, 0.0), Point(1.0, 0.0)),))
    spec: Any = timeline(Axis(end_s=1.0), (flat,), "value", "about").spec
    scale = spec["layer"][0]["encoding"]["y"]["scale"]
    assert scale["domainMax"] == 1.0 and scale["domainMin"] == 0
