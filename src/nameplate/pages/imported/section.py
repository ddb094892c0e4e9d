"""An imported file: whose numbers these are, what they mean there, what contradicts, and what our rules "
"make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import htpy as h

from nameplate.exchange.peers.run import Check, Imported, Run
from nameplate.exchange.peers.sources import OURS
from nameplate.pages.subject import ImportedSubject
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.values import document
from nameplate.pages.words import badge, facts, status
from nameplate.report import numbers
from nameplate.report.imported_words import (
    NAMES,
    contradiction_words,
    facts_of,
    load_name,
    summary_words,
    value_words,
)
from nameplate.report.safe import safe
from nameplate.statistics.percentile import SHOWN

TERMS = ("TTFT", "ITL", "TPOT", "E2E", "pNN")
_PERCENTILES = tuple(f"p{percent:g}" for percent in SHOWN)
# A page of hundreds of runs whole helps nobody; the table has all of them.
_WHOLE = 24


def imported_answer(subject: ImportedSubject) -> h.Element:
    """Return whose numbers these are, and what they come to."""
    held = subject.document
    tool = " ".join(
        safe(part, 60) for part in (held.tool, held.runs[0].version if held.runs else None) if part
    )
    wrong = [run for run in held.runs if run.contradictions]
    verdicts = [run.judged.verdict for run in held.runs if run.judged is not None and run.judged.verdict.slos]
    one = held.runs[0] if len(held.runs) == 1 else None
    said = f"{numbers.count(len(held.runs), 'run')} of {tool}" if one is None else summary_words(one)
    return h.section(class_=f"answer tone-{'bad' if wrong else 'none'}")[
        h.h1[safe(said, 600)],
        [
            h.p(".lead")[badge(verdict.status), " ", safe("; ".join(verdict.reasons), 1000)]
            for verdict in verdicts[:3]
        ],
        [h.p(".lead")[contradiction_words(run)] for run in wrong[:3]],
        h.p(".under")[
            badge("imported", "none"),
            f" {_whose(held)}",
        ],
    ]


def _tool(held: Imported) -> str:
    return " ".join(
        safe(part, 60) for part in (held.tool, held.runs[0].version if held.runs else None) if part
    )


def _whose(held: Imported) -> str:
    """Say whose numbers these are: another tool's, or ours from another tool's raw records."""
    if held.tool == OURS:
        return (
            f"Computed by nameplate's rules from the raw records of another tool, in {safe(held.file, 300)}."
        )
    return (
        f"These numbers are those of {_tool(held)}, by its definitions, from {safe(held.file, 300)}. nameplate "
        "measured none of them; what it computed from the file's own records is marked."
    )


def imported_section(subject: ImportedSubject) -> h.Element:
    """Return all runs of an imported file: measures, definitions, checks, verdict."""
    held = subject.document
    shown = held.runs[:_WHOLE]
    return h.div(document("result.json", subject.name))[
        _overview(held) if len(held.runs) > 1 else None,
        [_run(run, at, len(held.runs)) for at, run in enumerate(shown)],
        h.p[f"{len(held.runs) - len(shown):,} more runs stand in the table above and in result.json."]
        if len(shown) < len(held.runs)
        else None,
        _listed("Of the file", held.notes),
        facts(
            [
                ("Format", safe(held.format, 100)),
                ("File", h.code[safe(held.file, 300)]),
                ("Digest", h.span(".digest")[held.sha256]),
                ("Directory", h.code[safe(subject.directory, 500)]),
                ("Recompute", h.code[safe(f"nameplate verify {subject.directory}", 600)]),
            ]
        ),
    ]


def _run(run: Run, at: int, of: int) -> h.Element:
    title = "The run" if of == 1 else f"Run {at + 1}: {safe(run.label or load_name(run), 80)}"
    return h.section(aria_label=title)[
        h.h2[title],
        facts([(name, said) for name, said in facts_of(run)]),
        _measures(run, at),
        _definitions(run),
        _checks(run.checks),
        _gates(run),
        _listed("Notes", run.notes),
    ]


def _measures(run: Run, at: int) -> h.Element:
    columns = (
        Column("measure", kind="text"),
        Column("whose", kind="text"),
        Column("unit", kind="text"),
        Column("n"),
        Column("mean"),
        *(Column(name) for name in _PERCENTILES),
    )
    ours = {found.name: (place, found) for place, found in enumerate(run.recomputed)}
    rows: list[Row] = []
    for place, measure in enumerate(run.measures):
        path = f"runs.{at}.measures.{place}"
        rows.append(
            Row(
                _cells(measure.name, "its own", path, measure.unit, measure.n, measure.mean, measure.percentiles,
                       measure.unsupported, measure.infinite),
                begins=True,
            )
        )  # fmt: skip
        if measure.name in ours:
            rows.append(_recomputed(run, at, *ours.pop(measure.name)))
    rows += [_recomputed(run, at, place, found) for place, found in ours.values()]
    return table(columns, rows, "Measures", note=numbers.UNSUPPORTED_NOTE)


def _recomputed(run: Run, at: int, place: int, found: object) -> Row:
    del found
    held = run.recomputed[place]
    lost = f", {held.censored:,} never" if held.censored else ""
    return Row(
        _cells(held.name, f"our rules{lost}", f"runs.{at}.recomputed.{place}", held.unit, held.n, held.mean,
               held.percentiles, held.unsupported, held.infinite)
    )  # fmt: skip


def _cells(
    name: str,
    whose: str,
    path: str,
    unit: str,
    n: int | None,
    mean: float | None,
    percentiles: Mapping[str, float],
    unsupported: Sequence[str],
    infinite: Sequence[str],
) -> list[Cell | str]:
    cells: list[Cell | str] = [
        NAMES.get(name, safe(name, 60)),
        whose,
        unit,
        Cell(numbers.count(n), n, f"{path}.n"),
        Cell(value_words(unit, mean), mean, f"{path}.mean"),
    ]
    for key in _PERCENTILES:
        raw = percentiles.get(key)
        said = numbers.NEVER if key in infinite else value_words(unit, raw)
        mark = numbers.UNSUPPORTED if key in unsupported and said != numbers.ABSENT else ""
        cells.append(
            Cell(
                f"{said}{mark}",
                raw,
                f"{path}.percentiles.{key}" if raw is not None else None,
                "unsupported" if mark else "",
            )
        )
    return cells


def _definitions(run: Run) -> h.Node:
    if not run.definitions:
        return None
    source = next(iter(run.definitions.values())).documented
    return h.details[
        h.summary[f"What they mean there ({safe(source, 120)})"],
        facts(
            [
                (NAMES.get(name, safe(name, 60)), safe(held.meaning, 800))
                for name, held in run.definitions.items()
            ]
        ),
    ]


def _checks(checks: Sequence[Check]) -> h.Node:
    if not checks:
        return None
    rows = [
        (safe(check.name, 60), Cell(status(check.status), check.status), safe(check.detail, 800))
        for check in sorted(checks, key=lambda one: one.status != "contradicted")
    ]
    columns = (Column("check", kind="text"), Column("status", kind="text"), Column("detail", kind="text"))
    return table(columns, rows, "The file against itself", copies=False)


def _gates(run: Run) -> h.Node:
    if run.judged is None:
        return None
    rows = [
        (gate.gate.value, Cell(status(gate.status), gate.status), safe(gate.detail, 800))
        for gate in run.judged.gates
    ]
    columns = (Column("gate", kind="text"), Column("status", kind="text"), Column("detail", kind="text"))
    return table(columns, rows, "Our gates over the file's records", copies=False)


def _overview(held: Imported) -> h.Element:
    columns = (
        Column("run", kind="text"),
        Column("completed"),
        Column("failed"),
        *(Column(NAMES[name]) for name in ("request_rate", "output_rate")),
        *(Column(f"{NAMES[name]}\n{key}") for name, key in _SHOWN),
        Column("contradicted", kind="text"),
    )
    rows = []
    for at, run in enumerate(held.runs):
        cells: list[Cell | str] = [
            safe(run.label or load_name(run), 60),
            Cell(numbers.count(run.counts.completed), run.counts.completed, f"runs.{at}.counts.completed"),
            Cell(numbers.count(run.counts.failed), run.counts.failed, f"runs.{at}.counts.failed"),
        ]
        for name, key in (("request_rate", ""), ("output_rate", ""), *_SHOWN):
            measure = run.measure(name)
            raw = None if measure is None else measure.percentiles.get(key) if key else measure.mean
            cells.append(Cell(None if measure is None else value_words(measure.unit, raw), raw))
        cells.append(", ".join(dict.fromkeys(safe(check.name, 40) for check in run.contradictions)))
        rows.append(cells)
    return table(columns, rows, f"All {len(held.runs):,} runs of the file")


_SHOWN = (("ttft", "p50"), ("ttft", "p95"), ("itl", "p50"), ("e2e", "p95"))


def _listed(title: str, lines: Sequence[str]) -> h.Node:
    return (
        h.section(aria_label=title)[h.h2[title], h.ul[[h.li[safe(line, 800)] for line in lines]]]
        if lines
        else None
    )
