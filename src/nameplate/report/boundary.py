"""The boundary as a table: every confirmation trial a line, and what each phase of the load contributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.contract import Contract
from nameplate.contract.levels import Levels, levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape, PlateTrial
from nameplate.measure.plate_open import PlateOpen
from nameplate.measure.quantiles import Quantiles
from nameplate.report import numbers
from nameplate.report.certainty import percent, sample_certificate, trials_certificate
from nameplate.report.layout import Cell, heading, indented
from nameplate.report.rated_rate import judged_by
from nameplate.report.safe import safe
from nameplate.report.style import status
from nameplate.report.table import Column, FittingTable, rows_of
from nameplate.verdict.certify import CONFIDENCE, Certified, Share
from nameplate.verdict.trial import SloResult, SloSample

# What a table of the field shows, and in which order it goes where the width is short.
_SHOWN: tuple[tuple[str, str, int], ...] = (
    ("ttft", "p50", 1),
    ("ttft", "p95", 1),
    ("ttft", "p99", 3),
    ("itl", "p50", 4),
    ("itl", "p95", 5),
    ("e2e", "p95", 6),
)
_LABEL = {"ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "e2e": "E2E", "longest_gap": "longest gap"}


def boundary_table(shape: PlateShape, contract: Contract) -> RenderableType | None:
    """Return all confirmation trials, lowest level first, with what is said of those that did not count."""
    if not shape.confirmations:
        return None
    levels = levels_of(contract)
    columns, fields = _columns(contract)
    groups: list[list[Sequence[Cell]]] = []
    marked = False
    for level in sorted({trial.level for trial in shape.confirmations}):
        group: list[Sequence[Cell]] = []
        number = 0
        for trial in (one for one in shape.confirmations if one.level == level):
            again = f"{number}'" if trial.attempt and number and group and _invalid(group) else ""
            number += 0 if again else 1
            cells = [_cell_of(field, trial) for field in fields]
            marked = marked or any(str(cell).endswith(numbers.UNSUPPORTED) for cell in cells)
            group.append((levels.told(level), again or str(number), *cells))
        groups.append(group)
    parts: list[RenderableType] = [
        heading("Confirmation trials"),
        indented(FittingTable(columns, list(rows_of(groups)))),
    ]
    if marked:
        parts.append(indented(Text(numbers.UNSUPPORTED_NOTE, style="dim")))
    if contract.rate is not None:
        parts.append(indented(judged_by(contract)))
    parts += [indented(_because(trial)) for trial in shape.confirmations if needs_reason(trial)]
    return Group(*parts)


def _invalid(group: Sequence[Sequence[Cell]]) -> bool:
    return str(group[-1][-1]) == "invalid"


# A cell's source: an SLO, a metric's percentile, or one of the trial's own values.
Field = (
    Slo
    | tuple[str, str]
    | Literal["tokens", "requests", "delivered", "outstanding", "most", "queue", "latency", "status"]
)


def _columns(contract: Contract) -> tuple[list[Column], list[Field]]:
    columns = [Column(levels_of(contract).head), Column("trial", rank=2)]
    fields: list[Field] = []
    own: dict[tuple[str, str], Slo] = {
        (slo.metric, f"p{slo.percentile:g}"): slo for slo in contract.slos if slo.percentile is not None
    }
    for slo in contract.slos:
        own_name = (slo.metric, "" if slo.percentile is None else f"p{slo.percentile:g}")
        if own_name not in {(metric, name) for metric, name, _ in _SHOWN}:
            columns.append(Column(_head(slo)))
            fields.append(slo)
    for metric, name, rank in _SHOWN:
        slo_here = own.get((metric, name))
        columns.append(
            Column(_head(slo_here) if slo_here else f"{_LABEL[metric]}\n{name}", rank=0 if slo_here else rank)
        )
        fields.append(slo_here or (metric, name))
    if contract.rate is None:
        columns += [Column("output\ntok/s", rank=1), Column("req/s", rank=7)]
        fields += ["tokens", "requests"]
    else:
        columns += [
            Column("deliv-\nered", rank=7, name="delivered"),
            Column("in\nflight", rank=2, name="in flight"),
            Column("most", rank=6),
            Column("queue", rank=1),
            Column("latency", side="left", rank=3),
        ]
        fields += ["delivered", "outstanding", "most", "queue", "latency"]
    columns.append(Column("verdict", side="left"))
    fields.append("status")
    return columns, fields


def _head(slo: Slo) -> str:
    if slo.percentile is None:
        return f"error\nrate\n< {(slo.limit_ratio or 0) * 100:.6g}%"
    limit = numbers.limit(slo.limit_ns)
    return f"{_LABEL[slo.metric]}\np{slo.percentile:g}\n< {limit}"


def _cell_of(field: Field, trial: PlateTrial) -> Cell:
    if field == "tokens":
        return numbers.rate(trial.output_tokens_per_s)
    if field == "requests":
        return numbers.rate(trial.requests_per_s)
    if field == "status":
        return status(trial.status)
    if isinstance(field, Slo):
        found = next((result for result in trial.slos if result.slo == field), None)
        return "-" if found is None else judged(found, found.whole)
    if isinstance(field, str):
        return numbers.ABSENT if trial.open_loop is None else _open(field, trial.open_loop)
    metric, name = field
    told = held(metric, trial)
    value: float | None = getattr(told, f"{name}_ns")
    return numbers.quantile(value, told.n, name in told.unsupported)


def held(metric: str, trial: PlateTrial) -> Quantiles:
    """Return a metric's percentiles; those of an open loop from schedule, as its SLOs are judged."""
    found: Quantiles = getattr(trial, metric)
    if trial.open_loop is None:
        return found
    if metric == "ttft":
        return trial.open_loop.ttft_from_schedule
    return (trial.open_loop.e2e_from_schedule or found) if metric == "e2e" else found


