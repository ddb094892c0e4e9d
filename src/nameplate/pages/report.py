"""The page of one or more runs: the answers first, then everything each of them rests on."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h
from msgspec import Struct

from nameplate.pages.checks import Checked, alert, checks_section, contradicted
from nameplate.pages.curve import answer as curve_answer
from nameplate.pages.curve import section as curve_section
from nameplate.pages.document import document
from nameplate.pages.imported import section as imported
from nameplate.pages.plate_picture import CONTRADICTED
from nameplate.pages.rated import answer as rated_answer
from nameplate.pages.rated import section as rated_section
from nameplate.pages.soak import answer as soak_answer
from nameplate.pages.soak import section as soak_section
from nameplate.pages.speed import answer as speed_answer
from nameplate.pages.speed import section as speed_section
from nameplate.pages.subject import (
    CurveSubject,
    ImportedSubject,
    RatedSubject,
    SoakSubject,
    SpeedSubject,
    Subject,
    TrialSubject,
)
from nameplate.pages.terms import glossary
from nameplate.pages.trial import section as trial_section
from nameplate.report import numbers
from nameplate.report.safe import safe


class Parts(Struct, frozen=True):
    """Hold a run's page: its answer, all that it rests on, and the terms that either uses."""

    answer: h.Element
    rest: h.Element
    terms: Sequence[str]


def report_page(subjects: Sequence[Subject], checks: Sequence[Checked] = ()) -> str:
    """Return one page over these runs, in the order given; at least one. `checks` are those made of each run.

    All answers come first; what each of them rests on follows.
    """
    parts = [_parts(subject, position) for position, subject in enumerate(subjects)]
    made = [*checks, *[None] * (len(subjects) - len(checks))]
    first, several = safe(subjects[0].name, 100), len(subjects) > 1
    many = f"Report of {numbers.count(len(subjects), 'run')}"
    styles, scripts = _assets(subjects)
    body = [
        h.p(".lead")[f"{numbers.count(len(subjects), 'run')} on one page"] if several else None,
        [_answer(*each, several) for each in zip(subjects, parts, made, range(len(parts)), strict=True)],
        [_rest(*each, several) for each in zip(subjects, parts, made, range(len(parts)), strict=True)],
        glossary(term for each in parts for term in each.terms),
    ]
    return document(
        f"{first} and {len(subjects) - 1} more · nameplate" if several else f"{first} · nameplate",
        h.div(id="answer")[body],
        made=many if several else f"Report of {first}",
        styles=styles,
        scripts=scripts,
    )


def _answer(subject: Subject, parts: Parts, checked: Checked | None, position: int, several: bool) -> h.Node:
    """Return a run's answer, and before it what in its evidence does not hold; then it has no other answer."""
    answer = contradicted(checked, subject.name) if checked is not None and checked.failures else parts.answer
    if not several:
        return [alert(checked), answer]
    link = h.a(href=f"#run-{position}")[f"What it rests on: {safe(subject.name, 80)}"]
    return h.div[alert(checked), answer, h.p[link]]


def _rest(subject: Subject, parts: Parts, checked: Checked | None, position: int, several: bool) -> h.Element:
    # An imported matrix has neither seals nor evidence that could be checked.
    ours = not (isinstance(subject, SpeedSubject) and subject.result.origin is not None)
    broken = checked is not None and bool(checked.failures)
    return h.article(id=f"run-{position}", aria_label=safe(subject.name, 200))[
        h.h2(".run")[safe(subject.name, 200)] if several else None,
        CONTRADICTED.provider(True, h.div(".contradicted")[parts.rest]) if broken else parts.rest,
        checks_section(checked, str(subject.directory)) if ours else None,
    ]


def _parts(subject: Subject, position: int) -> Parts:
    match subject:
        case RatedSubject():
            return Parts(
                rated_answer.answer_block(subject), rated_section.rated_section(subject), rated_section.TERMS
            )
        case SpeedSubject():
            return Parts(
                speed_answer.answer_block(subject),
                speed_section.speed_section(subject),
                speed_section.terms(subject),
            )
        case CurveSubject():
            return Parts(
                curve_answer.answer_block(subject), curve_section.curve_section(subject), curve_section.TERMS
            )
        case SoakSubject():
            return Parts(
                soak_answer.answer_block(subject), soak_section.soak_section(subject), soak_section.TERMS
            )
        case TrialSubject():
            answer, rest = trial_section.trial_page(subject, f"rows-{position}")
            return Parts(answer, rest, trial_section.terms(subject))
        case ImportedSubject():
            return Parts(
                imported.imported_answer(subject), imported.imported_section(subject), imported.TERMS
            )


def _assets(subjects: Sequence[Subject]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the further styles and scripts that these runs' pages need."""
    speed = any(isinstance(subject, SpeedSubject) for subject in subjects)
    return (speed_section.STYLES, speed_section.SCRIPTS) if speed else ((), ())
