"""The numbers of a run as ratings: each with all that decides what it may be ranked with."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from nameplate.contract.contract import Contract
from nameplate.contract.curve import say_load
from nameplate.contract.levels import levels_of
from nameplate.contract.soak import Soak
from nameplate.exchange.peers.run import Imported, Run
from nameplate.measure.plate import PlateShape
from nameplate.measure.soak.result import SoakResult
from nameplate.pages.catalogue.entry import Certificate, Rating
from nameplate.pages.catalogue.speeds import speed_ratings
from nameplate.pages.catalogue.terms import conditions
from nameplate.pages.subject import (
    CurveSubject,
    RatedSubject,
    SoakSubject,
    SpeedSubject,
    Subject,
    TrialSubject,
)
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_words import load_of
from nameplate.report.words import promise
from nameplate.verdict.boundary import Status
from nameplate.verdict.curve import Curve
from nameplate.verdict.drift import of_server, worst_of

_LIMIT = 200
# A file of another tool may hold a sweep; beyond so many runs a catalogue is no place to read it.
_MOST_RUNS = 64


def ratings_of(subject: Subject) -> tuple[Rating, ...]:
    """Return every number of a run by which it can be sorted, its headline first."""
    return tuple(_ratings(subject))


def _ratings(subject: Subject) -> Iterator[Rating]:
    if isinstance(subject, RatedSubject):
        contract = subject.plate.contract
        for shape in subject.plate.shapes:
            yield _rated(shape, contract)
        for shape in subject.plate.shapes:
            yield from _alone(shape, contract)
    elif isinstance(subject, CurveSubject):
        yield from _curve(subject)
    elif isinstance(subject, SpeedSubject):
        yield from speed_ratings(subject.result)
    elif isinstance(subject, SoakSubject):
        if subject.record.result is not None:
            yield _soak(subject.record.contract, subject.record.result)
    elif isinstance(subject, TrialSubject):
        yield from _trial(subject)
    else:
        for run in subject.document.runs[:_MOST_RUNS]:
            yield from _import(subject.document, run)


def _rated(shape: PlateShape, contract: Contract) -> Rating:
    levels = levels_of(contract)

    def worth(level: int | None) -> float | None:
        return None if level is None else float(levels.value(level))

    return Rating(
        measure="capacity" if contract.rate is None else "rate",
        of=str(shape.shape),
        promise=_promise(contract),
        under=conditions(contract),
        value=worth(shape.rated),
        unit="concurrent" if contract.rate is None else "req/s",
        status=shape.status,
        at_least=shape.status in (Status.open_above, Status.budget),
        operate_at=worth(shape.operate_at),
        certificate=_certificate(shape),
    )


def _promise(contract: Contract) -> str:
    return safe(promise(contract.slos), _LIMIT) if contract.slos else ""


def _certificate(shape: PlateShape) -> Certificate | None:
    found = [one for one in shape.certified if one.level == shape.pass_level]
    if not found:
        return None
    bounds = [one.whole.bound for one in found]
    known = [bound for bound in bounds if bound is not None]
    return Certificate(
        bound=max(known) if len(known) == len(bounds) else None,
        confidence=min(one.confidence for one in found),
        holds=all(one.holds for one in found),
    )


def _alone(shape: PlateShape, contract: Contract) -> Iterator[Rating]:
    alone = shape.baseline
    if alone is None:
        return
    under = conditions(contract, alone=True)
    if alone.decode_per_s is not None:
        yield Rating(
            measure="decode",
            of=str(shape.shape),
            under=under,
            value=alone.decode_per_s,
            unit="tok/s",
            status="valid",
        )
    if alone.prefill_counted_per_s is not None:
        yield Rating(
            measure="prefill",
            of=f"{shape.shape.input_tokens:,} tokens",
            under=under,
            value=alone.prefill_counted_per_s,
            unit="tok/s",
            status="valid",
        )


def _curve(subject: CurveSubject) -> Iterator[Rating]:
    contract, curves = subject.result.contract, subject.result.curves
    plan = contract.curve
    # A server that changed within the study has several curves, and no one number.
    if plan is None or len(curves) != 1:
        return
    curve, under = curves[0], conditions(contract)
    if plan.kind == "input":
        yield from _climb(subject, conditions(contract, alone=True))
        return
    shape = str(contract.shapes[0]) if contract.shapes else ""
    if plan.arrivals is not None:
        under = f"{under}, {plan.arrivals.kind} arrivals"
    tried = f"{under}, levels {'/'.join(f'{level.load:g}' for level in curve.levels)}"
    yield _knee(curve, plan.kind == "rate", shape, safe(tried, _LIMIT))
    best = max(curve.levels, key=lambda level: level.output_per_s.middle, default=None)
    if best is not None:
        yield Rating(
            measure="best_output",
            of=shape,
            under=safe(tried, _LIMIT),
            value=best.output_per_s.middle,
            unit="tok/s",
            status="valid",
            detail=f"{shape} at {say_load(plan.kind, best.load)}",
        )
    for level in curve.levels:
        yield Rating(
            measure="output",
            of=f"{shape} at {say_load(plan.kind, level.load)}",
            under=under,
            value=level.output_per_s.middle,
            unit="tok/s",
            status="valid",
        )


def _knee(curve: Curve, rates: bool, shape: str, under: str) -> Rating:
    knee = curve.knee
    return Rating(
        measure="knee",
        of=shape,
        under=under,
        value=knee.level,
        unit="req/s" if rates else "clients",
        status=knee.status,
        detail="" if knee.after is None else f"between {knee.after:g} and {knee.level:g}",
    )


def _climb(subject: CurveSubject, under: str) -> Iterator[Rating]:
    for row in subject.result.rows:
        alone = [point.alone for point in row.points if point.alone is not None]
        rates = [one.prefill_counted.p50 for one in alone if one.prefill_counted.p50 is not None]
        if rates:
            yield Rating(
                measure="prefill",
                of=f"{row.load:,.0f} tokens",
                under=under,
                value=statistics.median_low(rates),
                unit="tok/s",
                status="valid",
            )


def _soak(contract: Contract, result: SoakResult) -> Rating:
    verdict = result.verdict
    kept = next(
        (rate.per_s for rate in result.rates if rate.of.startswith("output tokens that arrived")), None
    )
    return Rating(
        measure="soak_output",
        of=safe(load_of(contract), _LIMIT),
        promise=_promise(contract),
        under=conditions(contract),
        value=kept if verdict.status == "pass" else None,
        unit="tok/s",
        status=verdict.status,
        detail=f"{worst_of(of_server(result.drift))} over {_hours(contract.soak.soak if contract.soak else None)}",
    )


def _hours(soak: Soak | None) -> str:
    return numbers.ABSENT if soak is None else numbers.rough(soak.duration_ns / 1e9)


def _trial(subject: TrialSubject) -> Iterator[Rating]:
    result, contract = subject.result, subject.contract
    if result is None:
        return
    plan, rate = subject.header.plan, result.measurement.rates.tokens_whole
    load = f"as {plan.arrivals}" if plan.arrivals is not None else f"at C={plan.concurrency}"
    yield Rating(
        measure="output",
        of=safe(f"{plan.shape} {load}", _LIMIT),
        promise=_promise(contract),
        under=conditions(contract),
        value=rate.per_s if rate is not None and result.verdict.status == "pass" else None,
        unit="tok/s",
        status=result.verdict.status,
    )


def _import(document: Imported, run: Run) -> Iterator[Rating]:
    load, tool = run.load, run.tool or document.tool
    lengths = [numbers.count(value) for value in (load.input_tokens, load.output_tokens)]
    asked = f"at C={load.concurrency}" if load.concurrency is not None else "load not stated"
    if load.rate_per_s is not None:
        asked = f"as {load.rate_per_s:g} req/s"
    of, status = (
        safe(f"{'/'.join(lengths)} {asked}", _LIMIT),
        "contradicted" if run.contradictions else "imported",
    )
    rate = run.measure("output_rate")
    if rate is not None and rate.mean is not None:
        yield Rating(
            measure="output",
            of=of,
            under=safe(f"as {tool} counts it: {rate.field}", _LIMIT),
            value=None if run.contradictions else rate.mean,
            unit="tok/s",
            status=status,
            detail=safe(run.label, 80),
        )
    per_user = next((one for one in run.recomputed if one.name == "per_user"), None)
    if per_user is not None and "p50" in per_user.percentiles:
        yield Rating(
            measure="decode",
            of=of,
            under=safe(f"median by our rules, of {tool}'s records", _LIMIT),
            value=None if run.contradictions else per_user.percentiles["p50"],
            unit="tok/s",
            status=status,
            detail=safe(run.label, 80),
        )
