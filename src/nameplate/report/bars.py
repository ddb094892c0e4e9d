"""Panels of horizontal bars, each with a scale of its own; side by side where the width allows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

_EIGHTHS = "▏▎▍▌▋▊▉█"
# Between two panels, and the least that a bar needs to tell anything.
GAP, LEAST_BAR, MOST_BAR = 3, 10, 40


class Bar(Struct, frozen=True):
    """Hold one bar: its label, its value (null draws none), and the value as it is said."""

    label: str
    value: float | None
    said: str


class Panel(Struct, frozen=True):
    """Hold one panel: a heading, and bars from zero to the largest of them."""

    heading: str
    bars: tuple[Bar, ...]
    style: str = "cyan"

    def least_width(self) -> int:
        """Return how many columns the panel takes with the shortest bars."""
        return max(cell_len(self.heading), self._beside() + LEAST_BAR)

    def lines(self, width: int, ascii_only: bool) -> list[Text]:
        """Return the panel's lines, none wider than `width`."""
        top = max((bar.value or 0.0 for bar in self.bars), default=0.0)
        room = max(1, min(MOST_BAR, width - self._beside()))
        labels = max((cell_len(bar.label) for bar in self.bars), default=0)
        lines = [Text(self.heading, style="bold")]
        for bar in self.bars:
            line = Text(f"{bar.label:>{labels}} ")
            line.append(drawn(bar.value, top, room, ascii_only), style=self.style)
            lines.append(line.append(f" {bar.said}"))
        return lines

    def _beside(self) -> int:
        label = max((cell_len(bar.label) for bar in self.bars), default=0)
        said = max((cell_len(bar.said) for bar in self.bars), default=0)
        return label + said + 2


def drawn(value: float | None, top: float, room: int, ascii_only: bool) -> str:
    """Return one bar of at most `room` columns for a value of a scale from zero to `top`."""
    if value is None or top <= 0:
        return ""
    eighths = round(8 * room * value / top)
    if ascii_only:
        return "#" * max(1 if value > 0 else 0, round(eighths / 8))
    whole, rest = divmod(eighths, 8)
    bar = "█" * whole + (_EIGHTHS[rest - 1] if rest else "")
    return bar or (_EIGHTHS[0] if value > 0 else "")


class Panels:
    """Lay panels out side by side, or one below the other where they do not fit."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        self._panels = tuple(panels)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        count = len(self._panels)
        each = (options.max_width - GAP * (count - 1)) // count
        if all(panel.least_width() <= each for panel in self._panels):
            columns = [panel.lines(each, options.ascii_only) for panel in self._panels]
            for parts in zip(*columns, strict=True):
                line = Text(no_wrap=True, overflow="crop")
                for at, part in enumerate(parts):
                    line.append_text(part)
                    if at + 1 < count:
                        line.append(" " * (each + GAP - part.cell_len))
                yield line
            return
        for at, panel in enumerate(self._panels):
            if at:
                yield Text("")
            yield from panel.lines(options.max_width, options.ascii_only)
