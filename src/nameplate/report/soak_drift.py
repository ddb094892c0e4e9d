"""The drift verdict: every series with its conclusion and the evidence for it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.soak.result import WarmUp
from nameplate.report import numbers
from nameplate.report.layout import Cell, heading, indented
from nameplate.report.safe import safe
from nameplate.report.soak_words import SERIES, change, material_words, moment, quantity
from nameplate.report.style import style_of
from nameplate.report.table import Column, FittingTable
from nameplate.verdict.drift import Drift, SeriesDrift

_STYLE = {"steady": "pass", "undecided": "inconclusive"}


def drift_table(drift: Drift, warm_up: WarmUp) -> RenderableType:
    """Return all series with what was found of each."""
    columns = [
        Column("series", side="left"),
        Column("conclusion", side="left"),
        Column("level"),
        Column("change over the run", side="left"),
        Column("its interval", rank=2),
        Column("matters from", rank=1),
        Column("p", rank=3),
        Column("windows", rank=4),
        Column("worth", rank=6, name="independent windows they are worth"),
        Column("steps", side="left", rank=5),
        Column("over", side="left", rank=7),
    ]
    rows = [_row(held) for held in drift.series]
    notes = [
        f"trend: {drift.trend_method}",
        f"steps: {drift.shift_method}",
        f"collapse: {drift.collapse_method}",
    ]
    if any(held.basis == "schedule" for held in drift.series):
        notes.insert(0, "TTFT counts from the schedule")
    if warm_up.windows:
        left = f"the first {warm_up.windows} windows ({numbers.rough(warm_up.seconds)}) are left out: {warm_up.detail}"
        notes.insert(0, left)
    return Group(
        heading(f"Drift: {drift.conclusion}"),
        indented(FittingTable(columns, rows)),
        *(indented(Text(safe(note, 400), style="dim")) for note in notes if note),
    )


def _row(held: SeriesDrift) -> Sequence[Cell]:
    share = "" if held.change_share is None else f" ({held.change_share:+.1%})"
    low, high = quantity(held.change_low, held.unit), quantity(held.change_high, held.unit)
    steps = ", ".join(
        f"{moment(shift.at_s)}: {quantity(shift.before, held.unit)} to {quantity(shift.after, held.unit)}"
        for shift in held.shifts[:3]
    )
    return (
        SERIES.get(held.series, held.series),
        Text(held.conclusion, style=style_of(_STYLE.get(held.conclusion, "fail"))),
        quantity(held.level, held.unit),
        f"{change(held)}{share}" if held.change is not None else safe(held.detail, 80),
        numbers.ABSENT if held.change_low is None else numbers.between(low, high),
        material_words(held),
        numbers.ABSENT if held.p_value is None else f"{held.p_value:.2g}",
        f"{held.n:,}",
        numbers.ABSENT if held.effective is None else f"{held.effective:.1f}",
        steps,
        safe(held.stretch, 60),
    )
