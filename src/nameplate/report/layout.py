"""How sections, facts, chains and commands are laid out on lines of a given width."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from nameplate.report.safe import safe

Cell = str | Text


def stacked(parts: Iterable[RenderableType | None]) -> Page:
    """Stack sections with a blank line between them; None is left out."""
    shown: list[RenderableType] = []
    for part in parts:
        if part is None:
            continue
        if shown:
            shown.append(Text(""))
        shown.append(part)
    return Page(Group(*shown))


class Page:
    """Render what it holds without blanks at the ends of lines, so that logs and copied text stay clean."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._inner, options.update(height=None), pad=False):
            yield from _without_tail(line)
            yield Segment.line()


def _without_tail(line: Sequence[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].control:
        text = kept[-1].text.rstrip(" ")
        if text:
            kept[-1] = Segment(text, kept[-1].style)
            break
        kept.pop()
    return kept


def heading(text: str) -> Text:
    """Return a section's heading."""
    return Text(text, style="bold")


def indented(body: RenderableType, by: int = 2) -> Padding:
    """Return a renderable further to the right."""
    return Padding(body, (0, 0, 0, by))


def facts(
    pairs: Sequence[tuple[str, RenderableType]], *, indent: int = 2, styles: Sequence[str] = ()
) -> Table:
    """Lay out labels with their values beside them, values broken at words and aligned; `styles` of the labels."""
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for at, (label, value) in enumerate(pairs):
        shown = Text(value) if isinstance(value, str) else value
        style = styles[at] if styles else "bold" if label else ""
        table.add_row(Text(" " * indent + label, style=style), shown)
    return table


def bulleted(mark: str, style: str, body: RenderableType) -> Table:
    """Return a body whose further lines stand under its first, right of a mark."""
    table = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text(mark, style=style), body)
    return table


class Chain:
    """Lay out items one after the other, with lines broken only between them."""

    def __init__(self, items: Sequence[Text], separator: str = " > ") -> None:
        self._items = tuple(items)
        self._separator = separator

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text()
        for at, item in enumerate(self._items):
            part = item.copy()
            if at + 1 < len(self._items):
                part.append(self._separator.rstrip())
            if line and line.cell_len + 1 + part.cell_len > options.max_width:
                yield line
                line = Text()
            if line:
                line.append(" ")
            line.append_text(part)
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [item.cell_len + len(self._separator) for item in self._items] or [1]
        return Measurement(max(widths), sum(widths)).with_maximum(options.max_width)


class Command:
    """Lay out a command line so that it can be copied: long ones are continued with backslashes."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [shlex.quote(safe(word, None)) for word in words]

    @classmethod
    def of(cls, line: str) -> Command:
        """Read a line that is quoted for a shell; one that is not is taken as one word."""
        try:
            return cls(shlex.split(line))
        except ValueError:
            return cls((line,))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = " ".join(self._words)
        if len(whole) <= options.max_width:
            yield Text(whole)
            return
        room = max(8, options.max_width - 2)
        lines: list[str] = []
        for word in self._paired():
            if lines and len(lines[-1]) + 1 + len(word) <= room:
                lines[-1] += f" {word}"
            else:
                lines.append(word if not lines else f"  {word}")
        yield Text(" \\\n".join(lines), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        whole = len(" ".join(self._words))
        return Measurement(min(8, whole), whole).with_maximum(options.max_width)

    def _paired(self) -> list[str]:
        """Return the words with each option's value beside it: they belong on one line."""
        paired: list[str] = []
        for word in self._words:
            if paired and paired[-1].startswith("--") and " " not in paired[-1] and not word.startswith("-"):
                paired[-1] += f" {word}"
            else:
                paired.append(word)
        return paired
