"""A table as CSV: a line a row, `inf` for never, empty for absent, a list joined by semicolons."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

from nameplate.exchange.loose import plain
from nameplate.exchange.tables.column import Table, Value

# A cell that begins with one of these is a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ROWS = 1_000


def csv_of(table: Table) -> Iterator[bytes]:
    """Yield a table as text in pieces of bounded size."""
    head: list[tuple[Value, ...]] = [table.names]
    yield _lines(head)
    while rows := list(islice(table.rows, _ROWS)):
        yield _lines(rows)


def _lines(rows: list[tuple[Value, ...]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _cell(value: Value) -> str:
    """Write a cell; a text that a spreadsheet would run is made a text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        value = "; ".join(value)
    if isinstance(value, str):
        said = plain(value)
        return f"'{said}" if said.startswith(_FORMULA) else said
    return repr(value)
