"""The answer of a capacity or rate study: the number in a sentence, with what carries it."""

from __future__ import annotations

import htpy as h

from nameplate.contract.levels import Levels, levels_of
from nameplate.measure.plate import PlateShape
from nameplate.pages.subject import RatedSubject
from nameplate.pages.terms import term
from nameplate.pages.values import ABSENT, value
from nameplate.pages.words import badge, facts, tone
from nameplate.report import numbers
from nameplate.report.certainty import percent
from nameplate.report.safe import safe
from nameplate.report.words import answer, lost, meaning, operating, promise
from nameplate.verdict.certify import Certified


def answer_block(subject: RatedSubject) -> h.Element:
    """Return the answers of all shapes, the first as the heading of the run."""
    plate = subject.plate
    first, *others = plate.shapes
    worst = next((shape.status for shape in plate.shapes if shape.status != "confirmed"), "confirmed")
    broken = any(shape.status == "confirmed" and shape.pass_level is None for shape in plate.shapes)
    rated = sum(shape.rated is not None for shape in plate.shapes)
    return h.section(class_=f"answer tone-{'bad' if broken else tone(worst)}")[
        h.h1[safe(answer(first, plate.contract), 600)],
        h.p[_standing(first)],
        [[h.p(".lead")[safe(answer(shape, plate.contract), 600)], h.p[_standing(shape)]] for shape in others],
        h.p(".under")["These numbers are alternatives, one shape at a time, and not a sum."]
        if rated > 1
        else None,
        h.p[
            (badge("simulated time", "none"), " ") if subject.simulated else None,
            None if subject.finished else (badge("not ended", "unfinished"), " "),
            h.span(".soft")[safe(_about(subject), 500)],
        ],
    ]


def _chip(shape: PlateShape) -> h.Element:
    """Return a shape's status; of a search that a lost server ended, that it was lost."""
    return badge("server lost", "lost") if lost(shape) else badge(shape.status)


def _about(subject: RatedSubject) -> str:
    said = [promise(subject.plate.contract.slos)]
    if any(shape.confirmations for shape in subject.plate.shapes):
        said.append(f"{subject.plate.contract.rules.confirmations} confirmation trials a level")
    if subject.began is not None:
        said.append(f"{subject.began:%Y-%m-%d}")
    return " · ".join(said)


def _standing(shape: PlateShape) -> h.Node:
    """Return a shape's status, and what is certified of its rated level with the bound of each promise."""
    found = [one for one in shape.certified if one.level == shape.pass_level and one.whole.bound is not None]
    said = "; ".join(
        f"{numbers.promise(one.slo)} {'certified' if one.holds else 'not certified'}: at most "
        f"{numbers.share(one.whole.bound)} of requests over, with {percent(one.confidence)} confidence"
        for one in found
    )
    return [_chip(shape), " ", h.span(".soft")[safe(said, 800) or "nothing certified"]]


def shape_facts(shape: PlateShape, subject: RatedSubject, position: int) -> h.Element:
    """Return one shape's numbers: rated, operating, certified, alone."""
    contract = subject.plate.contract
    levels = levels_of(contract)
    rated = None if shape.rated is None else levels.value(shape.rated)
    number = f"{levels.told(shape.rated)} {levels.noun}" if shape.rated is not None else "no number"
    path = f"shapes.{position}"
    return h.div[
        h.p(".big")[
            value(number, shape.rated, f"{path}.rated") if contract.rate is None else value(number, rated)
        ],
        facts(
            [
                ("Status", [_chip(shape), " ", safe(meaning(shape, contract), 600)]),
                None if shape.status == "confirmed" else ("Because", safe(shape.reason, 1500)),
                (term("operate at", "Operate at"), operating(shape, contract)),
                (term("certified", "Certified"), _certificates(shape, levels)),
                ("Prompts", _counted(shape)),
                ("Alone", _alone(shape, path)),
            ]
        ),
    ]


def _certificates(shape: PlateShape, levels: Levels) -> h.Node:
    found = [one for one in shape.certified if one.level == shape.pass_level]
    if not found:
        return "nothing: no level passed" if shape.pass_level is None else "nothing"
    return [h.div[certificate(one, levels)] for one in found]


def certificate(one: Certified, levels: Levels) -> str:
    """Say what the requests of a passing level certify of one promise."""
    held = "holds" if one.holds else "is not certified"
    return (
        f"{numbers.promise(one.slo)} at {levels.name(one.level)} {held}: {one.whole.over:,} of "
        f"{one.whole.n:,} requests "
        f"over, so with {percent(one.confidence)} confidence at most {numbers.share(one.whole.bound)}; "
        f"the promise allows "
        f"{one.claim * 100:.6g}% ({safe(one.label, 200)})"
    )


def _counted(shape: PlateShape) -> str:
    counted = shape.prompt_tokens
    if counted is None:
        return (
            "the server did not count prompt tokens"
            if shape.baseline or shape.confirmations
            else "none was sent"
        )
    return f"{numbers.between(f'{counted.low:,}', f'{counted.high:,}')} tokens, as the server counts them"


def _alone(shape: PlateShape, path: str) -> h.Node:
    alone = shape.baseline
    if alone is None:
        return ABSENT
    at = f"{path}.baseline"
    return [
        "TTFT p50 ",
        value(
            numbers.quantile(alone.ttft.p50_ns, alone.ttft.n, False), alone.ttft.p50_ns, f"{at}.ttft.p50_ns"
        ),
        ", ITL p50 ",
        value(numbers.quantile(alone.itl.p50_ns, alone.itl.n, False), alone.itl.p50_ns, f"{at}.itl.p50_ns"),
        f" (n {alone.ttft.n}); prefill ",
        value(
            numbers.rate(alone.prefill_counted_per_s, "tok/s"),
            alone.prefill_counted_per_s,
            f"{at}.prefill_counted_per_s",
        ),
        " counted, ",
        value(
            numbers.rate(alone.prefill_nominal_per_s, "tok/s"),
            alone.prefill_nominal_per_s,
            f"{at}.prefill_nominal_per_s",
        ),
        " nominal; decode ",
        value(numbers.rate(alone.decode_per_s, "tok/s"), alone.decode_per_s, f"{at}.decode_per_s"),
    ]
