"""A line of small bars for a row of values; plain letters where the terminal knows no others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

_BARS = "▁▂▃▄▅▆▇█"
# Rising ink: what a line printer could do.
_ASCII_BARS = "_.:-=+*#"


def resampled(values: Sequence[float], width: int) -> tuple[float, ...]:
    """Return at most `width` means of neighbouring values, in order; all of them where they fit."""
    if len(values) <= width or width < 1:
        return tuple(values)
    edges = [at * len(values) // width for at in range(width + 1)]
    parts = [values[low:high] for low, high in pairwise(edges)]
    return tuple(sum(part) / len(part) for part in parts)


class Span:
    """Name a stretch of the line's time: where it begins and ends as shares of the whole."""

    def __init__(self, name: str, begin: float, end: float) -> None:
        self.name = name
        self.begin = begin
        self.end = end


class SparkLine:
    """Draw values from zero to their largest, and below them the spans of time that they belong to."""

    def __init__(self, values: Sequence[float], spans: Sequence[Span] = (), *, most: int = 96) -> None:
        self._values = tuple(max(0.0, value) for value in values)
        self._spans = tuple(spans)
        self._most = most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(1, min(self._most, options.max_width))
        shown = resampled(self._values, room)
        bars = _ASCII_BARS if options.ascii_only else _BARS
        top = max(shown, default=0.0)
        line = "".join(bars[_step(value, top, len(bars))] if value else " " for value in shown)
        yield Text(line, style="cyan", no_wrap=True)
        if self._spans:
            yield Text(_ruler(self._spans, len(shown)), style="dim", no_wrap=True, overflow="crop")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = min(self._most, max(1, len(self._values)))
        return Measurement(min(20, width), width).with_maximum(options.max_width)


def _step(value: float, top: float, steps: int) -> int:
    return min(steps - 1, int(value / top * steps)) if top > 0 else 0


def _ruler(spans: Sequence[Span], width: int) -> str:
    """Write each name at its span's begin, as far as it fits before the next."""
    line = [" "] * width
    for span in spans:
        begin, end = round(span.begin * width), round(span.end * width)
        for at, letter in enumerate(f"|{span.name}"[: max(0, end - begin)]):
            if begin + at < width:
                line[begin + at] = letter
    return "".join(line).rstrip()
