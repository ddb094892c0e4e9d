"""Distributions of a trial: TTFT, ITL, E2E and chunk gaps as ECDFs, each with its limit."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.evidence.rows import RequestRow
from nameplate.pages.chart import Alike, Panel, figure
from nameplate.pages.ecdf import POINTS, Curve, Mark, ecdf, ecdf_panel
from nameplate.pages.scale import time_scale
from nameplate.pages.subject import TrialSubject
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.trial.rows import TrialRows
from nameplate.pages.trial.samples import Measured, Sample, chunk_gaps, sample_of, shown_of
from nameplate.report import numbers
from nameplate.report.boundary import judged as judged_words
from nameplate.statistics.percentile import percentile, supported
from nameplate.verdict.trial import SloResult

_PHASES = ("whole", "opening", "steady")
_COLOURS = {"whole": "s1", "opening": "s4", "steady": "s3"}
_SHOWN = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0)
# Of a trial folded within a study's page: enough for its width.
FOLDED_POINTS = 60


def distributions(trial: TrialSubject, read: TrialRows, alike: Alike | None = None) -> h.Node:
    """Return a trial's ECDFs; nothing where nothing measured was sent.

    Among others `alike`, folded within a study's page, it draws the whole sample alone, with fewer points and without
    a table, and E2E only where it is judged.
    """
    rows, folded = read.measured, alike is not None
    if not rows:
        return None
    results = () if trial.result is None else trial.result.verdict.slos
    panels: list[Panel] = []
    table_rows: list[Row] = []
    unreached: list[str] = []
    phases = _phases(rows, trial, folded)
    for measured in shown_of(trial.header.plan, (one.slo.metric for one in results)):
        samples = [(phase, sample_of(held, measured)) for phase, held in phases]
        if folded and measured.metric == "e2e" and not any(one.slo.metric == "e2e" for one in results):
            continue
        if samples[0][1].n and not samples[0][1].values:
            unreached.append(measured.title)
        elif samples[0][1].n:
            mine = [one for one in results if one.slo.metric == measured.metric]
            panels.append(_panel(measured.title, samples, mine, measured, folded))
            table_rows += _rows(measured.title, samples)
    if read.timelines:
        samples = [(phase, chunk_gaps(held, read.timelines)) for phase, held in phases[:1]]
        if samples[0][1].n:
            panels.append(_panel("chunk gap", samples, [], None, folded))
            table_rows += _rows("chunk gap", samples)
    if not panels:
        return None
    never = sum(row.first_output_ns is None for row in rows)
    invalid = trial.result is not None and trial.result.verdict.status == "invalid"
    return figure(
        f"How each latency {'of an invalid trial ' if invalid else ''}is distributed",
        _about(len(rows), never, len(phases) > 1, gaps=bool(read.timelines), unreached=unreached),
        panels,
        None if folded else _table(table_rows),
        pairs=True,
        alike=alike,
    )


def _about(n: int, never: int, by_phase: bool, gaps: bool, unreached: Sequence[str]) -> str:
    said = f"The share of {numbers.count(n, 'request')} that came within a time. "
    if by_phase:
        said += "Opening is the first request of each slot, steady every later one. "
    if never:
        said += f"{never:,} never came to an output, so their curves end below 100%. "
    if unreached:
        said += f"Not one came to a value of {' or '.join(unreached)}. "
    if not gaps:
        said += "Chunk gaps are not read here; the trial's own page draws them. "
    return said + "Dashed: the limit. The point is the judged percentile."


def _phases(
    rows: Sequence[RequestRow], trial: TrialSubject, folded: bool
) -> list[tuple[str, Sequence[RequestRow]]]:
    whole: list[tuple[str, Sequence[RequestRow]]] = [("whole", rows)]
    if folded or trial.header.plan.arrivals is not None:
        return whole
    parts = [(phase, [row for row in rows if row.phase == phase]) for phase in _PHASES[1:]]
    return (
        whole + [(phase, held) for phase, held in parts if held] if all(held for _, held in parts) else whole
    )


def _panel(
    title: str,
    samples: Sequence[tuple[str, Sample]],
    results: Sequence[SloResult],
    measured: Measured | None,
    folded: bool,
) -> Panel:
    most = FOLDED_POINTS if folded else POINTS
    shares = [one.slo.percentile / 100 for one in results if one.slo.percentile is not None]
    curves = []
    for phase, sample in samples:
        missing = _missing(sample, results) if phase == "whole" else 0
        held = ecdf(sample.values, sample.never + missing, most, shares)
        curves.append(Curve(name=_named(phase, title, held.n, held.never), group=phase, ecdf=held))
    limit = results[0].slo if results else None
    values = [value for curve in curves for value, _ in curve.ecdf.points]
    scale = time_scale([*values, None if limit is None else limit.limit_ns])
    whole = curves[0].ecdf
    about = f"ECDF of {title}, n {whole.n:,}" + (f", {whole.never:,} never" if whole.never else "")
    if limit is not None:
        about += f", against {numbers.promise(limit)}"
    return ecdf_panel(
        curves,
        title,
        about,
        scale,
        limit=limit,
        marks=[mark for one in results if (mark := _mark(one)) is not None],
        colours=_COLOURS,
        title="phase",
        kind="gaps" if measured is None else measured.name,
        share_of="gap" if measured is None else "request",
    )


def _missing(sample: Sample, results: Sequence[SloResult]) -> int:
    """Return the planned requests that never started: members of what was judged, without a row."""
    return max((one.whole.n - sample.n for one in results), default=0) if results else 0


def _named(phase: str, title: str, n: int, never: int) -> str:
    return f"{title}, {phase}: n {n:,}" + (f", {never:,} never" if never else "")


def _mark(result: SloResult) -> Mark | None:
    bounds, percent = result.whole.bounds, result.slo.percentile
    if percent is None or bounds is None or result.whole.best is None or result.whole.best_infinite:
        return None
    return Mark(
        value=result.whole.best,
        share=percent / 100,
        said=f"p{percent:g} {judged_words(result, result.whole)}",
    )


def _rows(title: str, samples: Sequence[tuple[str, Sample]]) -> list[Row]:
    found = []
    for phase, sample in samples:
        ordered = sorted(sample.values)
        held: list[float] = [*ordered, *([float("inf")] * sample.never)]
        cells: list[Cell | str] = [
            title,
            phase,
            Cell(f"{sample.n:,}", sample.n),
            Cell(f"{sample.never:,}", sample.never),
        ]
        for percent in _SHOWN:
            value = percentile(held, percent) if held else None
            finite = None if value is None or value == float("inf") else value
            carried = percent in (0.0, 100.0) or supported(len(held), percent)
            said = numbers.quantile(finite, len(held), not carried)
            cells.append(Cell(said, finite, None, "" if carried else "unsupported"))
        found.append(Row(cells, begins=phase == "whole"))
    return found


def _table(rows: Sequence[Row]) -> h.Element:
    names = ("least", *(f"p{percent:g}" for percent in _SHOWN[1:-1]), "largest")
    columns = (
        Column("latency", kind="text"),
        Column("phase", kind="text"),
        Column("n"),
        Column("never"),
        *(Column(name, f"{name}, ns") for name in names),
    )
    return table(columns, rows, "Quantiles of these distributions", note=numbers.UNSUPPORTED_NOTE)
