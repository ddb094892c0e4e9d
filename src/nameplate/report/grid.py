"""A matrix of cells that fits: contexts as rows, simultaneous requests as columns, no column left out.

Cells are wide where the terminal has room, narrow where it has less; where even that does not fit, the columns are
laid out in several blocks below each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from nameplate.report.table import GAP, Cell, Column, FittingTable, line_width


class GridCell:
    """Hold one cell in two forms of few lines; the separator of the wide form is the terminal's."""

    def __init__(self, wide: Sequence[Text | tuple[str, str]], narrow: Sequence[Text]) -> None:
        self._wide = tuple(wide)
        self._narrow = tuple(narrow)

    def text(self, wide: bool, ascii_only: bool) -> Text:
        lines = (
            [_pair(line, ascii_only) if isinstance(line, tuple) else line for line in self._wide]
            if wide
            else self._narrow
        )
        return Text("\n").join(lines)


def _pair(pair: tuple[str, str], ascii_only: bool) -> Text:
    if set(pair) == {"-"}:
        return Text("-", style="dim")
    return Text(f" {'|' if ascii_only else '·'} ".join(pair), style="dim")


EMPTY = GridCell((Text("-", style="dim"),), (Text("-", style="dim"),))


class Grid:
    """Hold the heads of rows and columns and a cell for each pair that has one."""

    def __init__(
        self,
        corner: str,
        rows: Sequence[Text],
        columns: Sequence[str],
        cells: Mapping[tuple[int, int], GridCell],
    ) -> None:
        self._corner = corner
        self._rows = tuple(rows)
        self._columns = tuple(columns)
        self._cells = dict(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for at, block in enumerate(self._blocks(options)):
            if at:
                yield Text("")
            yield block

    def _blocks(self, options: ConsoleOptions) -> list[FittingTable]:
        count = len(self._columns)
        widths = {wide: self._widths(wide, options.ascii_only) for wide in (True, False)}
        head = max((line_width(text) for text in (Text(self._corner), *self._rows)), default=0)
        for blocks in range(1, count + 1):
            parts = [self._part(blocks, number) for number in range(blocks)]
            for wide in (True, False):
                widest = max(head + sum(widths[wide][at] + GAP for at in part) for part in parts)
                if widest <= options.max_width or (blocks == count and not wide):
                    return [self._table(part, wide, options.ascii_only) for part in parts]
        return []

    def _widths(self, wide: bool, ascii_only: bool) -> list[int]:
        """Return how wide each column is in this form."""
        rows = range(len(self._rows))
        return [
            max(
                len(name),
                *(line_width(self._cells.get((row, at), EMPTY).text(wide, ascii_only)) for row in rows),
            )
            for at, name in enumerate(self._columns)
        ]

    def _part(self, blocks: int, number: int) -> range:
        count = len(self._columns)
        return range(number * count // blocks, (number + 1) * count // blocks)

    def _table(self, columns: Sequence[int], wide: bool, ascii_only: bool) -> FittingTable:
        rows: list[Sequence[Cell] | None] = []
        for row, head in enumerate(self._rows):
            if row:
                rows.append(None)
            cells = [self._cells.get((row, column), EMPTY) for column in columns]
            rows.append((head, *(cell.text(wide, ascii_only) for cell in cells)))
        heads = [Column(self._corner, side="left"), *(Column(self._columns[at]) for at in columns)]
        return FittingTable(heads, rows)
