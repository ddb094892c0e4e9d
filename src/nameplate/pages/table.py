"""Tables: sortable by every column, copied as CSV, scrolling in a box of their own where the screen is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import htpy as h
from markupsafe import Markup
from msgspec import Struct

from nameplate.pages.values import Raw, attributes, shown
from nameplate.report.safe import safe


class Column(Struct, frozen=True):
    """Hold a column's head (line feeds break it), its name with the unit for CSV, and its field in shared data."""

    head: str
    name: str = ""
    kind: Literal["number", "text"] = "number"
    title: str = ""
    field: str = ""

    @property
    def csv_name(self) -> str:
        return self.name or self.head.replace("-\n", "").replace("\n", " ")


class Cell(Struct, frozen=True):
    """Hold a cell: what people read, the raw value, where that stands in its document, and classes."""

    said: h.Node
    raw: Raw = None
    path: str | None = None
    classes: str = ""


class Row(Struct, frozen=True):
    """Hold a row of cells; `begins` draws a line above it where a group begins, `anchor` is its identifier."""

    cells: Sequence[Cell | str]
    begins: bool = False
    anchor: str | None = None


def table(
    columns: Sequence[Column],
    rows: Iterable[Row | Sequence[Cell | str]],
    caption: str,
    *,
    sortable: bool = True,
    copies: bool = True,
    note: h.Node = None,
    row_heads: bool = True,
) -> h.Element:
    """Return a table with its tools; the first column names its row unless `row_heads` is false."""
    held = [row if isinstance(row, Row) else Row(row) for row in rows]
    box = h.div(".table-box", role="region", aria_label=caption, tabindex="0")[
        h.table[
            h.caption[caption],
            h.thead[h.tr[[_head(column, sortable and len(held) > 1) for column in columns]]],
            # Written row by row: what is nested deeply is slow to write.
            h.tbody[[Markup(str(_row(row, columns, row_heads))) for row in held]],
        ]
    ]
    tools = (
        h.div(".table-tools")[h.button(".copy", type="button")["Copy as CSV"], h.span(role="status"), note]
        if copies
        else (h.p(".soft")[note] if note else None)
    )
    return h.div(".table")[box, tools]


def shared_table(columns: Sequence[Column], data: str, caption: str, note: h.Node = None) -> h.Element:
    """Return a table over data that charts draw from as well (`chart.shared`); it is filled when it is seen."""
    box = h.div(".table-box", role="region", aria_label=caption, tabindex="0")[
        h.table[
            h.caption[caption],
            h.thead[h.tr[[_head(column, True) for column in columns]]],
            h.tbody(data_of=data),
        ]
    ]
    tools = h.div(".table-tools")[
        h.button(".copy", type="button")["Copy as CSV"], h.span(role="status"), note
    ]
    return h.div(".table")[box, tools]


def _head(column: Column, sortable: bool) -> h.Element:
    attributes = {"scope": "col", "data-name": column.csv_name}
    if column.kind == "number":
        attributes["class"] = "num"
    if column.title:
        attributes["title"] = column.title
    if column.field:
        attributes["data-field"] = column.field
    if not column.head:
        # A button without words is none; who does not see the column is told its name.
        return h.th({**attributes, "aria-label": column.csv_name or "remarks"})
    if not sortable:
        return h.th(attributes)[column.head]
    return h.th({**attributes, "aria-sort": "none"})[h.button(type="button")[column.head]]


def _row(row: Row, columns: Sequence[Column], row_heads: bool) -> h.Element:
    cells = [
        _cell(cell, column, row_heads and position == 0)
        for position, (cell, column) in enumerate(zip(row.cells, columns, strict=True))
    ]
    found = {"class": "group-begins"} if row.begins else {}
    return h.tr({**found, **({"id": row.anchor} if row.anchor else {})})[cells]


def _cell(cell: Cell | str, column: Column, head: bool) -> h.Element:
    if isinstance(cell, str):
        said: h.Node = shown(safe(cell, None, lines=True))
        found: dict[str, str] = {}
    else:
        said, found = shown(cell.said), attributes(cell.raw, cell.path)
    classes = [
        *(("num",) if column.kind == "number" else ()),
        *(cell.classes.split() if isinstance(cell, Cell) else ()),
    ]
    if classes:
        found["class"] = " ".join(classes)
    return h.th({**found, "scope": "row"})[said] if head else h.td(found)[said]
