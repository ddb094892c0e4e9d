"""The answer of a curve: from where on more load adds waiting, in the study's own sentence."""

from __future__ import annotations

import htpy as h

from nameplate.contract.curve import CurvePlan, say_load
from nameplate.measure.curve_result import CurveResult
from nameplate.pages.subject import CurveSubject
from nameplate.pages.terms import term
from nameplate.pages.values import document, value
from nameplate.pages.words import badge, facts
from nameplate.report import numbers
from nameplate.report.curve import limits_words, loss_words, sample_words, split_words
from nameplate.report.safe import safe
from nameplate.verdict.curve import Knee
from nameplate.verdict.curve_level import LevelStatus

RESULT = "result.json"


def plan_of(result: CurveResult) -> CurvePlan:
    """Return what was asked for; a curve's contract always has it."""
    assert result.contract.curve is not None
    return result.contract.curve


def answer_block(subject: CurveSubject) -> h.Element:
    """Return the answer of a curve study: losses and other limits before the sentences, then the knee."""
    result = subject.result
    several = len(result.curves) > 1
    said = [
        f"{limits_words(curve, result.curves)}: {sentence}" if several else sentence
        for curve, sentence in zip(result.curves, result.sentences, strict=False)
    ]
    first, *rest = [*([split_words(result)] if several else []), *said] or [
        "No level has a number, so there is no curve."
    ]
    when = subject.began
    measured = sum(row.status is LevelStatus.valid for row in result.rows)
    return h.section(document(RESULT, subject.name), class_=f"answer tone-{_tone(result)}")[
        h.h1[safe(first, 2000)],
        [h.p(".lead")[safe(line, 2000)] for line in rest],
        h.p[
            badge("unfinished" if not result.finished else _status(result)),
            " ",
            (badge("simulated time", "none"), " ") if subject.simulated else None,
            h.span(".soft")[
                f"{measured} of {numbers.count(len(result.rows), 'level')} measured · "
                f"{safe(sample_words(result), 300)}{'' if when is None else f' · {when:%Y-%m-%d}'}"
            ],
        ],
        h.ul(".plain")[[h.li[safe(loss_words(result, loss), 2000)] for loss in result.losses]],
        h.p[f"Incomplete: {safe(result.reason.rstrip('.'), 1000)}."]
        if result.exit_code not in (0, None)
        else None,
        _knees(result) if plan_of(result).kind != "input" else _border(result),
    ]


def _status(result: CurveResult) -> str:
    return {0: "ok", 4: "invalid", 5: "lost", 130: "interrupted"}.get(result.exit_code or 0, "incomplete")


def _tone(result: CurveResult) -> str:
    if not result.finished:
        return "none"
    return {0: "good", 4: "bad", 5: "bad"}.get(result.exit_code or 0, "warn")


def _knees(result: CurveResult) -> h.Node:
    entries: list[tuple[h.Node, h.Node]] = []
    for at, curve in enumerate(result.curves):
        name = f" ({limits_words(curve, result.curves)})" if len(result.curves) > 1 else ""
        entries.append(
            (
                [term("knee", "Knee"), safe(name, 200)],
                _knee(result, curve.knee, f"curves.{at}.knee"),
            )
        )
    return facts(entries) if entries else None


def _knee(result: CurveResult, knee: Knee, path: str) -> h.Node:
    kind = plan_of(result).kind
    if knee.status != "found" or knee.level is None:
        return {"not_reached": "not reached: output still rises at the highest level"}.get(
            knee.status, "not known: it takes two levels"
        )
    at = value(say_load(kind, knee.level), knee.level, f"{path}.level")
    found: list[h.Node]
    if knee.after is None:
        found = ["at or below ", at, ", the lowest level"]
    else:
        found = ["between ", value(say_load(kind, knee.after), knee.after, f"{path}.after"), " and ", at]
    if knee.lowest is not None:
        most = "or not reached" if knee.highest is None else f"to {say_load(kind, knee.highest)}"
        found.append(f"; over all combinations of trials {say_load(kind, knee.lowest)} {most}")
    if knee.adds is not None:
        found.append(f"; beyond it more load adds {knee.adds}")
    return found


def _border(result: CurveResult) -> h.Node:
    border = result.border
    if border is None:
        return None
    if border.source == "told":
        said: h.Node = [
            value(
                numbers.count(border.context_tokens, "token"), border.context_tokens, "border.context_tokens"
            ),
            ", as the server tells",
        ]
    else:
        said = [
            "between ",
            value(numbers.count(border.accepted_tokens), border.accepted_tokens, "border.accepted_tokens"),
            " tokens of input, which were taken, and ",
            value(numbers.count(border.refused_tokens), border.refused_tokens, "border.refused_tokens"),
            ", which were refused",
        ]
    return facts([("Context ends", said)])
