"""The whole of a curve study, below its answer."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.pages.curve.answer import RESULT, plan_of
from nameplate.pages.curve.figures import FIGURES
from nameplate.pages.curve.tables import levels_table, probes_table, steps_table
from nameplate.pages.identity import contract_card, evidence_card, identity_table, launch, server_card
from nameplate.pages.plate_picture import plate_picture
from nameplate.pages.subject import CurveSubject
from nameplate.pages.trial.list import trial_list
from nameplate.pages.values import document
from nameplate.pages.words import paragraphs
from nameplate.report import numbers
from nameplate.report.curve import note_lines
from nameplate.report.safe import safe

TERMS = (
    "knee",
    "TTFT",
    "TTFT from schedule",
    "ITL",
    "E2E",
    "tok/s per user",
    "opening",
    "steady",
    "pNN",
    "prefill tok/s",
    "effective concurrency",
    "running, waiting",
    "KV",
)


def curve_section(subject: CurveSubject) -> h.Element:
    """Return all that a curve's answer rests on."""
    result = subject.result
    known = result.identity
    return h.div(document(RESULT, subject.name))[
        _cards(subject),
        launch(known.facts),
        identity_table(known.facts, known.missing),
        [figure(result) for figure in FIGURES],
        levels_table(result),
        steps_table(result),
        probes_table(result),
        _notes(note_lines(result)),
        h.p[f"Cut short, and not counted: {safe(', '.join(result.spoiled), 1000)}."]
        if result.spoiled
        else None,
        trial_list(subject),
    ]


def _notes(lines: Sequence[str]) -> h.Node:
    return (
        h.section(aria_label="Notes")[h.h2["What to know of these numbers"], paragraphs(lines)]
        if lines
        else None
    )


def _cards(subject: CurveSubject) -> h.Element:
    result = subject.result
    contract, plan = result.contract, plan_of(result)
    trials = sum(len(row.trials) for row in result.rows) + len(result.probes)
    if plan.kind == "input":
        shapes = f"input by level, {plan.output_tokens:,} output tokens"
    else:
        shapes = ", ".join(str(shape) for shape in contract.shapes)
    load = {
        "concurrency": "closed loop, by number of clients",
        "rate": "open loop, by rate" + (f", {plan.arrivals.kind} arrivals" if plan.arrivals else ""),
        "input": "one request at a time, by length",
    }[plan.kind]
    entries: list[tuple[h.Node, h.Node]] = [
        ("Shape", shapes),
        ("Load", load),
        ("Trials a level", f"{plan.repeat}"),
        *(
            [("Hardly any output", f"less than {100 * plan.hardly:.3g}% a doubling")]
            if plan.kind != "input"
            else []
        ),
    ]
    return h.div(".cards")[
        plate_picture(subject.directory) or server_card(result.identity.facts, contract.target.url),
        contract_card(contract, entries),
        evidence_card(
            str(subject.directory),
            subject.manifest_sha256,
            result.command,
            subject.began,
            subject.ended,
            subject.simulated,
            result.tool,
            [("Spent", f"{numbers.count(trials, 'trial')}, {numbers.rough(result.spent_s)}")],
        ),
    ]
