"""Tests of a model without a server (llama-bench): rates by prompt, output and depth, in place of latencies."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from nameplate.exchange.peers.run import Run
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.table import Column, FittingTable

_RATES = ("prefill_rate", "decode_rate", "total_rate")


def without_requests(runs: Sequence[Run]) -> bool:
    """Tell whether all runs are such tests: rates, and no request of a load."""
    return all(run.counts.requests is None and run.counts.completed is None for run in runs) and all(
        any(run.measure(name) is not None for name in _RATES[:2]) or run.measure("repetition") for run in runs
    )


def tests_table(runs: Sequence[Run]) -> RenderableType:
    """Return a line a test."""
    columns = [
        Column("", side="left"), Column("test", side="left"), Column("model", side="left", rank=1),
        Column("repetitions", rank=2), Column("prefill\ntok/s"), Column("decode\ntok/s"), Column("both\ntok/s", rank=3),
        Column("contradicted", side="left", rank=4),
    ]  # fmt: skip
    rows = [
        (
            str(at + 1), safe(run.label, 40), safe(run.model or "", 40), numbers.count(run.measures[0].n),
            *(_rate(run, name) for name in _RATES),
            ", ".join(dict.fromkeys(safe(check.name, 30) for check in run.contradictions)) or numbers.ABSENT,
        )
        for at, run in enumerate(runs)
    ]  # fmt: skip
    return FittingTable(columns, rows)


def _rate(run: Run, name: str) -> str:
    measure = run.measure(name)
    if measure is None or measure.mean is None:
        return numbers.ABSENT
    spread = f" ± {numbers.rate(measure.std)}" if measure.std is not None else ""
    return f"{numbers.rate(measure.mean)}{spread}"
