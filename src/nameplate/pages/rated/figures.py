"""The figures of a boundary: both measures by level, all confirmations against the limit, the search, "
"the surface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape
from nameplate.pages.chart import axis, colour, figure, fixed, panel
from nameplate.pages.rated.points import Point
from nameplate.pages.rated.trials import name_of
from nameplate.pages.scale import TimeScale, time_scale
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import status
from nameplate.report import numbers

_VERDICTS = (("pass", "good"), ("fail", "bad"), ("inconclusive", "warn"), ("invalid", "none"))
_ROLES = ("confirmation", "locator")


def boundary_figure(shape: PlateShape, contract: Contract, slo: Slo, points: Sequence[Point]) -> h.Node:
    """Return judged latency and output throughput by level, two panels with scales of their own."""
    if not points:
        return None
    scale = slo_scale(slo, [point.judged for point in points])
    levels = levels_of(contract)
    name = name_of(slo)
    values = [_row(point, scale) for point in points]
    level = axis(
        "level",
        f"{_level_title(contract)}",
        scale={"zero": False, "nice": False, "padding": 14},
        axis={"tickMinStep": 1},
    )
    hover = [
        {"field": "trial", "title": "trial"},
        {"field": "told", "title": "level"},
        {"field": "judged", "title": f"{name}, {scale.unit}"},
        {"field": "output", "title": "output tok/s"},
        {"field": "status", "title": "verdict"},
    ]
    judged = panel(
        values,
        f"{name} of each trial by level, against the limit of {limit_words(slo)}",
        layer=[
            limit_rule(slo, scale),
            {
                "mark": {"type": "point", "filled": True},
                "encoding": {
                    "x": level,
                    "y": axis("judged", f"{name}, {scale.unit}", scale={"zero": True}),
                    "color": _verdicts(points),
                    "shape": _role_shape(),
                    "tooltip": hover,
                },
            },
        ],
    )
    throughput = panel(
        values,
        "Output tokens a second of each trial by level",
        mark={"type": "point", "filled": True},
        encoding={
            "x": level,
            "y": axis("output", "output tok/s", scale={"zero": True}),
            "color": _verdicts(points),
            "shape": _role_shape(),
            "tooltip": hover,
        },
    )
    return figure(
        f"{name} decides, output throughput does not: {shape.shape}"
        if shape.status == "confirmed" and shape.pass_level is not None
        else f"{name} and output throughput by level: {shape.shape}",
        "Each panel has a scale of its own. Where throughput overlaps across the boundary, only the "
        "latency tells the "
        "levels apart. Circles are confirmation trials; crosses are the locator's, which never count, "
        "and have no throughput "
        "where they were cut short.",
        (judged, throughput),
        _points_table(points, slo, levels.head),
    )


def _level_title(contract: Contract) -> str:
    return "requests in flight (C)" if contract.rate is None else "requests a second"


def confirmations_figure(
    contract: Contract, shapes: Sequence[tuple[PlateShape, Sequence[Point]]], slo: Slo
) -> h.Node:
    """Return every confirmation trial of every shape against the limit."""
    rows = [
        (f"{shape.shape} {point.told}", shape, point)
        for shape, points in shapes
        for point in sorted(points, key=lambda one: (one.level, one.order))
        if point.role == "confirmation"
    ]
    if not rows:
        return None
    scale = slo_scale(slo, [point.judged for _, _, point in rows])
    name = name_of(slo)
    order = list(dict.fromkeys(row for row, _, _ in rows))
    values = [{**_row(point, scale), "row": row} for row, _, point in rows]
    drawn = panel(
        values,
        f"{name} of all confirmation trials, one line a level, against the limit of {limit_words(slo)}",
        height=max(80, 34 * len(order)),
        layer=[
            limit_rule(slo, scale, "x"),
            {
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 0.85},
                "encoding": {
                    "x": axis(
                        "judged",
                        f"{name}, {scale.unit} (limit {limit_words(slo)})",
                        scale={"zero": False, "padding": 12},
                    ),
                    "y": {
                        "field": "row",
                        "type": "nominal",
                        "sort": order,
                        "title": None,
                        "axis": {"labelLimit": 220},
                    },
                    "color": _verdicts(point for _, _, point in rows),
                    "tooltip": [
                        {"field": "trial", "title": "trial"},
                        {"field": "judged", "title": f"{name}, {scale.unit}"},
                        {"field": "status", "title": "verdict"},
                    ],
                },
            },
        ],
    )
    never = sum(point.never for _, _, point in rows)
    return figure(
        "All confirmation trials against the limit",
        "Each point is one independent trial, with its own load process, prompts and evidence. The "
        "dashed line is the limit."
        + (f" {numbers.count(never, 'trial')} reached no finite value and is not drawn." if never else ""),
        (drawn,),
        _points_table([point for _, _, point in rows], slo, levels_of(contract).head),
    )


def path_figure(contract: Contract, slo: Slo, points: Sequence[Point]) -> h.Node:
    """Return the path of the search: which level was tried when, locator and confirmations told apart."""
    if len(points) < 2:
        return None
    scale = slo_scale(slo, [point.judged for point in points])
    log = max(point.level for point in points) > 8 * max(1e-9, min(point.level for point in points))
    values = [_row(point, scale) for point in points]
    drawn = panel(
        values,
        "Level of each trial in the order in which they ran, by role and verdict",
        layer=[
            {
                "mark": {
                    "type": "line",
                    "interpolate": "step-after",
                    "strokeWidth": 1,
                    "color": "var(--line)",
                },
                "encoding": {
                    "x": {"field": "order", "type": "quantitative"},
                    "y": {"field": "level", "type": "quantitative"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {
                    "x": axis(
                        "order",
                        "trial, in the order in which they ran",
                        axis={"tickMinStep": 1},
                        scale={"padding": 10},
                    ),
                    "y": axis(
                        "level",
                        _level_title(contract),
                        scale={"type": "log", "base": 2} if log else {"zero": False},
                    ),
                    "color": _verdicts(points),
                    "shape": _role_shape(),
                    "tooltip": [
                        {"field": "trial"},
                        {"field": "role"},
                        {"field": "told", "title": "level"},
                        {"field": "status", "title": "verdict"},
                    ],
                },
            },
        ],
    )
    return figure(
        "The path of the search",
        "The locator (crosses) only finds where to confirm: one trial a level, and none of them counts. "
        "The confirmations "
        "(circles) carry the claim, on both sides of the boundary.",
        (drawn,),
        _points_table(points, slo, levels_of(contract).head),
    )


def surface_figure(contract: Contract, shapes: Sequence[PlateShape]) -> h.Node:
    """Return what each shape is rated: the capacity surface; nothing for a single shape, no chart without numbers."""
    if len(shapes) < 2:
        return None
    levels = levels_of(contract)
    values = [
        {
            "shape": str(shape.shape),
            "rated": None if shape.rated is None else levels.value(shape.rated),
            "status": shape.status.value,
            "said": "no number" if shape.rated is None else levels.told(shape.rated),
        }
        for shape in shapes
    ]
    place = {
        "field": "shape",
        "type": "nominal",
        "sort": None,
        "title": "shape, input/output tokens",
        "axis": {"labelAngle": 0},
    }
    drawn = panel(
        values,
        "Rated level of each shape",
        layer=[
            {
                "mark": {"type": "bar", "width": {"band": 0.5}, "cornerRadiusEnd": 3},
                "encoding": {
                    "x": place,
                    "y": axis("rated", f"rated, {levels.noun}"),
                    "color": {
                        "condition": {"test": "datum.status === 'confirmed'", "value": "var(--s1)"},
                        "value": "var(--warn)",
                    },
                },
            },
            {
                "mark": {"type": "text", "dy": -9, "fontWeight": 600},
                "encoding": {
                    "x": place,
                    "y": {"field": "rated", "type": "quantitative"},
                    "text": {"field": "said"},
                    "color": fixed("ink"),
                },
            },
        ],
    )
    rows: list[list[Cell | str]] = [
        [
            str(shape.shape),
            Cell(
                None if shape.rated is None else levels.told(shape.rated), shape.rated, f"shapes.{at}.rated"
            ),
            Cell(
                None if shape.operate_at is None else levels.told(shape.operate_at),
                shape.operate_at,
                f"shapes.{at}.operate_at",
            ),
            Cell(status(shape.status), shape.status.value, f"shapes.{at}.status"),
        ]
        for at, shape in enumerate(shapes)
    ]
    surface = table(
        (
            Column("shape", kind="text"),
            Column("rated"),
            Column("operate at"),
            Column("status", kind="text"),
        ),
        rows,
        "The capacity surface",
    )
    if all(shape.rated is None for shape in shapes):
        return surface
    return figure(
        "The capacity surface",
        "One machine, several request shapes, one promise. The numbers are alternatives: the host takes "
        "one of these loads, "
        "not their sum. What is not confirmed on both sides has another colour, and its status stands in the table.",
        (drawn,),
        surface,
    )


def slo_scale(slo: Slo, values: Iterable[float | None]) -> TimeScale:
    """Return the axis of an SLO's judged values: a time unit, or percent for an error rate."""
    if slo.limit_ratio is not None:
        return TimeScale("%", 0.01)
    return time_scale([slo.limit_ns, *values])


