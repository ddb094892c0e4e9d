"""The figures of a comparison: differences with their intervals, and every trial of what it is about."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.compare.document import Compared, Comparison, Interval
from nameplate.pages.chart import Panel, axis, colour, figure, panel
from nameplate.pages.compare.placed import Placed
from nameplate.pages.scale import time_scale
from nameplate.report.comparison import shown_measures
from nameplate.report.safe import safe

_VERDICTS = (("worse", "bad"), ("better", "good"), ("equal", "s1"), ("not known", "none"))
# More lines than these are no picture; the table has them all.
_DRAWN = 40
_PANELS, _LOADS = 6, 12


def differences_figure(told: Comparison, shown: Sequence[Placed]) -> h.Node:
    """Return every relative difference with its interval, beside the margin within which it does not matter."""
    wanted = {
        (at, number)
        for at, cell in enumerate(told.cells)
        for number, one in enumerate(cell.measures)
        if one in shown_measures(cell, everything=False)
    }
    rows = [
        (f"{one.says} · {cell.cell}", one)
        for at, cell, number, one in shown
        if (at, number) in wanted and one.relative is not None and cell.group != "baseline"
    ]
    drawn = rows[:_DRAWN]
    if not drawn:
        return None
    values = [_line(safe(name, 100), one, one.relative) for name, one in drawn if one.relative is not None]
    order = [str(value["row"]) for value in values]
    margin = told.terms.margin * 100
    place = {"field": "row", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 300}}
    kind = colour("verdict", [name for name, _ in _VERDICTS], [shade for _, shade in _VERDICTS], "verdict")
    about = f"Relative difference of each measure, B against A, with its {told.terms.confidence * 100:g}% interval"
    # Where nothing has an interval a layer of theirs would have no extent.
    intervals = [
        {
            "mark": {"type": "rule", "strokeWidth": 2.5},
            "encoding": {
                "x": axis("low", "B against A, %"), "x2": {"field": "high"}, "y": place, "color": kind,
            },
        }
    ] if any(value["low"] is not None and value["high"] is not None for value in values) else []  # fmt: skip
    one_panel = panel(
        values,
        about,
        height=max(90, 24 * len(values)),
        layer=[
            {
                "data": {"values": [{"from": -margin, "to": margin}]},
                "mark": {"type": "rect", "opacity": 0.18, "color": "var(--none)"},
                "encoding": {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
            },
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": "var(--soft)"},
                "encoding": {"x": {"field": "zero", "type": "quantitative"}},
            },
            *intervals,
            {
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {
                    "x": axis("estimate", "B against A, %"),
                    "y": place,
                    "color": kind,
                    "tooltip": [{"field": name} for name in ("row", "estimate", "low", "high", "verdict")],
                },
            },
        ],
    )  # fmt: skip
    more = f" {len(rows) - _DRAWN} more are in the table below." if len(rows) > _DRAWN else ""
    return figure(
        "What changed, and how certain that is",
        f"Each line is an interval; within the grey band of {margin:g}% a difference does not matter. A point without "
        f"a line has no interval: too few trials, or too few requests behind its percentile.{more}",
        (one_panel,),
    )


def _line(name: str, one: Compared, held: Interval) -> dict[str, object]:
    told = {"estimate": held.estimate, "low": held.low, "high": held.high}
    said = {key: None if value is None else float(f"{value * 100:.5g}") for key, value in told.items()}
    return {"row": name, **said, "verdict": one.verdict}


def trials_figure(shown: Sequence[Placed]) -> h.Node:
    """Return the trials' own values of what the comparison is about: a panel a measure, A and B side by side."""
    found: dict[str, list[tuple[str, Compared]]] = {}
    for _, cell, _, one in shown:
        if one.gated and max(one.a.trials, one.b.trials) > 1:
            found.setdefault(one.statistic, []).append((safe(cell.cell, 80), one))
    if not found:
        return None
    return figure(
        "Every trial",
        "The sample of each verdict: one point a trial. A percentile that no request of a trial reached is not drawn.",
        [_trials_panel(held[:_LOADS]) for held in list(found.values())[:_PANELS]],
        pairs=True,
    )


def _trials_panel(held: Sequence[tuple[str, Compared]]) -> Panel:
    first = held[0][1]
    factor, unit = _unit(first.unit, [one for _, one in held])
    values = [
        {"load": load, "side": side, "value": float(f"{value / factor:.6g}")}
        for load, one in held
        for side, sample in (("A", one.a), ("B", one.b))
        for value in sample.values
        if value is not None
    ]
    place = {"field": "load", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 240}}
    return panel(
        values,
        f"{first.says} of every trial, by load and side",
        height=max(80, 46 * len(held)),
        mark={"type": "point", "filled": True, "size": 70, "opacity": 0.8},
        encoding={
            "x": axis("value", f"{first.says}, {unit}", scale={"zero": False}),
            "y": place,
            "yOffset": {"field": "side", "type": "nominal"},
            "color": colour("side", ["A", "B"], ["s1", "s2"], "side"),
            "tooltip": [{"field": "load"}, {"field": "side"}, {"field": "value"}],
        },
    )


def _unit(unit: str, held: Sequence[Compared]) -> tuple[float, str]:
    """Return what values are divided by on an axis, and the unit that this gives."""
    if unit == "ns":
        scale = time_scale(value for one in held for side in (one.a, one.b) for value in side.values)
        return scale.ns, scale.unit
    return (0.01, "%") if unit == "share" else (1.0, "a second")
