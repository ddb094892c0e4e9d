"""The tables of a comparison: rated numbers, and both sides of every measure."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.compare.answering import rated_said
from nameplate.compare.document import CellCompared, Compared, Comparison, Interval, Sample
from nameplate.pages.compare.placed import Placed
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.values import ABSENT
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.comparison import change_cells, value_said
from nameplate.report.safe import safe


def rated_section(told: Comparison) -> h.Node:
    if not told.rated:
        return None
    rows = [
        Row(
            (
                safe(one.shape, 60),
                Cell(_number(one.a.rated), one.a.rated, f"rated.{at}.a.rated"),
                Cell(_number(one.b.rated), one.b.rated, f"rated.{at}.b.rated"),
                one.unit,
                f"{one.a.status}, {one.b.status}",
                Cell(status(one.verdict), one.verdict, f"rated.{at}.verdict"),
                safe(one.reason, 200),
            )
        )
        for at, one in enumerate(told.rated)
    ]
    columns = [
        Column("shape", kind="text"), Column("A"), Column("B"), Column("", kind="text"), Column("status", kind="text"),
        Column("verdict", kind="text"), Column("why", kind="text"),
    ]  # fmt: skip
    return h.section[
        h.h2["Rated numbers"],
        table(columns, rows, f"Rated: {'; '.join(rated_said(one) for one in told.rated)}"),
        h.p(".soft")[
            "A rated number is a verdict of its own levels: it is worse only where a level passed on one side, and it "
            "or a lower one failed on the other, in all confirmation trials."
        ],
    ]


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:g}"


def measures_section(shown: Sequence[Placed]) -> h.Node:
    if not shown:
        return None
    rows = []
    last = -1
    for at, cell, number, one in shown:
        rows.append(_row(f"cells.{at}.measures.{number}", cell, one, begins=at != last))
        last = at
    columns = [
        Column("load", kind="text"), Column("measure", kind="text"), Column("A"), Column("B"), Column("B - A"),
        Column("relative"), Column("interval\nfrom"), Column("to"), Column("trials", kind="text"),
        Column("verdict", kind="text"), Column("why", kind="text"),
    ]  # fmt: skip
    marks = any(one.unsupported for _, _, _, one in shown)
    return h.section[
        h.h2["Every measure"],
        table(columns, rows, "Both sides of every measure", note=numbers.UNSUPPORTED_NOTE if marks else None),
    ]


def _row(path: str, cell: CellCompared, one: Compared, *, begins: bool) -> Row:
    plain, relative, _ = change_cells(one)
    interval, where = (one.absolute, "absolute") if one.unit == "share" else (one.relative, "relative")
    estimate = None if one.relative is None else one.relative.estimate
    name: h.Node = h.strong[one.says] if one.gated else one.says
    return Row(
        (
            Cell(safe(cell.cell, 100), cell.cell),
            Cell(name, one.statistic, f"{path}.statistic"),
            _value(one, one.a, f"{path}.a.typical"),
            _value(one, one.b, f"{path}.b.typical"),
            Cell(
                plain,
                None if one.absolute is None else one.absolute.estimate,
                f"{path}.absolute.estimate" if one.absolute else None,
            ),
            Cell(relative, estimate, f"{path}.relative.estimate" if one.relative else None),
            _bound(interval, "low", f"{path}.{where}.low"),
            _bound(interval, "high", f"{path}.{where}.high"),
            f"{one.a.trials}, {one.b.trials}",
            Cell(status(one.verdict), one.verdict, f"{path}.verdict"),
            safe(one.reason, 300),
        ),
        begins=begins,
    )


def _value(one: Compared, sample: Sample, path: str) -> Cell:
    said = value_said(one, sample)
    return Cell(said, sample.typical, path, classes="unsupported" if one.unsupported else "")


def _bound(interval: Interval | None, name: str, path: str) -> Cell:
    value: float | None = None if interval is None else getattr(interval, name)
    return Cell(
        ABSENT if value is None else f"{value * 100:+.1f}%", value, None if interval is None else path
    )