def limit_words(slo: Slo) -> str:
    """Write an SLO's limit."""
    return f"{slo.limit_ratio * 100:.6g}%" if slo.limit_ratio is not None else numbers.limit(slo.limit_ns)


def limit_rule(slo: Slo, scale: TimeScale, on: Literal["x", "y"] = "y") -> dict[str, object]:
    """Return the limit as a dashed line across an axis, with its words."""
    limit = scale.of(slo.limit_ratio if slo.limit_ratio is not None else slo.limit_ns)
    place = {"field": "limit", "type": "quantitative"}
    words = (
        # At the right: the title of the axis stands at the left above the plot, where a limit can be the highest value.
        {"align": "right", "x": "width", "dx": -2, "dy": -6}
        if on == "y"
        else {"align": "left", "y": 0, "dx": 5, "baseline": "top"}
    )
    return {
        "data": {"values": [{"limit": limit, "said": f"limit {limit_words(slo)}"}]},
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [5, 4], "color": "var(--ink)"}, "encoding": {on: place}},
            {
                "mark": {"type": "text", "color": "var(--soft)", **words},
                "encoding": {on: place, "text": {"field": "said"}},
            },
        ],
    }


def _verdicts(points: Iterable[Point]) -> dict[str, object]:
    """Return the colours of the verdicts that occur."""
    occur = {point.status for point in points}
    known = [(name, shade) for name, shade in _VERDICTS if name in occur]
    return colour("status", [name for name, _ in known], [shade for _, shade in known], "verdict")


