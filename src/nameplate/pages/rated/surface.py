"""The capacity surface: what each shape of a study is rated, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.measure.plate import PlateShape
from nameplate.pages.chart import axis, figure, fixed, panel
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import status


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
        "not their sum. What is not confirmed on both sides has another colour, and its status stands in "
        "the table.",
        (drawn,),
        surface,
    )
