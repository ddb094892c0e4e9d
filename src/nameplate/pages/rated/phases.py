"""Opening wave and steady phase apart: in a burst the opening wave alone can own the p95."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape, PlateTrial
from nameplate.pages.chart import axis, colour, figure, panel
from nameplate.pages.rated.limit_axis import limit_rule, limit_words, slo_scale
from nameplate.pages.rated.trials import name_of
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.report import numbers
from nameplate.verdict.trial import SloResult, SloSample

PHASES = ("whole", "opening", "steady")


def phases(shape: PlateShape, contract: Contract) -> h.Node:
    """Return each promise's judged value by phase over the valid trials of each level; nothing where "
    "none was valid."""
    valid = [trial for trial in shape.confirmations if trial.status != "invalid"]
    if not valid or not contract.slos:
        return None
    return [_figure(shape, contract, slo, valid) for slo in contract.slos]


def _figure(shape: PlateShape, contract: Contract, slo: Slo, trials: Sequence[PlateTrial]) -> h.Node:
    levels = levels_of(contract)
    found = [
        (trial, name, sample)
        for trial in sorted(trials, key=lambda one: one.level)
        for result in _of(trial, slo)
        for name, sample in _samples(result)
        if sample.n
    ]
    scale = slo_scale(slo, [sample.best for _, _, sample in found])
    order = list(dict.fromkeys(levels.name(trial.level) for trial, _, _ in found))
    values = [
        {
            "trial": trial.key,
            "level": levels.name(trial.level),
            "phase": name,
            "judged": scale.of(sample.best),
            "n": sample.n,
            "supported": "yes" if sample.supported else "no: too few requests",
        }
        for trial, name, sample in found
    ]
    name = name_of(slo)
    drawn = panel(
        values,
        f"{name} by level for the whole sample, the opening wave and the steady phase",
        height=max(90, 62 * len(order)),
        layer=[
            limit_rule(slo, scale, "x"),
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.85},
                "encoding": {
                    "x": axis("judged", f"{name}, {scale.unit}", scale={"zero": True}),
                    "y": {"field": "level", "type": "nominal", "sort": order, "title": None},
                    "yOffset": {"field": "phase", "type": "nominal", "sort": list(PHASES)},
                    "color": colour(
                        "phase", PHASES, ("ink", "s2", "s1"), "phase in which the request was sent"
                    ),
                    "tooltip": [
                        {"field": "trial"},
                        {"field": "phase"},
                        {"field": "judged", "title": f"{name}, {scale.unit}"},
                        {"field": "n"},
                        {"field": "supported", "title": "n carries this percentile"},
                    ],
                },
            },
        ],
    )
    return figure(
        f"Opening wave and steady phase apart: {name} of {shape.shape}",
        "The first request of every slot arrives together with the others, and waits for them. Where the "
        "steady phase lies "
        "far below the whole sample, the limit is that of a burst, and depends on how many requests "
        "follow it. The promise "
        f"of {limit_words(slo)} is judged over the whole sample.",
        (drawn,),
        _table(shape, contract, slo, trials),
    )


def _table(shape: PlateShape, contract: Contract, slo: Slo, trials: Sequence[PlateTrial]) -> h.Element:
    levels = levels_of(contract)
    columns = (
        Column(levels.head, "level"),
        Column("sample", kind="text"),
        Column("n"),
        Column("lowest", f"lowest {numbers.promise(slo)}"),
        Column("highest", f"highest {numbers.promise(slo)}"),
        Column("over"),
        Column("share over"),
        Column("bound\non the share", "bound on the share"),
    )
    rows = []
    for level in sorted({trial.level for trial in trials}):
        certified = next((c for c in shape.certified if c.slo == slo and c.level == level), None)
        results = [result for trial in trials if trial.level == level for result in _of(trial, slo)]
        for phase in PHASES:
            samples = [
                sample
                for result in results
                for name, sample in _samples(result)
                if name == phase and sample.n
            ]
            if not samples:
                continue
            ordered = sorted(samples, key=lambda one: one.bounds.best if one.bounds else 0.0)
            low, high = ordered[0], ordered[-1]
            mark = "" if all(sample.supported for sample in samples) else numbers.UNSUPPORTED
            share = None if certified is None else getattr(certified, phase)
            over = sum(sample.over_at_worst for sample in samples)
            n = sum(sample.n for sample in samples)
            rows.append(
                Row(
                    (
                        Cell(levels.told(level), levels.value(level)),
                        phase,
                        Cell(f"{n:,}", n),
                        Cell(numbers.judged(slo, low.best, low.best_infinite) + mark, low.best),
                        Cell(numbers.judged(slo, high.best, high.best_infinite) + mark, high.best),
                        Cell(f"{over:,}", over),
                        Cell(numbers.share(over / n), over / n),
                        Cell(numbers.share(share.bound) if share else None, share.bound if share else None),
                    ),
                    begins=phase == "whole",
                )
            )
    return table(columns, rows, f"{numbers.promise(slo)} by phase", note=numbers.UNSUPPORTED_NOTE)


def _of(trial: PlateTrial, slo: Slo) -> list[SloResult]:
    return [result for result in trial.slos if result.slo == slo]


def _samples(result: SloResult) -> tuple[tuple[str, SloSample], ...]:
    return (("whole", result.whole), ("opening", result.opening), ("steady", result.steady))
