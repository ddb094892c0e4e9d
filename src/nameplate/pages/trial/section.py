"""Everything that a trial's evidence shows, below its answer: on its own page, or folded within its study's."""

from __future__ import annotations

import htpy as h

from nameplate.measure.correctness import count
from nameplate.pages.chart import Alike
from nameplate.pages.identity import contract_card, evidence_card, identity_table, launch, server_card
from nameplate.pages.subject import TrialSubject
from nameplate.pages.trial.answer import answer_block
from nameplate.pages.trial.course import course
from nameplate.pages.trial.distributions import distributions
from nameplate.pages.trial.gates import gates_table
from nameplate.pages.trial.header import header_table
from nameplate.pages.trial.latencies import latency_table, parts, promises
from nameplate.pages.trial.outcomes import failures, sums
from nameplate.pages.trial.rates import rates_table
from nameplate.pages.trial.rows import TrialRows, read_rows
from nameplate.pages.trial.speed import cell_section
from nameplate.pages.trial.waits import waits_section
from nameplate.pages.trial.waterfall import waterfall
from nameplate.pages.values import document
from nameplate.pages.words import facts, warnings
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.words import promise
from nameplate.report.work import load_of, work_lines

TERMS = (
    "TTFT",
    "ITL",
    "TPOT",
    "E2E",
    "chunk gap",
    "longest gap",
    "opening",
    "steady",
    "pNN",
    "output tok/s",
    "req/s",
    "tok/s per user",
    "effective concurrency",
    "send lag",
    "running, waiting",
    "KV",
)


def terms(trial: TrialSubject) -> tuple[str, ...]:
    """Return the terms that a trial's page uses."""
    return TERMS if trial.header.plan.arrivals is None else ("TTFT from schedule", *TERMS)


def trial_page(trial: TrialSubject, name: str) -> tuple[h.Element, h.Element]:
    """Return a trial's answer and all it rests on; its rows are read here, with every output event."""
    read = read_rows(trial, events=True)
    return answer_block(trial, len(read.measured)), trial_section(trial, read, name)


def trial_section(trial: TrialSubject, read: TrialRows, name: str) -> h.Element:
    """Return a trial's own page below its answer; `name` is unique among the trials of the page."""
    result = trial.result
    return h.div(document("result.json" if result is not None else "", trial.name))[
        _damage(read),
        _counts(trial, read),
        None if result is None else [promises(result), cell_section(result)],
        failures(read.measured, trial.header.plan),
        waterfall(read, trial.header.plan, name),
        course(read, opened=trial.header.plan.arrivals is not None),
        distributions(trial, read),
        None
        if result is None
        else [
            latency_table(result),
            parts(result.measurement.breakdown),
            waits_section(result.measurement.waits),
            rates_table(result),
            h.h2["What was done"],
            _work(trial),
            gates_table(result),
            warnings(result.warnings, "Warnings"),
        ],
        _cards(trial),
        launch(trial.identity.facts),
        identity_table(trial.identity.facts, trial.identity.missing),
        header_table(trial.header),
    ]


def folded_section(trial: TrialSubject, read: TrialRows, name: str, most: int, alike: Alike) -> h.Element:
    """Return a trial within its study's page: what is its own, and not what it shares with the study."""
    result = trial.result
    return h.div(document(f"trials/{trial.name}/result.json" if result is not None else ""))[
        _damage(read),
        _counts(trial, read),
        None if result is None else [promises(result), cell_section(result)],
        failures(read.measured, trial.header.plan),
        waterfall(read, trial.header.plan, name, most, alike),
        distributions(trial, read, alike),
        None
        if result is None
        else [
            latency_table(result, folded=True),
            parts(result.measurement.breakdown),
            waits_section(result.measurement.waits),
            rates_table(result),
            _work(trial),
            gates_table(result, all_of_them=False),
            warnings(result.warnings, "Warnings"),
        ],
        h.p["Alone, with every gate and every event: ", h.code[_again(trial)]],
    ]


def brief_section(
    trial: TrialSubject, read: TrialRows, name: str, most: int, alike: Alike, *, drawn: bool
) -> h.Element:
    """Return a trial of a long study in brief: its counts, and with `drawn` its requests over time."""
    return h.div(document(f"trials/{trial.name}/result.json" if trial.result is not None else ""))[
        _damage(read),
        _counts(trial, read),
        [failures(read.measured, trial.header.plan), waterfall(read, trial.header.plan, name, most, alike)]
        if drawn
        else None,
        h.p["The study is long, so this trial is told in brief. All of it: ", h.code[_again(trial)]],
    ]


def _again(trial: TrialSubject) -> str:
    return safe(f"nameplate report {trial.directory}", 600)


def _damage(read: TrialRows) -> h.Node:
    """Return what could not be read of the evidence."""
    if not read.damage:
        return None
    return h.section(".alert", aria_label="Damage", role="note")[
        h.strong["Not all of this trial's evidence could be read."],
        h.ul[[h.li[safe(one, 600)] for one in read.damage]],
        h.p["What follows is of what is left."],
    ]


def _counts(trial: TrialSubject, read: TrialRows) -> h.Element:
    if trial.result is None:
        return h.p["Measured requests on disk: ", sums(count(read.measured), None), "."]
    return h.p["Measured requests: ", sums(trial.result.measurement.correctness), "."]


def _work(trial: TrialSubject) -> h.Node:
    if trial.result is None:
        return None
    lines = [(name, said) for name, said in work_lines(trial.result) if name != "Requests"]
    return facts([(name or "\N{NO-BREAK SPACE}", said) for name, said in lines])


def _cards(trial: TrialSubject) -> h.Element:
    header = trial.header
    plan, contract = header.plan, header.contract
    return h.div(".cards")[
        server_card(header.identity.facts, contract.target.url),
        contract_card(
            contract,
            [
                ("Promise", h.strong[safe(promise(contract.slos), 400)]),
                ("Load", f"{numbers.count(plan.requests, 'request')} {load_of(plan)}"),
            ],
        ),
        evidence_card(
            str(trial.directory),
            trial.manifest_sha256,
            header.command,
            trial.began,
            trial.ended,
            header.clock == "virtual",
            f"nameplate {header.tool_version}",
        ),
    ]
