"""What tables of latencies have in common: the cells of one distribution, and the notes below the table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from nameplate.measure.latency import Latencies
from nameplate.report import numbers
from nameplate.report.layout import Cell, indented
from nameplate.statistics.percentile import Distribution

PERCENTILES = ("p50", "p90", "p95", "p99")


def latency_cells(held: Distribution) -> list[str]:
    """Return the percentiles of a distribution and its largest value."""
    largest = numbers.duration(held.max) if not held.censored else numbers.NEVER
    return [*(numbers.percentile(held, one) for one in PERCENTILES), largest]


def latency_notes(
    rows: Sequence[Sequence[Cell]], notes: Sequence[str], whole: Latencies
) -> list[RenderableType]:
    """Return the notes of a table, with those that its cells need."""
    shown = list(notes)
    if any(str(cell).endswith(numbers.UNSUPPORTED) for row in rows for cell in row):
        shown.append(numbers.UNSUPPORTED_NOTE)
    if whole.ttft.censored or whole.e2e.censored:
        shown.append("never: the percentile reaches requests that did not come to a value")
    return [indented(Text(note, style="dim")) for note in shown]
