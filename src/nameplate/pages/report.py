"""The page of one or more runs: the answers first, then everything each of them rests on."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.pages.checks import Checked, alert, checks_section
from nameplate.pages.curve import answer as curve_answer
from nameplate.pages.curve import section as curve_section
from nameplate.pages.document import document
from nameplate.pages.imported import section as imported
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
    SpeedSubject,
    Subject,
    TrialSubject,
)
from nameplate.pages.terms import glossary
from nameplate.pages.trial import section as trial_section
from nameplate.report import numbers
from nameplate.report.safe import safe


def report_page(subjects: Sequence[Subject], checks: Sequence[Checked] = ()) -> str:
    """Return one page over these runs, in the order given; at least one. `checks` are those made of each run."""
    several = len(subjects) > 1
    body: list[h.Node] = []
    if several:
        body.append(h.p(".lead")[f"{numbers.count(len(subjects), 'run')} on one page"])
        body.append(_contents(subjects))
    for position, subject in enumerate(subjects):
        body.append(_run(subject, position, checks[position] if checks else None))
    terms = [name for subject in subjects for name in _terms(subject)]
    body.append(glossary(terms))
    first = subjects[0].name
    styles, scripts = _assets(subjects)
    return document(
        f"{first} and {len(subjects) - 1} more · nameplate" if several else f"{first} · nameplate",
        h.div(id="answer")[body],
        made=f"Report of {numbers.count(len(subjects), 'run')}"
        if several
        else f"Report of {safe(first, 100)}",
        styles=styles,
        scripts=scripts,
    )


def _contents(subjects: Sequence[Subject]) -> h.Element:
    return h.nav(".contents", aria_label="Runs on this page")[
        h.ol[[h.li[h.a(href=f"#run-{at}")[safe(one.name, 80)]] for at, one in enumerate(subjects)]]
    ]


def _run(subject: Subject, position: int, checked: Checked | None) -> h.Element:
    """Return one run: its answer, and all it rests on."""
    if isinstance(subject, RatedSubject):
        parts = (rated_answer.answer_block(subject), rated_section.rated_section(subject))
    elif isinstance(subject, ImportedSubject):
        parts = (imported.imported_answer(subject), imported.imported_section(subject))
    elif isinstance(subject, SpeedSubject):
        parts = (speed_answer.answer_block(subject), speed_section.speed_section(subject))
    elif isinstance(subject, TrialSubject):
        parts = trial_section.trial_page(subject, f"rows-{position}")
    elif isinstance(subject, CurveSubject):
        parts = (curve_answer.answer_block(subject), curve_section.curve_section(subject))
    else:
        parts = (soak_answer.answer_block(subject), soak_section.soak_section(subject))
    # An imported matrix has neither seals nor evidence that could be checked.
    ours = not (isinstance(subject, SpeedSubject) and subject.result.origin is not None)
    return h.article(id=f"run-{position}", aria_label=safe(subject.name, 200))[
        alert(checked), parts, checks_section(checked, str(subject.directory)) if ours else None
    ]


def _terms(subject: Subject) -> Sequence[str]:
    if isinstance(subject, RatedSubject):
        return rated_section.TERMS
    if isinstance(subject, SpeedSubject):
        return speed_section.terms(subject)
    if isinstance(subject, TrialSubject):
        return trial_section.terms(subject)
    if isinstance(subject, CurveSubject):
        return curve_section.TERMS
    return imported.TERMS if isinstance(subject, ImportedSubject) else soak_section.TERMS


def _assets(subjects: Sequence[Subject]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the further styles and scripts that these runs' pages need."""
    speed = any(isinstance(subject, SpeedSubject) for subject in subjects)
    return (speed_section.STYLES, speed_section.SCRIPTS) if speed else ((), ())
