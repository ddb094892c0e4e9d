"""A table that fits: columns that matter less are left out before any cell is broken, and that is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_LINES = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_ASCII_LINES = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
# Between two columns: the padding of one and the blank line of the box.
GAP = 2

Cell = str | Text


class Column:
    """Hold one column: its heading (several lines are allowed), its side, and how soon it may be left out.

    `rank` 0 always stays; of the others the highest is left out first. `name` is what is said of it then.
    """

    def __init__(
        self, head: str, *, side: Literal["left", "right"] = "right", rank: int = 0, name: str = ""
    ) -> None:
        self.head = head
        self.side: Literal["left", "right"] = side
        self.rank = rank
        self.name = name or " ".join(head.split())


class FittingTable:
    """Hold rows of cells and render as many columns as the width takes; None among the rows is a blank line.

    Cells are plain text or rich text: square brackets in them are no markup. The columns in `wraps` may break
    their lines and share what is left.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Cell] | None],
        *,
        wraps: Sequence[int] = (),
    ) -> None:
        self._columns = tuple(columns)
        self._rows = tuple(rows)
        self._wraps = tuple(wraps)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(range(len(self._columns)))
        left_out: list[Column] = []
        widths = self._widths()
        while not self._wraps and sum(widths[at] + GAP for at in shown) - GAP > options.max_width:
            droppable = [at for at in shown if self._columns[at].rank]
            if not droppable:
                break
            worst = max(droppable, key=lambda at: (self._columns[at].rank, at))
            shown.remove(worst)
            left_out.append(self._columns[worst])
        table = self._table(shown, options.ascii_only)
        yield table
        if left_out:
            names = ", ".join(column.name for column in reversed(left_out))
            yield Text(f"(a wider terminal also shows: {names})", style="dim")

    def _widths(self) -> list[int]:
        """Return how wide each column is by its widest line."""
        widths = [line_width(column.head) for column in self._columns]
        for row in self._rows:
            for at, cell in enumerate(row or ()):
                widths[at] = max(widths[at], line_width(cell))
        return widths

    def _table(self, shown: Sequence[int], ascii_only: bool) -> Table:
        table = Table(
            box=_ASCII_LINES if ascii_only else _LINES,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            header_style="bold",
            show_header=any(column.head for column in self._columns),
        )
        for at in shown:
            column = self._columns[at]
            wraps = at in self._wraps
            table.add_column(
                Text(column.head, justify=column.side),
                justify=column.side,
                vertical="top",
                no_wrap=not wraps,
                overflow="fold" if wraps else "ellipsis",
            )
        for row in self._rows:
            if row is None:
                table.add_row()
            else:
                table.add_row(*(_cell(row[at]) for at in shown))
        return table


def line_width(cell: Cell) -> int:
    """Return how many columns of a terminal the widest line takes."""
    plain = cell.plain if isinstance(cell, Text) else cell
    return max(map(cell_len, plain.split("\n")))


def _cell(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def rows_of(groups: Sequence[Sequence[Sequence[Cell]]]) -> Iterator[Sequence[Cell] | None]:
    """Yield the rows of groups with a blank line between them."""
    for at, group in enumerate(groups):
        if at and group:
            yield None
        yield from group
