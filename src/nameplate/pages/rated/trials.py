"""The confirmation trials as a table: every one a line, the invalid ones too."""

from __future__ import annotations

from pathlib import Path

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape, PlateTrial
from nameplate.pages.anchor import trial_anchor
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.boundary import held, judged, needs_reason
from nameplate.report.safe import safe

_SHOWN = (
    ("ttft", "p50"),
    ("ttft", "p95"),
    ("ttft", "p99"),
    ("itl", "p50"),
    ("itl", "p95"),
    ("itl", "p99"),
    ("e2e", "p95"),
)
LABEL = {
    "ttft": "TTFT",
    "itl": "ITL",
    "tpot": "TPOT",
    "e2e": "E2E",
    "longest_gap": "longest gap",
    "error_rate": "error rate",
}


def name_of(slo: Slo) -> str:
    """Write what an SLO judges: `TTFT p95`."""
    return f"{LABEL[slo.metric]}{'' if slo.percentile is None else f' p{slo.percentile:g}'}"


def trials_table(shape: PlateShape, contract: Contract, path: str, study: Path) -> h.Node:
    """Return all confirmation trials of a shape, lowest level first; `path` is the shape's in the plate."""
    if not shape.confirmations:
        return h.p["No confirmation trial ran."]
    levels = levels_of(contract)
    columns = [
        Column(levels.head, "level"),
        Column("trial", kind="text"),
        Column("n", "n, measured requests"),
        *(Column(_head(slo), f"{numbers.promise(slo)}, ns") for slo in contract.slos),
        *(
            Column(f"{LABEL[metric]}\n{name}", f"{metric} {name}, ns")
            for metric, name in _SHOWN
            if (metric, name)
            not in {(slo.metric, f"p{slo.percentile:g}") for slo in contract.slos if slo.percentile}
        ),
        Column("output\ntok/s", "output tok/s"),
        Column("req/s"),
        *(_OPEN if contract.rate is not None else ()),
        Column("verdict", kind="text"),
    ]
    order = sorted(range(len(shape.confirmations)), key=lambda at: (shape.confirmations[at].level, at))
    rows = []
    last = None
    for at in order:
        trial = shape.confirmations[at]
        rows.append(
            Row(
                _cells(
                    trial,
                    contract,
                    f"{path}.confirmations.{at}",
                    levels.told(trial.level),
                    levels.value(trial.level),
                    study,
                ),
                begins=last is not None and trial.level != last,
            )
        )
        last = trial.level
    return h.fragment[
        table(columns, rows, f"Confirmation trials of {shape.shape}", note=numbers.UNSUPPORTED_NOTE),
        h.ul(".plain")[
            [
                h.li[f"{safe(trial.key, 100)} {trial.status}: {safe('; '.join(trial.reasons), 1500)}"]
                for trial in shape.confirmations
                if needs_reason(trial)
            ]
        ],
    ]


_OPEN = (
    Column("delivered\nreq/s", "delivered req/s"),
    Column("in flight\nmean", "in flight, mean"),
    Column("most"),
    Column("queue\ngrowth", "queue growth"),
    Column("latency", kind="text"),
)


def _head(slo: Slo) -> str:
    if slo.percentile is None:
        return f"error rate\n< {(slo.limit_ratio or 0) * 100:.6g}%"
    return f"{LABEL[slo.metric]}\np{slo.percentile:g}\n< {numbers.limit(slo.limit_ns)}"


def _cells(
    trial: PlateTrial, contract: Contract, path: str, told: str, level: float, study: Path
) -> list[Cell | str]:
    own = {(slo.metric, f"p{slo.percentile:g}") for slo in contract.slos if slo.percentile}
    link = h.a(href=f"#{trial_anchor(study, trial.key)}", title=trial.key)[trial.key.rpartition(".")[2]]
    sent = trial.correctness.sent
    cells: list[Cell | str] = [
        Cell(told, level),
        Cell(link, trial.key, f"{path}.key"),
        Cell(f"{sent:,}", sent, f"{path}.correctness.sent"),
    ]
    for position, slo in enumerate(contract.slos):
        at = next((n for n, one in enumerate(trial.slos) if one.slo == slo), position)
        found = trial.slos[at] if at < len(trial.slos) else None
        if found is None:
            cells.append(Cell(None))
        else:
            cells.append(Cell(judged(found, found.whole), found.whole.best, f"{path}.slos.{at}.whole.best"))
    for metric, name in _SHOWN:
        if (metric, name) in own:
            continue
        quantiles, at_path = held(metric, trial), f"{path}.{_where(metric, trial)}"
        raw: float | None = getattr(quantiles, f"{name}_ns")
        said = numbers.quantile(raw, quantiles.n, name in quantiles.unsupported)
        cells.append(
            Cell(said, raw, f"{at_path}.{name}_ns", "unsupported" if name in quantiles.unsupported else "")
        )
    cells.append(
        Cell(
            numbers.rate(trial.output_tokens_per_s), trial.output_tokens_per_s, f"{path}.output_tokens_per_s"
        )
    )
    cells.append(Cell(numbers.rate(trial.requests_per_s), trial.requests_per_s, f"{path}.requests_per_s"))
    if contract.rate is not None:
        cells += _open_cells(trial, path)
    return [*cells, Cell(status(trial.status), trial.status, f"{path}.status")]


def _where(metric: str, trial: PlateTrial) -> str:
    """Return where `held` finds a metric of this trial."""
    if trial.open_loop is None or metric not in ("ttft", "e2e"):
        return metric
    if metric == "e2e" and trial.open_loop.e2e_from_schedule is None:
        return metric
    return f"open_loop.{metric}_from_schedule"


def _open_cells(trial: PlateTrial, path: str) -> list[Cell]:
    held = trial.open_loop
    if held is None:
        return [Cell(None)] * len(_OPEN)
    at = f"{path}.open_loop"
    growth = numbers.ABSENT if held.growth is None else f"{held.growth:+.1%}"
    return [
        Cell(numbers.rate(held.delivered_per_s), held.delivered_per_s, f"{at}.delivered_per_s"),
        Cell(numbers.rate(held.outstanding_mean), held.outstanding_mean, f"{at}.outstanding_mean"),
        Cell(numbers.count(held.outstanding_max), held.outstanding_max, f"{at}.outstanding_max"),
        Cell(growth, held.growth, f"{at}.growth"),
        Cell(held.latency, held.latency, f"{at}.latency"),
    ]
