"""The whole of a speed study, below its answer."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.contract.matrix import Kind, label
from nameplate.measure.speed_result import SpeedResult
from nameplate.pages.identity import contract_card, evidence_card, identity_table
from nameplate.pages.plate_picture import plate_picture
from nameplate.pages.speed.columns import rows_table
from nameplate.pages.speed.figures import decode_figure, power_figure, prefill_figure
from nameplate.pages.speed.hardware import engine_card, hardware_card, run_card
from nameplate.pages.speed.heat import heat_table
from nameplate.pages.speed.mixed import mixed_section
from nameplate.pages.speed.origin import definitions_section, methods_section, origin_card
from nameplate.pages.speed.placed import Placed, placed
from nameplate.pages.subject import SpeedSubject
from nameplate.pages.trial.list import trial_list
from nameplate.pages.values import document
from nameplate.pages.words import command, status
from nameplate.report import numbers
from nameplate.report.cells import PHASE, WORDS, name_of
from nameplate.report.matrix import matrix_title, warm_words
from nameplate.report.measurements import reasons
from nameplate.report.safe import safe
from nameplate.report.speed_words import grouped_notes

STYLES, SCRIPTS = ("speed.css",), ("speed.js",)
# So many reasons are read at a glance; more are folded away.
_UNFOLDED = 12
_TEXT_LIMIT = 4000
_REASON_LIMIT = 1000
_TERMS = (
    "total tok/s",
    "tok/s per user",
    "TTFT",
    "ITL",
    "chunk gap",
    "prefill tok/s",
    "pNN",
    "cold",
    "effective concurrency",
    "running, waiting",
    "KV",
)
_PREFILL = (
    "context",
    "prompts",
    "status",
    "rate",
    "spread",
    "n",
    "ttft",
    "server",
    "difference",
    "computed",
)


def terms(subject: SpeedSubject) -> Sequence[str]:
    """Return the terms that this page uses by our definitions: those of an imported one stand in its own table."""
    return () if subject.result.origin is not None else _TERMS


def speed_section(subject: SpeedSubject) -> h.Element:
    """Return matrices, curves, all measurements and everything they rest on."""
    result = subject.result
    decode, prefill = placed(result, "decode"), placed(result, "prefill")
    return h.div(document("result.json", subject.name))[
        h.div(".cards")[
            plate_picture(subject.directory), hardware_card(result), engine_card(result), run_card(result)
        ],
        _text("Launch command", result.launch_command or result.identity.text("server_arguments")),
        _text("Note", result.note),
        _matrix(subject, "decode", decode),
        decode_figure(subject, decode),
        power_figure(subject, decode),
        _prefill(subject, prefill),
        _matrix(subject, "burst", placed(result, "burst")),
        mixed_section(subject, placed(result, "mixed")),
        _notes(result),
        _all(subject),
        _why(result),
        methods_section(result),
        definitions_section(result.origin),
        h.h2["What it rests on"],
        h.div(".cards")[
            None if result.contract is None else _contract(result.contract),
            _evidence(subject) if result.origin is None else origin_card(subject, result.origin),
        ],
        identity_table(result.identity.facts, () if result.origin is not None else result.identity.missing),
        trial_list(subject),
    ]


def _text(title: str, said: str | None) -> h.Node:
    return h.div[h.h2[title], command(said[:_TEXT_LIMIT])] if said else None


def _matrix(subject: SpeedSubject, kind: Kind, cells: Sequence[Placed]) -> h.Node:
    if not cells:
        return None
    title, more = matrix_title(subject.result, kind)
    known = {one.values.warmth for one in cells if one.values is not None and one.values.warmth is not None}
    cached = f" ({warm_words(next(iter(known)))})" if len(known) == 1 else ""
    ramp = (
        " A ramp sends all its prompts at once, so its TTFT holds the others' prefill."
        if kind == "decode" and known != {"warm"} and any(one.row.concurrency > 1 for one in cells)
        else ""
    )
    each = (
        f"in each cell total output tok/s, what each user reads, and the TTFT of the ramp{cached}; "
        "latencies are medians."
        if kind == "decode"
        else "in each cell total output tok/s, TTFT and E2E latency; latencies are medians."
    )
    return h.section(aria_label=title)[
        h.h2[title],
        h.p(".soft")[
            f"{more[:1].upper()}{more[1:]}. Rows are context length, columns simultaneous requests; {each}{ramp}"
        ],
        heat_table(subject, cells, kind, f"{title}: context by simultaneous requests"),
    ]


def _prefill(subject: SpeedSubject, cells: Sequence[Placed]) -> h.Node:
    if not cells:
        return None
    return h.section(aria_label="Prefill")[
        h.h2["Prefill"],
        prefill_figure(cells),
        rows_table(
            subject,
            cells,
            "Prefill by context",
            _PREFILL,
            note="Difference: (our TTFT - the server's own prefill time) / the server's.",
        ),
    ]


def _all(subject: SpeedSubject) -> h.Element:
    cells = placed(subject.result)
    notes = [
        "Latencies are medians where no percentile is named.",
        "Total tok/s is output across all simultaneous requests, of a prefill computed prompt tokens.",
        f"{numbers.UNSUPPORTED_NOTE}.",
    ]
    lost = sum(one.row.discarded is not None for one in cells)
    if lost:
        notes.append(
            f"What was measured in {numbers.count(lost, 'cell')} that "
            f"{'is' if lost == 1 else 'are'} not valid stands in result.json under discarded, and is no result."
        )
    return h.section(".all", aria_label="All measurements")[
        h.h2["All measurements"],
        h.p(".soft")[" ".join(notes)],
        rows_table(subject, cells, "All measurements", anchored=True)
        if cells
        else h.p["No cell was planned."],
    ]


def _notes(result: SpeedResult) -> h.Node:
    said = [safe(one, _TEXT_LIMIT) for one in result.warnings]
    said += [one.plain for one in grouped_notes(result.rows)]
    if not said:
        return None
    return h.section(aria_label="Notes and warnings")[
        h.h2["Notes and warnings"], h.ul(".plain")[[h.li[one] for one in said]]
    ]


def _why(result: SpeedResult) -> h.Node:
    found = reasons(result)
    if not found:
        return None
    return h.details(open=len(found) <= _UNFOLDED)[
        h.summary["Why cells have no number"],
        h.ul[
            [
                h.li[
                    ", ".join(f"{PHASE[row.kind]} {name_of(row)}" for row in rows),
                    ": ",
                    None if reason.startswith(WORDS[said]) else (status(said.value), ": "),
                    safe(reason, _REASON_LIMIT),
                ]
                for said, reason, rows in found
            ]
        ],
    ]


def _contract(contract: Contract) -> h.Element:
    matrix = contract.speed
    entries: list[tuple[h.Node, h.Node]] = []
    if matrix is not None:
        entries = [
            ("Contexts", ", ".join(label(one) for one in matrix.decode_contexts) or "no decode"),
            ("At once", ", ".join(f"{one:,}" for one in matrix.concurrencies) or "none"),
            ("Prefill", ", ".join(label(one) for one in matrix.prefill_contexts) or "none"),
            (
                "Window",
                f"{numbers.limit(matrix.window_ns)}, once ready for {numbers.limit(matrix.stable_ns)}",
            ),
        ]
    return contract_card(contract, entries)


def _evidence(subject: SpeedSubject) -> h.Element:
    result = subject.result
    trials = sum(len(row.trials) for row in result.rows)
    again = subject.trials[0].header.command if subject.trials else ()
    return evidence_card(
        str(subject.directory),
        subject.manifest_sha256,
        again,
        subject.began,
        subject.ended,
        subject.simulated,
        result.tool,
        [("Spent", f"{numbers.count(trials, 'trial')}, {numbers.rough(result.spent_s)}")],
    )
