"""Timelines: values over time as lines that break where nothing was seen, with what came in between shaded.

A value stands for a stretch of time; where that holds several samples, the line is their mean and the band their
lowest and highest. A line never crosses a loss, a gap or a missing value: its points carry the number of their run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from nameplate.pages.chart import Panel, axis, colour, fixed, panel
from nameplate.pages.scale import TimeScale, time_scale

# More points than a chart has columns show nothing more.
MOST_POINTS = 480
# Points further apart than this many times their usual distance have nothing between them.
MISSING_FROM = 2.5
# A line whose values differ by more than this is drawn on a logarithmic axis, where none is zero.
LOG_FROM = 30.0

Kind = Literal["outage", "gap", "drain", "collapse"]
_TINTS: dict[Kind, str] = {"outage": "bad", "gap": "none", "drain": "s6", "collapse": "warn"}


class Point(Struct, frozen=True):
    """Hold a value at `t_s` seconds, null where it is not known; `low` and `high` where it is a mean of several."""

    t_s: float
    value: float | None
    low: float | None = None
    high: float | None = None
    partial: bool = False


class Trace(Struct, frozen=True):
    """Hold one line: its name and its points in the order of time; pieces have nothing in common but the name."""

    name: str
    pieces: tuple[tuple[Point, ...], ...]

    @property
    def points(self) -> list[Point]:
        return [point for piece in self.pieces for point in piece]


class Between(Struct, frozen=True):
    """Hold a stretch of time that no line crosses (`drain` excepted), shaded and named."""

    kind: Kind
    begin_s: float
    end_s: float
    said: str


class Mark(Struct, frozen=True):
    """Hold a moment with its name."""

    at_s: float
    said: str


class Trend(Struct, frozen=True):
    """Hold a straight line that a verdict rests on, in the colour of the line that it is about."""

    begin_s: float
    end_s: float
    begin: float
    end: float
    said: str
    tint: str


class Axis(Struct, frozen=True, kw_only=True):
    """Hold what all panels of a figure share: the whole of the time, what lies in between, and moments."""

    end_s: float
    begin_s: float = 0.0
    since: str = "since the first request"
    between: tuple[Between, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def scale(self) -> TimeScale:
        return time_scale([self.begin_s * 1e9, self.end_s * 1e9])

    def at(self, seconds: float) -> float:
        """Return a moment in the axis' unit."""
        return _six(seconds * 1e9 / self.scale.ns)


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> tuple[Point, ...]:
    """Return at most so many points, means over stretches of equal length; lowest and highest are kept.

    Not for percentiles, of which there is no mean.
    """
    if len(points) <= most:
        return tuple(points)
    begin, length = points[0].t_s, (points[-1].t_s - points[0].t_s) / most or 1.0
    held: dict[int, list[Point]] = {}
    for point in points:
        held.setdefault(min(most - 1, int((point.t_s - begin) / length)), []).append(point)
    return tuple(_mean(found) for _, found in sorted(held.items()))


