"""The trials of a study, each folded away, with what its own page would show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import htpy as h
from markupsafe import Markup

from nameplate.pages.anchor import anchor, trial_anchor
from nameplate.pages.chart import Alike
from nameplate.pages.subject import StudySubject, TrialSubject
from nameplate.pages.trial.answer import reasons, sentence, status_of
from nameplate.pages.trial.rows import read_rows
from nameplate.pages.trial.section import brief_section, folded_section
from nameplate.pages.trial.waterfall import MOST_ROWS
from nameplate.pages.words import badge
from nameplate.report import numbers
from nameplate.report.safe import safe

# Of all trials of one page: a request is some 150 bytes, and a page should stay below 3 MB.
ROWS_ON_PAGE = 6_000
_FEWEST_ROWS = 40
# What a trial shows here is some 33 KB whole and 15 KB in brief; the rest of a very long study has its answers alone.
WHOLE_TRIALS = 24
BRIEF_TRIALS = 60
# Reading output events takes about a second for so many.
EVENTS_ON_PAGE = 1_500_000

Form = Literal["whole", "brief", "answer"]


def trial_list(subject: StudySubject) -> h.Node:
    """Return all trials of a study, each folded away; their rows are read here and kept no longer than this."""
    if not subject.trials:
        return None
    most = max(_FEWEST_ROWS, min(MOST_ROWS, ROWS_ON_PAGE // len(subject.trials)))
    events = with_events(subject.trials)
    forms = forms_of(subject.trials)
    mine = anchor(subject.directory, "rows", "of")
    alike = Alike(mine)
    return h.section(aria_label="Trials")[
        h.h2[f"All {numbers.count(len(subject.trials), 'trial')}"],
        [
            # Written here: what is nested deeply is slow to write, and its rows need not be kept.
            Markup(
                str(
                    _folded(subject.directory, trial, f"{mine}-{at}", most, trial.name in events, alike, form)
                )
            )
            for at, (trial, form) in enumerate(zip(subject.trials, forms, strict=True))
        ],
    ]


def forms_of(trials: Sequence[TrialSubject]) -> list[Form]:
    """Return how much each trial shows, in their order: confirmations come first where a study is long."""
    forms: list[Form] = ["answer"] * len(trials)
    order = sorted(range(len(trials)), key=lambda at: trials[at].header.plan.role != "confirmation")
    for rank, at in enumerate(order[: WHOLE_TRIALS + BRIEF_TRIALS]):
        forms[at] = "whole" if rank < WHOLE_TRIALS else "brief"
    return forms


def with_events(trials: Sequence[TrialSubject], most: int = EVENTS_ON_PAGE) -> frozenset[str]:
    """Return the trials whose output events are read: confirmations first, as many as stay within `most` events."""
    chosen: set[str] = set()
    left = most
    for trial in sorted(trials, key=lambda one: one.header.plan.role != "confirmation"):
        events = _events_of(trial)
        if events is not None and events <= left:
            chosen.add(trial.name)
            left -= events
    return frozenset(chosen)


def _events_of(trial: TrialSubject) -> int | None:
    return None if trial.result is None else trial.result.measurement.correctness.output_events


def _folded(
    study: Path, trial: TrialSubject, name: str, most: int, events: bool, alike: Alike, form: Form
) -> h.Element:
    read = read_rows(trial, events=events and form == "whole")
    result = trial.result
    return h.details(".trial", id=trial_anchor(study, trial.name))[
        h.summary[
            h.code[safe(trial.name, 200)],
            badge(status_of(trial)),
            h.span(".soft")[
                "not sealed"
                if result is None
                else numbers.count(result.measurement.correctness.sent, "request")
            ],
        ],
        h.p[h.strong[sentence(trial, len(read.measured))]],
        reasons(trial),
        folded_section(trial, read, name, most, alike)
        if form == "whole"
        else brief_section(trial, read, name, most, alike, drawn=form == "brief"),
    ]
