"""The whole of a soak, below its answer; made from its record alone."""

from __future__ import annotations

from datetime import UTC, datetime

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.quantity import format_bytes
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.pages.identity import contract_card, evidence_card, identity_table, launch, server_card
from nameplate.pages.plate_picture import plate_picture
from nameplate.pages.soak.answer import RECORD, is_open
from nameplate.pages.soak.drift import drift_section
from nameplate.pages.soak.fates import fates_section
from nameplate.pages.soak.figures import client_figure, held_figure, together_figure
from nameplate.pages.soak.latency import gates_table, latency_section, rates_table
from nameplate.pages.soak.server import server_section
from nameplate.pages.soak.windows import windows_section
from nameplate.pages.subject import SoakSubject
from nameplate.pages.values import document
from nameplate.pages.words import command, facts
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak import kept_words, segment_words
from nameplate.report.soak_words import load_of
from nameplate.report.words import promise

TERMS = (
    "TTFT",
    "TTFT from schedule",
    "ITL",
    "E2E",
    "pNN",
    "running, waiting",
    "KV",
    "drift",
    "send lag",
)


def soak_section(subject: SoakSubject) -> h.Element:
    """Return all that a soak's answer rests on."""
    record, known = subject.record, subject.identity
    result = record.result
    opened = is_open(record.contract)
    body: list[h.Node] = []
    if result is not None:
        body = [
            together_figure(record.contract, result),
            held_figure(result),
            fates_section(result),
            latency_section(result, opened=opened),
            rates_table(result),
            drift_section(result),
            server_section(result),
            windows_section(result, opened=opened),
            client_figure(result),
            gates_table(result),
        ]
    return h.div(document(RECORD, subject.name))[
        _cards(subject),
        launch(known.facts),
        identity_table(known.facts, known.missing),
        body,
        _segments(subject),
    ]


def _cards(subject: SoakSubject) -> h.Element:
    record = subject.record
    contract, result = record.contract, record.result
    began = None if result is None else datetime.fromtimestamp(result.began_wall_ns / 1e9, UTC)
    ended = None
    if result is not None and record.exit_code is not None:
        last_ns = max(segment.observed_wall_ns for segment in result.segments)
        ended = datetime.fromtimestamp(last_ns / 1e9, UTC)
    return h.div(".cards")[
        plate_picture(subject.directory) or server_card(subject.identity.facts, contract.target.url),
        contract_card(contract, _terms(contract)),
        evidence_card(
            str(subject.directory),
            subject.manifest_sha256,
            record.command,
            began,
            ended,
            subject.simulated,
            f"nameplate {record.tool_version}",
            [("Tokens", _tokens(result))] if result is not None else (),
        ),
    ]


def _terms(contract: Contract) -> list[tuple[h.Node, h.Node]]:
    terms = contract.soak
    entries: list[tuple[h.Node, h.Node]] = [
        (
            "Promise",
            h.strong[safe(promise(contract.slos), 400)] if contract.slos else "none: gates alone decide",
        ),
        ("Load", safe(load_of(contract), 300)),
    ]
    if terms is None:
        return entries
    failures = (
        "any failure" if terms.max_error_rate is None else f"more than {numbers.share(terms.max_error_rate)}"
    )
    drift = (
        "told, not judged"
        if terms.max_drift is None
        else f"fails from {numbers.share(terms.max_drift)} worse on"
    )
    budget = terms.soak.raw_budget_bytes
    return [
        *entries,
        ("Duration", numbers.rough(terms.soak.duration_ns / 1e9)),
        ("Window", numbers.rough(terms.soak.window_ns / 1e9)),
        ("Drain", f"at most {numbers.rough(terms.soak.drain_ns / 1e9)}"),
        ("Failures", f"{failures} fails it"),
        ("Drift", drift),
        ("Raw reads", "all" if budget is None else f"up to {format_bytes(budget)}"),
    ]


def _tokens(result: SoakResult) -> str:
    held = result.tokens
    said = f"{held.output_ok:,} out, {held.input_ok:,} in of ok requests"
    return f"{said} (estimated)" if held.estimated else said


def _segments(subject: SoakSubject) -> h.Element:
    """Say how each segment ended, what was kept of its reads, and how to go on."""
    record = subject.record
    return h.section(aria_label="Segments")[
        h.h2["Segments and what was kept"],
        facts(
            [
                *(("Segment", safe(segment_words(entry), 600)) for entry in record.segments),
                *(("Raw reads", safe(said, 600)) for said in kept_words(record.segments)),
            ]
        ),
        _onward(record, str(subject.directory)),
    ]


def _onward(record: SoakRecord, directory: str) -> h.Node:
    if record.exit_code is None:
        return [h.p["To look on while it runs:"], command(f"nameplate watch {directory}")]
    if not record.left_ns:
        return None
    left = numbers.rough(record.left_ns / 1e9)
    return [
        h.p[f"{left} of its duration are left. To go on:"],
        command(f"nameplate soak --resume {directory}"),
    ]
