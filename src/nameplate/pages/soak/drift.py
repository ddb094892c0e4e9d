"""Whether a soak stayed what it was: every series with its conclusion, and by which methods and thresholds."""

from __future__ import annotations

import htpy as h

from nameplate.measure.soak.result import SoakResult
from nameplate.pages.soak.answer import drift_tone
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import badge, facts
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_words import (
    SERIES,
    change,
    client_words,
    material_words,
    moment,
    quantity,
)
from nameplate.verdict.drift import LEAST_WINDOWS, SeriesDrift, of_server, worst_of


def drift_section(result: SoakResult) -> h.Element:
    """Return the drift verdict."""
    drift, warm_up = result.drift, result.warm_up
    held = of_server(drift)
    found = worst_of(held)
    why = [f"{one.series}: {one.detail}" for one in held if one.conclusion == found]
    client = client_words(drift)
    columns = (
        Column("series", kind="text"),
        Column("conclusion", kind="text"),
        Column("level"),
        Column("change over\nthe run", "change over the run"),
        Column("its interval", kind="text"),
        Column("matters\nfrom", "matters from"),
        Column("p"),
        Column("windows"),
        Column("worth", "independent windows they are worth"),
        Column("steps", kind="text"),
        Column("over", kind="text"),
    )
    rows = [_row(held, f"result.drift.series.{at}") for at, held in enumerate(drift.series)]
    share = (
        f"{numbers.share(drift.material_share)} of its level, as was asked"
        if drift.material_share is not None
        else "a tenth of its level, a fifth for the p95, a quarter for the queue"
    )
    schedule = any(held.basis == "schedule" for held in drift.series)
    absent = ", ".join(SERIES.get(name, name) for name in drift.absent)
    return h.section(aria_label="Drift")[
        h.h2["Did the server stay what it was?"],
        h.p[
            badge(found, drift_tone(found)),
            " ",
            safe("; ".join(why[:6]) or "no series of the server could be read", 1500),
        ],
        h.p[safe(client, 600)] if client else None,
        table(columns, rows, "Every series with its conclusion", sortable=False),
        h.details[
            h.summary["Methods and thresholds"],
            facts(
                [
                    ("Trend", safe(drift.trend_method, 600)),
                    ("Steps", safe(drift.shift_method, 600)),
                    ("Collapse", safe(drift.collapse_method, 600)),
                    ("Matters from", f"{share}, and never below the series' own floor"),
                    (
                        "False alarms",
                        f"{drift.family_alpha:.0%} over all {drift.tested} tested series together",
                    ),
                    ("Least windows", f"a series needs {LEAST_WINDOWS} comparable windows"),
                    ("Left out", _warm_up(result)),
                    ("Warm-up by", safe(warm_up.method, 400)),
                    ("TTFT", "counts from the schedule") if schedule else None,
                    ("Could not be read", absent) if absent else None,
                ]
            ),
        ],
        _drawn(result),
    ]


def _warm_up(result: SoakResult) -> str:
    held = result.warm_up
    if not held.windows:
        return "no window"
    return (
        f"the first {numbers.count(held.windows, 'window')} ({numbers.rough(held.seconds)}): "
        f"{safe(held.detail, 300)}"
    )


def _drawn(result: SoakResult) -> h.Element:
    found = sorted({SERIES.get(held.series, held.series) for held in result.drift.series if _moves(held)})
    if not found:
        return h.p(".soft")["No line is drawn through the series above: none was found to drift or to step."]
    return h.p(".soft")[f"Dashed lines in the figures above are these verdicts: {', '.join(found)}."]


def _moves(held: SeriesDrift) -> bool:
    return held.conclusion not in ("steady", "undecided", "collapsed")


def _row(held: SeriesDrift, path: str) -> list[Cell | str]:
    share = "" if held.change_share is None else f" ({held.change_share:+.1%})"
    low, high = quantity(held.change_low, held.unit), quantity(held.change_high, held.unit)
    steps = ", ".join(
        f"{moment(shift.at_s)}: {quantity(shift.before, held.unit)} to {quantity(shift.after, held.unit)}"
        for shift in held.shifts[:6]
    )
    interval = "" if held.change_low is None else numbers.between(low, high)
    if held.change_low is not None and held.confidence is not None:
        interval += f" ({held.confidence:.0%})"
    return [
        Cell(SERIES.get(held.series, held.series), held.series, f"{path}.series"),
        Cell(
            badge(held.conclusion, drift_tone(held.conclusion)),
            held.conclusion,
            f"{path}.conclusion",
        ),
        Cell(quantity(held.level, held.unit), held.level, f"{path}.level"),
        Cell(
            f"{change(held)}{share}" if held.change is not None else safe(held.detail, 80),
            held.change,
            f"{path}.change",
        ),
        Cell(interval, classes="nowrap"),
        Cell(material_words(held), held.material, f"{path}.material"),
        Cell(None if held.p_value is None else f"{held.p_value:.2g}", held.p_value, f"{path}.p_value"),
        Cell(f"{held.n:,}", held.n, f"{path}.n"),
        Cell(
            None if held.effective is None else f"{held.effective:.1f}", held.effective, f"{path}.effective"
        ),
        Cell(steps, classes="words" if steps else ""),
        Cell(safe(held.stretch, 60), held.stretch, f"{path}.stretch", "nowrap"),
    ]
