"""The rating plate of a curve: its knee and the most output, or where its climb came to."""

from __future__ import annotations

from nameplate.contract.curve import say_load
from nameplate.measure.curve_result import CurveResult
from nameplate.ratingplate.machine import machine_of, stamps_of
from nameplate.ratingplate.model import Field, Provenance, Rating, RatingPlate
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.verdict.curve import Curve, CurveLevel

# Each configuration of the server has a curve of its own; a plate has room for some.
_MOST_CURVES = 4


def plate_of_curve(result: CurveResult, provenance: Provenance) -> RatingPlate:
    """Return the rating plate of a curve study."""
    ratings: list[Rating] = []
    for at, curve in enumerate(result.curves[:_MOST_CURVES]):
        ratings += _ratings(result, curve, result.sentences[at] if at < len(result.sentences) else "")
    if not ratings:
        ratings = [
            Rating(
                subject="Output by load",
                number=None,
                value=None,
                unit="tok/s",
                stamp="NO RESULT",
                reason=safe(result.reason, 300) or "No level is valid.",
            )
        ]
    return RatingPlate(
        title="Load curve",
        verb="Measured",
        machine=machine_of(result.identity, result.contract.target.model),
        terms=(Field("Method", _how(result)),),
        ratings=tuple(ratings),
        stamps=(*stamps_of(result.identity, provenance), *(() if result.finished else ("UNFINISHED",))),
        date=provenance.date,
        evidence_sha256=provenance.evidence_sha256,
        tool=safe(result.tool, 80),
    )


def _ratings(result: CurveResult, curve: Curve, sentence: str) -> list[Rating]:
    plan = result.contract.curve
    if plan is None or not curve.levels:
        return []
    if plan.kind == "input":
        return [
            _first_token(curve.levels[0]),
            *([_first_token(curve.levels[-1])] if len(curve.levels) > 1 else []),
        ]
    knee, unit = curve.knee, "concurrent requests" if plan.kind == "concurrency" else "requests/s"
    found = knee.status == "found" and knee.level is not None
    between = [] if knee.after is None else [Field("Between", f"{knee.after:g} and {knee.level or 0:g}")]
    rating = Rating(
        subject="Knee: more load adds only waiting",
        number=knee.level if found else None,
        value=_written(knee.level) if found else None,
        unit=unit,
        stamp=None if found else {"not_reached": "NOT REACHED"}.get(knee.status, "NO KNEE"),
        reason="" if found else safe(sentence, 400),
        notes=tuple(between) if found else (),
    )
    most = max(curve.levels, key=lambda level: (level.output_per_s.middle, -level.load))
    output = most.output_per_s
    return [
        rating,
        Rating(
            subject=f"Most output, {say_load(plan.kind, most.load)}",
            number=output.middle,
            value=numbers.brief_rate(output.middle),
            unit="tok/s",
            notes=() if most.ttft_ns is None else (Field("TTFT p50", numbers.duration(most.ttft_ns.middle)),),
        ),
    ]


def _written(level: float | None) -> str | None:
    """Write a level: clients as a count, a rate with the digits it was asked for with."""
    if level is None:
        return None
    return numbers.count(int(level)) if level.is_integer() else f"{level:g}"


def _first_token(level: CurveLevel) -> Rating:
    value, _, unit = numbers.duration(None if level.ttft_ns is None else level.ttft_ns.middle).partition(" ")
    known = level.ttft_ns is not None
    return Rating(
        subject=f"TTFT p50 of {level.load:,.0f} prompt tokens",
        number=level.ttft_ns.middle if level.ttft_ns is not None else None,
        value=value if known else None,
        unit=unit if known else "s",
        stamp=None if known else "NO RESULT",
        reason="" if known else "No request of this length came to a first token.",
    )


def _how(result: CurveResult) -> str:
    plan, contract = result.contract.curve, result.contract
    shapes = ", ".join(map(str, contract.shapes))
    levels = numbers.count(sum(row.status == "valid" for row in result.rows), "valid level")
    loop = {"concurrency": "closed loop", "rate": "open loop", "input": "one request at a time"}
    kind = loop[plan.kind] if plan is not None else ""
    cache = "cold prompts" if contract.cache.cold else "warm prefix"
    sample = "requests after the opening wave" if result.basis == "steady" else "all requests"
    return "; ".join(part for part in (shapes, kind, cache, levels, sample) if part)
