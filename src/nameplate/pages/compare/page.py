"""The page of a comparison: the answer, the differences with their intervals, every trial, every measure.

The comparison's document is part of the page, so that each number on it names where it stands in there.
"""

from __future__ import annotations

import htpy as h
import msgspec

from nameplate.compare.document import Comparison, SideDocument
from nameplate.pages.compare.figures import differences_figure, trials_figure
from nameplate.pages.compare.placed import placed
from nameplate.pages.compare.tables import measures_section, rated_section
from nameplate.pages.document import document
from nameplate.pages.embedded import embedded
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.terms import glossary
from nameplate.pages.values import document as stands_in
from nameplate.pages.words import badge, facts, paragraphs, status
from nameplate.report import numbers
from nameplate.report.safe import safe

DOCUMENT = "comparison"
_TONES = {"worse": "bad", "better": "good", "equal": "good"}
_NOTES = 8
# What a measure is called where it is defined.
_TERMS = {
    "ttft": "TTFT",
    "ttft_from_schedule": "TTFT from schedule",
    "itl": "ITL",
    "tpot": "TPOT",
    "e2e": "E2E",
    "chunk_gaps": "chunk gap",
    "longest_gap": "longest gap",
    "per_user": "tok/s per user",
    "output_rate": "output tok/s",
    "request_rate": "req/s",
    "goodput": "goodput",
    "prefill_rate": "prefill tok/s",
}

_WHAT = {
    "allowed": "is the point",
    "unknown": "one side does not tell",
    "harmless": "changes no number",
    "refused": "must be alike",
}


def comparison_page(told: Comparison) -> str:
    """Return the whole page of a comparison."""
    shown = list(placed(told))
    names = [_TERMS[name] for _, _, _, one in shown if (name := one.statistic.partition(" ")[0]) in _TERMS]
    return document(
        f"{told.a.path} and {told.b.path} compared · nameplate",
        h.article(id="answer", **stands_in(DOCUMENT))[
            _answer(told),
            _conditions(told),
            differences_figure(told, shown),
            trials_figure(shown),
            rated_section(told),
            measures_section(shown),
            _apart(told),
            _contract(told),
            _judged(told),
            glossary([*names, *(("rated",) if told.rated else ()), "pNN"]),
            embedded(msgspec.to_builtins(told), id=DOCUMENT),
        ],
        made=f"Comparison of {safe(told.a.path, 100)} and {safe(told.b.path, 100)}",
    )


def _answer(told: Comparison) -> h.Element:
    verdict = told.answer.verdict
    conditions = [(badge(f"{one.text}: {one.outcome}", one.outcome), " ") for one in told.conditions]
    return h.section(class_=f"answer tone-{_TONES.get(verdict, 'warn')}")[
        h.h1[safe(told.answer.sentence, 800)],
        h.p[badge(verdict, verdict), " ", conditions],
        facts([("A", _side(told.a)), ("B", _side(told.b))]),
    ]


def _side(side: SideDocument) -> h.Node:
    kinds = ", ".join(dict.fromkeys(one.kind for one in side.results))
    tools = ", ".join(dict.fromkeys(safe(one.tool, 60) for one in side.results))
    many = numbers.count(sum(one.trials for one in side.results), "trial")
    results = f"{len(side.results)} results ({kinds})" if len(side.results) != 1 else kinds
    extra = (*side.notes, *(f"left out: {said}" for said in side.left_out))
    return [
        h.strong[safe(side.path, 300)],
        f" {results}, {many}, {tools}",
        [h.div(".soft")[safe(said, 300)] for said in extra[:_NOTES]],
        h.div(".soft")[f"and {len(extra) - _NOTES} more"] if len(extra) > _NOTES else None,
    ]


def _conditions(told: Comparison) -> h.Node:
    if not told.conditions:
        return None
    rows = [
        (
            safe(one.text, 80),
            Cell(status(one.outcome), one.outcome, f"conditions.{at}.outcome"),
            safe("; ".join(one.details), 600),
        )
        for at, one in enumerate(told.conditions)
    ]
    columns = [Column(head, kind="text") for head in ("fail if", "outcome", "by load")]
    return table(columns, rows, "Conditions of the build", sortable=False)


def _apart(told: Comparison) -> h.Node:
    rows = [
        (safe(cell.cell, 80), safe(one.statistic, 60), safe("; ".join(one.reasons), 800))
        for cell in told.cells
        for one in cell.not_compared
    ]
    sides = (("A", told.only_a), ("B", told.only_b))
    alone = [(side, safe(name, 120)) for side, names in sides for name in names]
    parts: list[h.Node] = []
    if rows:
        columns = [Column(head, kind="text") for head in ("load", "measure", "why")]
        parts.append(
            h.section[h.h2["Not compared"], table(columns, rows, "Measures that may not be compared")]
        )
    if alone:
        columns = [Column(head, kind="text") for head in ("side", "load")]
        parts.append(
            h.section[h.h2["Loads that one side has alone"], table(columns, alone, "Loads without a partner")]
        )
    return parts


def _contract(told: Comparison) -> h.Element:
    if not told.differences:
        return h.section[
            h.h2["The contract"], h.p["Every term of contract, load and identity is the same on both sides."]
        ]
    order = list(_WHAT)
    rows = [
        (
            safe(one.name, 80),
            safe(" | ".join(one.a), 400),
            safe(" | ".join(one.b), 400),
            _WHAT[one.kind],
            safe(one.where, 80),
        )
        for one in sorted(told.differences, key=lambda one: order.index(one.kind))
    ]
    columns = [Column(head, kind="text") for head in ("term", "A", "B", "what that means", "load")]
    return h.section[h.h2["What differs beside the numbers"], table(columns, rows, "Terms that differ")]


def _judged(told: Comparison) -> h.Element:
    terms = told.terms
    sure, margin, family = (f"{share * 100:g}%" for share in (terms.confidence, terms.margin, terms.family))
    sample = (
        f"The trial is the sample, {terms.least_trials} a side at least. A value is the geometric mean of its trials' "
        "values. What the comparison is about is bold."
    )
    verdicts = (
        f"Equal: the whole {sure} interval lies within {margin}. Better or worse: it lies to one side of zero, its "
        f"middle beyond {margin}, and it stands among all measures at once: of two sides that do not differ the chance "
        f"that any is called different is at most {family}, once among the bold ones and once among the others. One "
        "result a side must differ by more than the margin to stand, for a restart alone changes something. Everything "
        "else is not known."
    )
    method = f"Method: {'; '.join(terms.methods) or 'none, for want of trials'}."
    return h.section[h.h2["How this was judged"], paragraphs((sample, verdicts, method, *told.notes))]
