"""The figures of a boundary: measures by level, confirmations against the limit, and the search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape
from nameplate.pages.chart import axis, colour, figure, panel
from nameplate.pages.rated.limit_axis import limit_rule, limit_words, slo_scale
from nameplate.pages.rated.points import Point
from nameplate.pages.rated.trials import name_of
from nameplate.pages.scale import TimeScale
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import status
from nameplate.report import numbers

_VERDICTS = (("pass", "good"), ("fail", "bad"), ("inconclusive", "warn"), ("invalid", "none"))
AT_LEAST = "cut short, at least"
_KINDS = (("confirmation", "circle"), ("locator", "cross"), (AT_LEAST, "triangle-up"))


def boundary_figure(
    shape: PlateShape, contract: Contract, slo: Slo, points: Sequence[Point], *, throughput: bool
) -> h.Node:
    """Return judged latency by level, and with `throughput` the output beside it: two panels with scales of their own.

    A value that is only bounded from below has a mark of its own.
    """
    if not points:
        return None
    scale = slo_scale(slo, [point.judged for point in points])
    levels = levels_of(contract)
    name = name_of(slo)
    level = axis(
        "level",
        _level_title(contract),
        scale={"zero": False, "nice": False, "padding": 14},
        axis={"tickMinStep": 1},
    )
    hover = [
        {"field": "trial", "title": "trial"},
        {"field": "told", "title": "level"},
        {"field": "said", "title": name},
        {"field": "n", "title": "requests sent"},
        {"field": "output", "title": "output tok/s"},
        {"field": "status", "title": "verdict"},
    ]
    judged = panel(
        [_row(point, scale, slo) for point in points],
        f"{name} of each trial by level, against the limit of {limit_words(slo)}",
        layer=[
            limit_rule(slo, scale),
            {
                "mark": {"type": "point", "filled": True},
                "encoding": {
                    "x": level,
                    "y": axis("judged", f"{name}, {scale.unit}", scale={"zero": True}),
                    "color": _verdicts(points),
                    "shape": _kind_shape(points),
                    "tooltip": hover,
                },
            },
        ],
    )
    rated = [point for point in points if point.output_per_s is not None]
    output = panel(
        [_row(point, scale, slo) for point in rated],
        "Output tokens a second of each trial by level",
        mark={"type": "point", "filled": True},
        encoding={
            "x": level,
            "y": axis("output", "output tok/s", scale={"zero": True}),
            "color": _verdicts(rated),
            "shape": _kind_shape(rated),
            "tooltip": hover,
        },
    )
    return figure(
        _boundary_title(shape, slo, throughput),
        _boundary_words(points, throughput),
        (judged, output) if throughput and rated else (judged,),
        _points_table(points, slo, levels.head),
    )


def _boundary_title(shape: PlateShape, slo: Slo, throughput: bool) -> str:
    """Claim that a promise decides only where it is the one that failed, in every trial of the failing level."""
    name = name_of(slo)
    failed = [
        result.status == "fail"
        for trial in shape.confirmations
        if trial.level == shape.fail_level and trial.status != "invalid"
        for result in trial.slos
        if result.slo == slo
    ]
    if shape.status == "confirmed" and failed and all(failed):
        return f"{name} decides{', output throughput does not' if throughput else ''}: {shape.shape}"
    return f"{name}{' and output throughput' if throughput else ''} by level: {shape.shape}"


def _boundary_words(points: Sequence[Point], throughput: bool) -> str:
    kinds = {_kind(point) for point in points}
    said = ["Each panel has a scale of its own."] if throughput else []
    if "confirmation" in kinds:
        said.append("Circles are confirmation trials.")
    if "locator" in kinds:
        said.append("Crosses are the locator's, which never count.")
    if AT_LEAST in kinds:
        said.append(
            "Triangles are trials that were cut short when their verdict was certain: the value is at "
            "least that, of the "
            "requests that were sent, and there is no throughput to compare."
        )
    return " ".join(said)


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
    values = [{**_row(point, scale, slo), "row": row} for row, _, point in rows]
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
        f"All confirmation trials against the limit of {name}",
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
    values = [_row(point, scale, slo) for point in points]
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
                    "shape": _kind_shape(points, "role"),
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
        "The locator (crosses) only finds where to confirm: one trial a level, and none of them counts."
        + (
            " The confirmations (circles) carry the claim, on both sides of the boundary."
            if any(point.role == "confirmation" for point in points)
            else " No level was confirmed."
        ),
        (drawn,),
        _points_table(points, slo, levels_of(contract).head),
    )


def _verdicts(points: Iterable[Point]) -> dict[str, object]:
    """Return the colours of the verdicts that occur."""
    occur = {point.status for point in points}
    known = [(name, shade) for name, shade in _VERDICTS if name in occur]
    return colour("status", [name for name, _ in known], [shade for _, shade in known], "verdict")


def _kind(point: Point) -> str:
    return AT_LEAST if point.at_least else point.role


def _kind_shape(points: Iterable[Point], field: Literal["kind", "role"] = "kind") -> dict[str, object]:
    """Return the marks of the kinds of trials, or of their roles, that occur."""
    occur = {_kind(point) if field == "kind" else point.role for point in points}
    known = [(name, mark) for name, mark in _KINDS if name in occur]
    return {
        "field": field,
        "type": "nominal",
        "title": "trial",
        "scale": {"domain": [name for name, _ in known], "range": [mark for _, mark in known]},
    }


def _row(point: Point, scale: TimeScale, slo: Slo) -> dict[str, object]:
    return {
        "trial": point.key,
        "role": point.role,
        "kind": _kind(point),
        "n": point.n,
        "said": _said(point, slo),
        "order": point.order,
        "level": point.level,
        "told": point.told,
        "status": point.status,
        "judged": scale.of(point.judged),
        "output": None if point.output_per_s is None else float(f"{point.output_per_s:.6g}"),
    }


def _said(point: Point, slo: Slo) -> str:
    """Write a judged value; of one that is bounded from below, what it is at least."""
    return f"{'>=' if point.at_least else ''}{numbers.judged(slo, point.judged, point.never)}"


def _points_table(points: Sequence[Point], slo: Slo, head: str) -> h.Element:
    columns = (
        Column("trial", kind="text"),
        Column("role", kind="text"),
        Column(head, "level"),
        Column("requests\nsent", "requests sent"),
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
            Cell(f"{point.n:,}", point.n),
            Cell(_said(point, slo), point.judged),
            Cell(numbers.rate(point.output_per_s), point.output_per_s),
            Cell(numbers.rate(point.requests_per_s), point.requests_per_s),
            Cell(status(point.status), point.status),
        ]
        for point in points
    ]
    return table(columns, rows, "The trials of this figure")
