"""The answer of a trial: its load, its promises and what they came to, in a sentence."""

from __future__ import annotations

import htpy as h

from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.pages.subject import TrialSubject
from nameplate.pages.words import badge, tone
from nameplate.report import numbers
from nameplate.report.boundary import judged
from nameplate.report.safe import safe
from nameplate.report.words import promise
from nameplate.report.work import load_of, start_of
from nameplate.verdict.gate import MEANING

_REASON_LIMIT = 1500


def answer_block(trial: TrialSubject, sent: int) -> h.Element:
    """Return the verdict in a sentence with its reasons; `sent` is how many measured requests are on disk."""
    plan, result = trial.header.plan, trial.result
    status = status_of(trial)
    about = (
        f"{safe(plan.key, 200)} · {numbers.count(plan.warmup, 'warm-up request')} one by one, "
        f"then {start_of(plan)} · "
    )
    elapsed = "" if result is None else f"{numbers.rough(result.elapsed_s)} · "
    return h.section(class_=f"answer tone-{tone(status)}")[
        h.h1[sentence(trial, sent)],
        reasons(trial),
        h.p[
            badge(status),
            " ",
            (badge("simulated time", "none"), " ") if trial.header.clock == "virtual" else None,
            (badge("interrupted"), " ") if result is not None and result.interrupted else None,
            h.span(".soft")[f"{about}{elapsed}{trial.began:%Y-%m-%d %H:%M} UTC"],
        ],
    ]


def status_of(trial: TrialSubject) -> str:
    """Return a trial's status as people see it: its cell's, its verdict's, or that it was not sealed."""
    if trial.result is None:
        return "unfinished"
    return trial.result.verdict.status if trial.result.speed is None else trial.result.speed.verdict.status


def sentence(trial: TrialSubject, sent: int) -> str:
    """Say what a trial came to in a sentence."""
    plan, result = trial.header.plan, trial.result
    if result is None:
        return (
            f"No verdict: the trial was not sealed. {sent:,} of {_planned(plan)} are on disk; what they say so far is "
            "below."
        )
    found = result.measurement.correctness
    if result.speed is not None:
        said = result.speed.verdict
        return f"{_capital(said.status)}: {numbers.count(plan.concurrency, 'stream')} of {plan.shape}, {plan.role}."
    if not found.sent:
        return f"{_capital(result.verdict.status)}: not one of {_planned(plan)} was sent."
    what = f"{found.sent:,} requests {load_of(plan)}"
    if not result.verdict.slos:
        return f"{_capital(result.verdict.status)}: {what}. No promise was given, so the gates alone decide."
    if result.verdict.status == "invalid":
        promised = promise([one.slo for one in result.verdict.slos])
        return f"Invalid: {what} say nothing of {promised}, because {_why(result)}."
    return f"{_capital(result.verdict.status)}: {what}; {_values(result)}."


def _why(result: TrialResult) -> str:
    """Say in words what makes a trial invalid: each broken gate by what it means."""
    broken = [gate.gate for gate in result.gates if gate.status == "invalid"]
    return "; ".join(MEANING[gate] for gate in broken) or "its evidence does not support a verdict"


def _values(result: TrialResult) -> str:
    held = {"pass": "holds", "fail": "does not hold", "inconclusive": "is not known"}
    return "; ".join(
        f"{numbers.promise(one.slo)} {held[one.status]}: {judged(one, one.whole)} (n {one.whole.n:,})"
        for one in result.verdict.slos
    )


def _planned(plan: TrialPlan) -> str:
    return f"{numbers.count(plan.requests, 'planned request')} {load_of(plan)}"


def _capital(said: str) -> str:
    words = said.replace("_", " ")
    return words[:1].upper() + words[1:]


def reasons(trial: TrialSubject) -> h.Node:
    """Return why a trial did not pass, beside what its promises already say; nothing where it passed."""
    result = trial.result
    if result is None or result.verdict.status == "pass":
        return None
    told = tuple(f"{one.slo}: " for one in result.verdict.slos)
    said = [reason for reason in result.verdict.reasons if not reason.startswith(told)]
    return h.ul(".plain")[[h.li[safe(reason, _REASON_LIMIT)] for reason in said]] if said else None
