"""The trials of a study, each folded away, with what its own page would show."""

from __future__ import annotations

import htpy as h

from nameplate.pages.subject import StudySubject, TrialSubject
from nameplate.pages.words import badge
from nameplate.report import numbers
from nameplate.report.safe import safe


def trial_list(subject: StudySubject) -> h.Node:
    """Return all trials of a study, each folded away."""
    if not subject.trials:
        return None
    return h.section(aria_label="Trials")[
        h.h2[f"All {numbers.count(len(subject.trials), 'trial')}"],
        [_folded(trial) for trial in subject.trials],
    ]


def _folded(trial: TrialSubject) -> h.Element:
    result = trial.result
    return h.details(".trial", id=f"trial-{safe(trial.name, 200)}")[
        h.summary[
            h.code[safe(trial.name, 200)],
            badge("unfinished" if result is None else result.verdict.status),
            h.span(".soft")[
                "" if result is None else numbers.count(result.measurement.correctness.sent, "request")
            ],
        ],
        None if result is None else [h.p[safe(reason, 1000)] for reason in result.verdict.reasons],
    ]