def every(points: Sequence[Point], most: int = MOST_POINTS) -> tuple[Point, ...]:
    """Return one of every k points, so that there are at most so many: for values that have no mean."""
    return tuple(points[:: max(1, -(-len(points) // most))])


def _mean(points: Sequence[Point]) -> Point:
    known = [point for point in points if point.value is not None]
    if not known:
        return Point(points[0].t_s, None)
    return Point(
        points[0].t_s,
        statistics.fmean(point.value for point in known if point.value is not None),
        min(_low(point) for point in known),
        max(_high(point) for point in known),
    )


def _low(point: Point) -> float:
    return point.low if point.low is not None else point.value or 0.0


def _high(point: Point) -> float:
    return point.high if point.high is not None else point.value or 0.0


def runs_of(trace: Trace, between: Iterable[Between] = ()) -> list[list[Point]]:
    """Return the stretches of a line that have no gap in them.

    A run ends with its piece, at a missing value, where points are missing, and at whatever came in between. A partial
    point stands alone.
    """
    walls = [one for one in between if one.kind in ("outage", "gap")]
    found: list[list[Point]] = []
    for piece in trace.pieces:
        steps = [after.t_s - before.t_s for before, after in pairwise(piece)]
        usual = statistics.median(steps) if steps else 0.0
        last: Point | None = None
        for point in piece:
            if point.value is None:
                last = None
                continue
            far = last is not None and point.t_s - last.t_s > MISSING_FROM * usual
            if last is None or far or point.partial or last.partial or _parted(last, point, walls):
                found.append([])
            found[-1].append(point)
            last = point
    return found


def _parted(before: Point, after: Point, walls: Sequence[Between]) -> bool:
    """Tell whether something begins or ends between two points; within one loss both were seen."""
    return any(before.t_s < edge <= after.t_s for wall in walls for edge in (wall.begin_s, wall.end_s))


def timeline(
    shared: Axis,
    traces: Sequence[Trace],
    title: str,
    about: str,
    *,
    per: float = 1.0,
    unit: str = "",
    colours: Sequence[str] = ("s1", "s2", "s3", "s4"),
    height: int = 150,
    form: str | None = None,
    most: float | None = None,
    trends: Sequence[Trend] = (),
    named: bool = False,
    log: bool | None = None,
) -> Panel:
    """Return the panel of one quantity over time: values divided by `per`, in `unit`.

    `form` is the number format of its axis, `most` where that ends, `named` writes what came in between into the panel.
    """
    values = _values(shared, traces, per)
    known = [value for row in values if isinstance(value := row["v"], float)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    logarithmic = (low > 0 and high > LOG_FROM * low) if log is None else log and low > 0
    names = [trace.name for trace in traces]
    x = axis(
        "t",
        f"{shared.scale.unit} {shared.since}",
        scale={"domain": [shared.at(shared.begin_s), shared.at(shared.end_s)], "nice": False},
        axis={"tickCount": 10},
    )
    y = axis(
        "v",
        f"{title}{f', {unit}' if unit else ''}{' (logarithmic)' if logarithmic else ''}",
        scale={"type": "log"} if logarithmic else _linear(low, high, most),
        # The same room for labels in every panel, so that their times stand below each other.
        axis={"minExtent": 46, "maxExtent": 46, **({"format": form} if form else {})},
    )
    colouring: Mapping[str, object] = fixed(colours[0])
    if len(names) > 1:
        legend = {"columns": 2, "symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 3}
        colouring = {**colour("s", names, colours[: len(names)]), "legend": legend}
    layer: list[dict[str, object]] = [*_shades(shared, named)]
    if any("l" in row for row in values):
        layer.append(
            {
                "transform": [{"filter": "isValid(datum.l)"}],
                "mark": {"type": "area", "opacity": 0.22, "line": False},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "l"},
                    "y2": {"field": "h"},
                    "color": colouring,
                    "detail": {"field": "r"},
                },
            }
        )
    layer.append(
        {
            "mark": {"type": "line", "strokeWidth": 1.8, "strokeJoin": "round"},
            "encoding": {"x": x, "y": y, "color": colouring, "detail": {"field": "r"}},
        }
    )
    if any("p" in row for row in values):
        layer.append(
            {
                "transform": [{"filter": "datum.p"}],
                "mark": {"type": "point", "size": 26},
                "encoding": {"x": x, "y": y, "color": colouring},
            }
        )
    layer += _trends(shared, trends, per)
    layer.append(_hover(shared, x, names, title, unit))
    return panel(values, about, height=height, layer=layer)


def _linear(low: float, high: float, most: float | None) -> dict[str, object]:
    """Return a scale from zero; one that holds nothing but zeros ends at one, as there is no other unit."""
    top = most if most is not None else (1.0 if low == high == 0 else None)
    return {
        "zero": True,
        **({} if top is None else {"domainMax": top}),
        **({"domainMin": 0} if low >= 0 else {}),
    }


def _values(shared: Axis, traces: Sequence[Trace], per: float) -> list[dict[str, object]]:
    """Return the rows of a chart: time, value, series, run, and a mark on points that no line would show."""
    rows: list[dict[str, object]] = []
    number = 0
    for trace in traces:
        for run in runs_of(trace, shared.between):
            number += 1
            for point in run:
                assert point.value is not None
                row: dict[str, object] = {
                    "t": shared.at(point.t_s),
                    "v": _six(point.value / per),
                    "s": trace.name,
                    "r": number,
                }
                if point.low is not None and point.high is not None and point.low != point.high:
                    row |= {"l": _six(point.low / per), "h": _six(point.high / per)}
                if len(run) == 1 or point.partial:
                    row["p"] = True
                rows.append(row)
    return rows


def _shades(shared: Axis, named: bool) -> Iterable[dict[str, object]]:
    """Draw what came in between, at least a pixel wide, and moments as dashed lines."""
    for kind, tint in _TINTS.items():
        held = [one for one in shared.between if one.kind == kind]
        if not held:
            continue
        values = [
            {
                "b": shared.at(max(shared.begin_s, one.begin_s)),
                "e": shared.at(min(one.end_s, shared.end_s)),
                "said": one.said,
            }
            for one in held
        ]
        place = {"x": {"field": "b", "type": "quantitative"}, "x2": {"field": "e"}}
        mark = {"type": "rect", "opacity": 0.16, "color": f"var(--{tint})", "stroke": f"var(--{tint})"}
        yield {
            "data": {"values": values},
            "mark": mark,
            "encoding": {**place, "tooltip": {"field": "said", "title": kind}},
        }
        if named and kind != "drain":
            yield from _names(shared, kind, tint, held)
    if shared.marks:
        place = {"x": {"field": "b", "type": "quantitative"}}
        values = [{"b": shared.at(mark.at_s), "said": mark.said} for mark in shared.marks]
        layers: list[dict[str, object]] = [
            {"mark": {"type": "rule", "strokeDash": [3, 3], "color": "var(--soft)"}, "encoding": place}
        ]
        if named:
            words = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "color": "var(--soft)"}
            layers.append(
                {"mark": words, "encoding": {**place, "y": {"value": 2}, "text": {"field": "said"}}}
            )
        yield {"data": {"values": values}, "layer": layers}


def _names(shared: Axis, kind: Kind, tint: str, held: Sequence[Between]) -> Iterable[dict[str, object]]:
    """Write the first few names beside their shades, on the side that has room."""
    begin, whole = shared.begin_s, shared.end_s - shared.begin_s
    for late in (False, True):
        rows = [
            {"b": shared.at(one.end_s if late else one.begin_s), "kind": kind}
            for one in held[:6]
            if (one.begin_s - begin > 0.8 * whole) is late
        ]
        if not rows:
            continue
        side = {"align": "right", "dx": -4} if late else {"align": "left", "dx": 4}
        yield {
            "data": {"values": rows},
            "mark": {"type": "text", "baseline": "top", **side, "color": f"var(--{tint})", "fontWeight": 600},
            "encoding": {
                "x": {"field": "b", "type": "quantitative"},
                # Below the names of moments: a gap begins where a segment does.
                "y": {"value": 15},
                "text": {"field": "kind"},
            },
        }


def _trends(shared: Axis, trends: Sequence[Trend], per: float) -> Iterable[dict[str, object]]:
    for tint in dict.fromkeys(one.tint for one in trends):
        values = [
            {
                "b": shared.at(one.begin_s),
                "e": shared.at(one.end_s),
                "v": _six(one.begin / per),
                "w": _six(one.end / per),
                "said": one.said,
            }
            for one in trends
            if one.tint == tint
        ]
        mark = {"type": "rule", "strokeDash": [7, 4], "strokeWidth": 2.5, "color": f"var(--{tint})"}
        yield {
            "data": {"values": values},
            "mark": {**mark, "opacity": 0.75},
            "encoding": {
                "x": {"field": "b", "type": "quantitative"},
                "x2": {"field": "e"},
                "y": {"field": "v", "type": "quantitative"},
                "y2": {"field": "w"},
                "tooltip": {"field": "said", "title": "verdict"},
            },
        }


def _hover(
    shared: Axis, x: dict[str, object], names: Sequence[str], title: str, unit: str
) -> dict[str, object]:
    """Return a line below the pointer that tells all values of its moment at once."""
    told = [{"field": "t", "title": shared.scale.unit, "format": ".4~g"}]
    for name in names:
        # A single line is told by the quantity's own name. Names are ours: none holds what a path would need.
        said = name if len(names) > 1 else title
        told.append({"field": name, "title": f"{said}, {unit}" if unit else said, "format": ",.4~g"})
    return {
        "transform": [{"pivot": "s", "value": "v", "groupby": ["t"]}],
        "params": [
            {
                "name": "at",
                "select": {
                    "type": "point",
                    "on": "pointerover",
                    "clear": "pointerout",
                    "encodings": ["x"],
                    "toggle": False,
                },
            }
        ],
        "mark": {"type": "rule", "strokeWidth": 5, "color": "var(--soft)"},
        "encoding": {
            "x": x,
            "opacity": {"condition": {"param": "at", "empty": False, "value": 0.35}, "value": 0},
            "tooltip": told,
        },
    }


def _six(value: float) -> float:
    return float(f"{value:.6g}")