def _open(field: str, held: PlateOpen) -> Cell:
    match field:
        case "delivered":
            return numbers.rate(held.delivered_per_s)
        case "outstanding":
            return numbers.rate(held.outstanding_mean)
        case "most":
            return numbers.count(held.outstanding_max)
        case "queue":
            return numbers.ABSENT if held.growth is None else f"{held.growth:+.1%}"
    return held.latency or numbers.ABSENT


def judged(result: SloResult, sample: SloSample) -> str:
    """Write a judged value; of one that is not fully known, what it is at least."""
    if sample.n == 0:
        return numbers.ABSENT
    said = numbers.judged(result.slo, sample.best, sample.best_infinite)
    open_ended = not sample.best_infinite and (sample.worst_infinite or sample.best != sample.worst)
    mark = (
        "" if sample.supported or (sample.best is None and not sample.best_infinite) else numbers.UNSUPPORTED
    )
    return f"{'>=' if open_ended else ''}{said}{mark}"


def needs_reason(trial: PlateTrial) -> bool:
    """Tell whether the table's numbers alone do not show why the trial ended as it did."""
    if trial.status == "pass":
        return False
    return trial.status != "fail" or not any(result.status == "fail" for result in trial.slos)


def _because(trial: PlateTrial) -> Text:
    text = Text(f"{safe(trial.key)} ")
    text.append_text(status(trial.status))
    return text.append(f": {safe('; '.join(trial.reasons), 1500)}")


def range_at(shape: PlateShape, slo: Slo | None, level: int | None) -> str:
    """Write the lowest and highest judged value over a level's valid trials."""
    valid = [one for one in shape.confirmations if one.level == level and one.status != "invalid"]
    results = [result for trial in valid for result in trial.slos if result.slo == slo]
    return numbers.ABSENT if slo is None else _range(slo, [result.whole for result in results])


def phase_table(shape: PlateShape, contract: Contract) -> RenderableType | None:
    """Return each SLO's judged value by phase over the valid trials of each level, with what is certified."""
    valid = [trial for trial in shape.confirmations if trial.status != "invalid"]
    if not valid or not contract.slos:
        return None
    levels = levels_of(contract)
    groups = []
    for slo in contract.slos:
        for level in sorted({trial.level for trial in valid}):
            trials = [trial for trial in valid if trial.level == level]
            results = [result for trial in trials for result in trial.slos if result.slo == slo]
            certified = next((c for c in shape.certified if c.slo == slo and c.level == level), None)
            groups.append(_phases(levels.told(level), slo, results, certified))
    confidence = shape.certified[0].confidence if shape.certified else CONFIDENCE
    parts: list[RenderableType] = [
        heading("By the phase in which requests were sent, over the valid trials"),
        indented(FittingTable(_phase_columns(levels, confidence), list(rows_of(groups)))),
    ]
    if shape.certified:
        parts += [Text(""), heading("Certified")]
        parts += [indented(Text(_certificate(one, levels))) for one in shape.certified]
        asked = [said for one in shape.certified if (said := trials_certificate(one)) is not None]
        parts += [indented(Text(said)) for said in asked]
        parts.append(indented(Text(f"Bounds hold {safe(shape.certified[0].label)}.", style="dim")))
    return Group(*parts)


def _phase_columns(levels: Levels, confidence: float) -> tuple[Column, ...]:
    return (
        Column("SLO", side="left"),
        Column(levels.head),
        Column("sample", side="left"),
        Column("n"),
        Column("lowest to highest"),
        Column("over"),
        Column("share", rank=1),
        Column(f"{percent(confidence)}\nbound"),
    )


def _phases(
    level: str, slo: Slo, results: Sequence[SloResult], certified: Certified | None
) -> list[Sequence[Cell]]:
    rows: list[Sequence[Cell]] = []
    for name in ("whole", "opening", "steady"):
        known = [sample for result in results if (sample := getattr(result, name)).n]
        bound: Share | None = getattr(certified, name) if certified is not None else None
        if not known:
            continue
        rows.append(
            (
                numbers.promise(slo).partition(" <")[0] if not rows else "",
                "" if rows else level,
                name,
                f"{sum(sample.n for sample in known):,}",
                _range(slo, known),
                f"{sum(sample.over_at_worst for sample in known):,}",
                numbers.share(bound.share if bound else None),
                numbers.share(bound.bound if bound else None),
            )
        )
    return rows


def _range(slo: Slo, samples: Sequence[SloSample]) -> str:
    known = [(bounds, sample) for sample in samples if (bounds := sample.bounds) is not None]
    if not known:
        return numbers.ABSENT
    ordered = [sample for _, sample in sorted(known, key=lambda pair: pair[0])]
    low, high = (numbers.judged(slo, one.best, one.best_infinite) for one in (ordered[0], ordered[-1]))
    mark = "" if all(sample.supported for sample in samples) else numbers.UNSUPPORTED
    return numbers.between(low, high) + mark


def _certificate(one: Certified, levels: Levels) -> str:
    whole = one.whole
    held = "certified" if one.holds else "not certified"
    if one.holds and whole.bound is not None and not whole.bound < one.claim:
        held = "not certified by requests, but by the trials' spread"
    return (
        f"{numbers.promise(one.slo)} at {levels.name(one.level)}: {whole.over:,} of {whole.n:,} requests were over, so "
        f"with {percent(one.confidence)} confidence at most {numbers.share(whole.bound)} are. The promise "
        f"allows {one.claim * 100:.6g}%: {held}.{f' {more}' if (more := sample_certificate(one)) else ''}"
    )
