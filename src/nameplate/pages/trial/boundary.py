"""The two sides of a boundary, request by request: each confirmation trial's distribution against the limit."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape
from nameplate.pages.chart import figure
from nameplate.pages.ecdf import Curve, ecdf, ecdf_panel
from nameplate.pages.scale import time_scale
from nameplate.pages.subject import RatedSubject, TrialSubject
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.trial.rows import read_rows
from nameplate.pages.trial.samples import Sample, sample_of, shown_of
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.boundary import judged
from nameplate.report.safe import safe

# Six curves share a panel, and a page has one of these a shape.
_POINTS = 120
_COLOURS = ("good", "bad")
# How many times the share beyond the judged percentile the close view shows.
_CORNER = 5


def boundary_ecdf(subject: RatedSubject, shape: PlateShape, slo: Slo) -> h.Node:
    """Return the judged latency of every valid confirmation trial at the pass and the fail level, as ECDFs.

    Nothing for an error rate, and where no such trial has a value.
    """
    if slo.percentile is None or slo.limit_ns is None:
        return None
    levels = levels_of(subject.plate.contract)
    sides = [level for level in (shape.pass_level, shape.fail_level) if level is not None]
    groups = {
        level: f"{levels.name(level)} ({'passes' if level == shape.pass_level else 'fails'})"
        for level in sides
    }
    colours = {groups[level]: _COLOURS[0] if level == shape.pass_level else _COLOURS[1] for level in sides}
    found = [
        (trial, sample)
        for trial in _confirmations(subject, shape, sides)
        if (sample := _sample(trial, slo)).n
    ]
    curves = [
        Curve(
            name=safe(trial.name, 100),
            group=groups[trial.header.plan.level],
            ecdf=ecdf(sample.values, sample.never, _POINTS, [slo.percentile / 100]),
        )
        for trial, sample in found
    ]
    drawn = [curve for curve in curves if curve.ecdf.points]
    if not drawn:
        return None
    scale = time_scale([slo.limit_ns, *(value for curve in drawn for value, _ in curve.ecdf.points)])
    name = numbers.promise(slo).partition(" ")[0].upper()
    about = (
        f"Share of requests within a time, one curve a confirmation trial, at {' and '.join(groups.values())}; "
        f"promised: {numbers.promise(slo)}"
    )
    share = slo.percentile / 100
    panels = [
        ecdf_panel(
            drawn,
            name,
            about if lowest == 0.0 else f"The same, above {lowest:.0%}",
            scale,
            limit=slo,
            at_share=share,
            colours=colours,
            title="level",
            lowest=lowest,
            height=260,
        )
        # What is judged lies in a corner of the whole; beside it that corner alone.
        for lowest in (0.0, max(0.0, 1 - _CORNER * (1 - share)))
    ]
    return figure(
        f"The boundary, request by request: {shape.shape}",
        f"Each curve is one confirmation trial. A trial holds the promise where its curve reaches {slo.percentile:g}% "
        "(dotted) left of the limit (dashed). Right: the same, near the judged percentile.",
        panels if panels[1].spec != panels[0].spec else panels[:1],
        _table(found, slo, groups),
        pairs=True,
    )


def _confirmations(subject: RatedSubject, shape: PlateShape, sides: Sequence[int]) -> list[TrialSubject]:
    valid = {one.key for one in shape.confirmations if one.status != "invalid" and one.level in sides}
    return sorted(
        (trial for trial in subject.trials if trial.name in valid), key=lambda one: one.header.plan.level
    )


def _sample(trial: TrialSubject, slo: Slo) -> Sample:
    measured = next(one for one in shown_of(trial.header.plan, [slo.metric]) if one.metric == slo.metric)
    return sample_of(read_rows(trial, events=False).measured, measured)


def _table(found: Sequence[tuple[TrialSubject, Sample]], slo: Slo, groups: dict[int, str]) -> h.Element:
    rows: list[list[Cell | str]] = []
    for trial, sample in found:
        result = trial.result
        one = (
            None if result is None else next((held for held in result.verdict.slos if held.slo == slo), None)
        )
        within = sum(value < slo.limit_ns for value in sample.values) if slo.limit_ns is not None else 0
        rows.append(
            [
                safe(trial.name, 120),
                groups[trial.header.plan.level],
                Cell(f"{sample.n:,}", sample.n),
                Cell(
                    None if one is None else judged(one, one.whole), None if one is None else one.whole.best
                ),
                Cell(numbers.share(within / sample.n), within / sample.n),
                Cell(f"{sample.never:,}", sample.never),
                Cell(None) if one is None else Cell(status(one.status), one.status),
            ]
        )
    columns = (
        Column("trial", kind="text"),
        Column("level", kind="text"),
        Column("n"),
        Column(numbers.promise(slo).partition(" <")[0], f"{numbers.promise(slo).partition(' <')[0]}, ns"),
        Column("within\nthe limit", "share within the limit"),
        Column("never"),
        Column("status", kind="text"),
    )
    return table(columns, rows, "The trials of this figure", note=numbers.UNSUPPORTED_NOTE)