def _role_shape() -> dict[str, object]:
    return {
        "field": "role",
        "type": "nominal",
        "title": "role",
        "scale": {"domain": list(_ROLES), "range": ["circle", "cross"]},
    }


def _row(point: Point, scale: TimeScale) -> dict[str, object]:
    return {
        "trial": point.key,
        "role": point.role,
        "order": point.order,
        "level": point.level,
        "told": point.told,
        "status": point.status,
        "judged": scale.of(point.judged),
        "output": None if point.output_per_s is None else float(f"{point.output_per_s:.6g}"),
    }


def _points_table(points: Sequence[Point], slo: Slo, head: str) -> h.Element:
    columns = (
        Column("trial", kind="text"),
        Column("role", kind="text"),
        Column(head, "level"),
        Column(
            numbers.promise(slo).partition(" <")[0], f"{numbers.promise(slo).partition(' <')[0]}, ns or share"
        ),
        Column("output\ntok/s", "output tok/s"),
        Column("req/s"),
        Column("verdict", kind="text"),
    )
    rows: list[list[Cell | str]] = [
        [
            Cell(point.key, point.key),
            Cell(point.role, point.role),
            Cell(f"{point.level:g}", point.level),
            Cell(numbers.judged(slo, point.judged, point.never), point.judged),
            Cell(numbers.rate(point.output_per_s), point.output_per_s),
            Cell(numbers.rate(point.requests_per_s), point.requests_per_s),
            Cell(status(point.status), point.status),
        ]
        for point in points
    ]
    return table(columns, rows, "The trials of this figure")
