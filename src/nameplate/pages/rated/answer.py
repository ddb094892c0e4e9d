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
from nameplate.report.words import answer, meaning, operating, promise
from nameplate.verdict.certify import Certified


def answer_block(subject: RatedSubject) -> h.Element:
    """Return the answers of all shapes, the first as the heading of the run."""
    plate = subject.plate
    told = [answer(shape, plate.contract) for shape in plate.shapes]
    worst = next((shape.status for shape in plate.shapes if shape.status != "confirmed"), "confirmed")
    broken = any(shape.status == "confirmed" and shape.pass_level is None for shape in plate.shapes)
    when = subject.began
    return h.section(class_=f"answer tone-{'bad' if broken else tone(worst)}")[
        h.h1[safe(told[0], 600)],
        [h.p(".lead")[safe(line, 600)] for line in told[1:]],
        h.p(".under")["These numbers are alternatives, one shape at a time, and not a sum."]
        if len(told) > 1
        else None,
        h.p[
            [(badge(shape.status), " ") for shape in plate.shapes] if len(plate.shapes) == 1 else None,
            (badge("simulated time", "none"), " ") if subject.simulated else None,
            None if subject.finished else (badge("not ended", "unfinished"), " "),
            h.span(".soft")[
                f"{safe(promise(plate.contract.slos), 300)} · {plate.contract.rules.confirmations} "
                f"confirmation trials a "
                f"level · {_certified_line(plate.shapes)}{'' if when is None else f' · {when:%Y-%m-%d}'}"
            ],
        ],
    ]


def _certified_line(shapes: tuple[PlateShape, ...]) -> str:
    """Say in a few words what is certified of the rated levels."""
    found = [one for shape in shapes for one in shape.certified if one.level == shape.pass_level]
    if not found:
        return "nothing certified"
    held = sum(one.holds for one in found)
    bounds = [one.whole.bound for one in found if one.whole.bound is not None]
    confidence = percent(found[0].confidence)
    if len(found) == 1 and bounds:
        word = "certified" if found[0].holds else "not certified"
        return f"{word}: at most {numbers.share(bounds[0])} of requests over, with {confidence} confidence"
    return f"{held} of {len(found)} promises certified with {confidence} confidence"


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
                ("Status", [badge(shape.status), " ", safe(meaning(shape, contract), 600)]),
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
        return "the server did not count prompt tokens"
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
