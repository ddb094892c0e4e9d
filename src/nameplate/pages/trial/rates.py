"""Rates of a trial, each with what was counted and the window it was counted over."""

from __future__ import annotations

import htpy as h

from nameplate.measure.rates import Rate
from nameplate.measure.result import TrialResult
from nameplate.pages.table import Cell, Column, table
from nameplate.report import numbers
from nameplate.report.safe import safe

_RATES = (
    ("output, whole run", "tokens_whole", "tok/s"),
    ("output, steady", "tokens_steady", "tok/s"),
    ("output, completed only", "tokens_completed", "tok/s"),
    ("requests, whole run", "requests_whole", "req/s"),
    ("requests, steady", "requests_steady", "req/s"),
)


def rates_table(result: TrialResult) -> h.Element:
    """Return all rates of a trial; one whose window is empty is absent, and says so."""
    rows = [_row(label, name, unit, result) for label, name, unit in _RATES if _tells(name, result)]
    user = result.measurement.latencies.whole.per_user
    path = "measurement.latencies.whole.per_user"
    rows.append(
        [
            "per user, p50",
            Cell(f"{numbers.percentile(user, 'p50')} tok/s", user.p50, f"{path}.p50"),
            Cell(f"{user.n:,}", user.n, f"{path}.n"),
            "1 / ITL of each request",
        ]
    )
    rows.append(
        ["per user, slowest", Cell(numbers.rate(user.min, "tok/s"), user.min, f"{path}.min"), Cell(None), ""]
    )
    alone = result.measurement.single_user
    if alone is not None:
        spread, path = alone.prefill_counted, "measurement.single_user"
        low, high = numbers.rate(spread.min, "tok/s"), numbers.rate(spread.max, "tok/s")
        cached = "; no cached tokens assumed" if alone.cached_assumed else ""
        rows += [
            [
                "prefill, counted, p50",
                Cell(numbers.rate(spread.p50, "tok/s"), spread.p50, f"{path}.prefill_counted.p50"),
                Cell(f"{spread.n:,}", spread.n, f"{path}.prefill_counted.n"),
                f"(prompt - cached tokens) / TTFT; {numbers.between(low, high)}{cached}",
            ],
            [
                "prefill, nominal",
                Cell(
                    numbers.rate(alone.prefill_nominal, "tok/s"),
                    alone.prefill_nominal,
                    f"{path}.prefill_nominal",
                ),
                Cell(None),
                "asked length / median TTFT",
            ],
            [
                "decode, one user",
                Cell(numbers.rate(alone.decode, "tok/s"), alone.decode, f"{path}.decode"),
                Cell(None),
                "1 / median ITL",
            ],
        ]
    columns = (
        Column("rate", kind="text"),
        Column("value", "value, 1/s"),
        Column("counted"),
        Column("over", kind="text"),
    )
    return table(columns, rows, "Rates, each with its window")


def _tells(name: str, result: TrialResult) -> bool:
    """Tell whether a rate says more than another: where every request ended well, all tokens are of completed ones."""
    rates = result.measurement.rates
    return (
        name != "tokens_completed"
        or rates.tokens_completed is None
        or rates.tokens_whole is None
        or (rates.tokens_completed.counted != rates.tokens_whole.counted)
    )


def _row(label: str, name: str, unit: str, result: TrialResult) -> list[Cell | str]:
    rate: Rate | None = getattr(result.measurement.rates, name)
    path = f"measurement.rates.{name}"
    if rate is None:
        return [label, Cell(None), Cell(None), "its window is empty"]
    window = rate.window
    estimated = ", estimated" if rate.estimated else ""
    over = (
        f"{rate.of}{estimated}, from {window.begins} to {window.ends} ({numbers.duration(window.length_ns)})"
    )
    return [
        label,
        Cell(numbers.rate(rate.per_s, unit), rate.per_s, f"{path}.per_s"),
        Cell(numbers.count(rate.counted), rate.counted, f"{path}.counted"),
        safe(over, 300),
    ]
