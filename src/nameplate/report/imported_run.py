"""A load test of another tool: the answer first, its measures with their definitions, what contradicts, "
"our verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.exchange.peers.run import Check, Definition, Imported, Measure, Recomputed, Run
from nameplate.exchange.peers.verifying import Verified
from nameplate.report import numbers
from nameplate.report.imported_tests import tests_table, without_requests
from nameplate.report.imported_words import (
    NAMES,
    contradiction_words,
    facts_of,
    load_name,
    summary_words,
    value_words,
)
from nameplate.report.layout import bulleted, facts, heading, indented, stacked
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import status, style_of
from nameplate.report.table import Cell, Column, FittingTable
from nameplate.statistics.percentile import SHOWN

_PERCENTILES = tuple(f"p{percent:g}" for percent in SHOWN)
# Said once where all that have the property have the same.
_SHARED = {
    "failures": "failed requests",
    "percentiles": "percentiles",
    "tokens": "tokens by",
    "denominator": "/",
}
_TEXT_LIMIT = 600
_RUNS_SHOWN = 40


def imported_summary(document: Imported, directory: str, *, everything: bool = False) -> RenderableType:
    """Return an imported file: one run whole, of several one line each and with `everything` each of them whole."""
    parts: list[RenderableType | None] = [_whose(document)]
    if len(document.runs) == 1:
        parts += _run(document.runs[0])
    else:
        parts.append(_overview(document.runs))
        for at, run in enumerate(document.runs if everything else ()):
            parts += [heading(f"Run {at + 1} of {len(document.runs)}"), *_run(run)]
    parts.append(_notes(document, directory))
    return stacked(parts)


def _whose(document: Imported) -> Text:
    run = document.runs[0]
    tool = f"{safe(run.tool, 60)} {safe(run.version, 40)}" if run.version else safe(run.tool, 60)
    text = Text("Imported: ", style="bold yellow")
    text.append(
        f"these numbers are those of {tool}, by its definitions, from {safe(document.file)}. nameplate "
        f"has measured "
        "none of them; what it computed from the file's own records is marked.",
        style="default not bold",
    )
    return text


def _run(run: Run) -> list[RenderableType | None]:
    return [
        _answer(run),
        facts([(name, safe_text(said)) for name, said in facts_of(run)]),
        _table(run),
        _definitions(run),
        _checks(run),
        _gates(run),
        _listed("Notes", run.notes),
    ]


def _answer(run: Run) -> Text:
    if run.judged is not None and run.judged.verdict.slos:
        verdict = run.judged.verdict
        said = Text(f"{verdict.status}: ", style=style_of(verdict.status))
        said.append("; ".join(safe(reason, _TEXT_LIMIT) for reason in verdict.reasons), style="default")
        if verdict.status == "pass" and run.judged.unproven:
            many = numbers.count(len(run.judged.unproven), "gate")
            said.append(f". As far as the file shows: {many} could not be verified.", style="default")
        return said
    said = Text(f"{summary_words(run)} ", style="bold")
    wrong = run.contradictions
    if wrong:
        said.append(contradiction_words(run), style=style_of("failed"))
    elif run.checks:
        said.append("Nothing in the file contradicts itself.", style="default not bold")
    return said


def _table(run: Run) -> RenderableType:
    ours = {found.name: found for found in run.recomputed}
    columns = [
        Column("", side="left"), Column("", side="left"), Column("n", rank=2), Column("mean", rank=3),
        *(Column(name, rank=1 if name == "p90" else 0) for name in _PERCENTILES),
    ]  # fmt: skip
    rows: list[Sequence[Cell] | None] = []
    names = [measure.name for measure in run.measures]
    for measure in run.measures:
        rows.append(_theirs(measure))
        if measure.name in ours:
            rows.append(_ours("", ours[measure.name]))
    rows += [_ours(name, found) for name, found in ours.items() if name not in names]
    marks = any(measure.unsupported for measure in run.measures) or any(f.unsupported for f in run.recomputed)
    table = FittingTable(columns, rows)
    return Group(
        heading("Measures"), table, *([Text(numbers.UNSUPPORTED_NOTE, style="dim")] if marks else [])
    )


def _theirs(measure: Measure) -> list[Cell]:
    return _row(
        NAMES.get(measure.name, measure.name), "its own", measure.unit, measure.n, measure.mean,
        measure.percentiles, measure.unsupported, (),
    )  # fmt: skip


def _ours(name: str, found: Recomputed) -> list[Cell]:
    lost = f", {found.censored:,} never" if found.censored else ""
    return _row(
        NAMES.get(name, name) if name else "", f"our rules{lost}", found.unit, found.n, found.mean,
        found.percentiles, found.unsupported, found.infinite,
    )  # fmt: skip


def _row(
    name: str,
    whose: str,
    unit: str,
    n: int | None,
    mean: float | None,
    percentiles: Mapping[str, float],
    unsupported: Sequence[str],
    infinite: Sequence[str],
) -> list[Cell]:
    cells: list[Cell] = [name, Text(whose, style="dim"), numbers.count(n), value_words(unit, mean)]
    for key in _PERCENTILES:
        said = numbers.NEVER if key in infinite else value_words(unit, percentiles.get(key))
        cells.append(
            f"{said}{numbers.UNSUPPORTED}" if key in unsupported and said != numbers.ABSENT else said
        )
    return cells


def _definitions(run: Run) -> RenderableType | None:
    known = run.definitions
    if not known:
        return None
    common = {key for key in _SHARED if len({getattr(held, key) for held in _having(run, key)}) == 1}
    lines: list[tuple[str, RenderableType]] = []
    for name, definition in known.items():
        said = safe_text(definition.meaning, "", _TEXT_LIMIT)
        apart = [key for key in _SHARED if key not in common and getattr(definition, key)]
        if apart:
            words = "; ".join(f"{_SHARED[key]} {getattr(definition, key)}" for key in apart)
            said.append(f" ({words})", style="dim")
        lines.append((NAMES.get(name, name), said))
    shared = [f"{_SHARED[key]} {getattr(_having(run, key)[0], key)}" for key in _SHARED if key in common]
    if shared:
        lines.append(("of all", Text("; ".join(shared))))
    source = next(iter(known.values())).documented
    return Group(heading(f"What they mean there ({safe(source, 120)})"), facts(lines), *_taken(run))


def _having(run: Run, key: str) -> list[Definition]:
    return [held for held in run.definitions.values() if getattr(held, key)]


def _taken(run: Run) -> list[RenderableType]:
    """Say what our rules had to take as the file has it, each once with the measures that it concerns."""
    found: dict[str, list[str]] = {}
    for measure in run.recomputed:
        for said in measure.differs:
            found.setdefault(said, []).append(NAMES.get(measure.name, measure.name))
    if not found:
        return []
    lines = [(", ".join(names), safe_text(said, "", _TEXT_LIMIT)) for said, names in found.items()]
    return [Text(""), heading("What our rules take as the file has it"), facts(lines)]


def verified_import(found: Verified) -> RenderableType:
    """Return the verification of an import, the answer first."""
    wrong = [check for check in found.checks if check.status == "contradicted"]
    where = f"the import in {safe(found.directory)}"
    if wrong:
        said = Text(f"Not what it claims to be: {where}.", style=style_of("failed"))
    elif found.exit_code:
        said = Text(f"Nothing contradicts {where}, but not all of it was kept.", style=style_of("unverified"))
    else:
        said = Text(f"All of {where} recomputes from the file that was read.", style=style_of("confirmed"))
    return stacked([said, _check_list(found.checks)])


def _checks(run: Run) -> RenderableType | None:
    if not run.checks:
        return None
    return Group(heading("The file against itself"), _check_list(run.checks))


def _check_list(checks: Sequence[Check]) -> RenderableType:
    words = {"holds": "yes", "contradicted": "no", "unverified": "unverified"}
    lines: list[tuple[str, RenderableType]] = [
        (
            safe(check.name, 40),
            Text.assemble(
                (check.status, style_of(words[check.status])), "  ", safe_text(check.detail, "", _TEXT_LIMIT)
            ),
        )
        for check in sorted(checks, key=lambda check: check.status != "contradicted")
    ]
    return facts(lines)


def _gates(run: Run) -> RenderableType | None:
    judged = run.judged
    if judged is None:
        return None
    asked = bool(judged.verdict.slos)
    lines: list[tuple[str, RenderableType]] = [
        (gate.gate.value, Text.assemble(status(gate.status), "  ", safe_text(gate.detail, "", _TEXT_LIMIT)))
        for gate in judged.gates
        if gate.status != "pass" and (asked or gate.status != "unverified")
    ]
    passed = sum(gate.status == "pass" for gate in judged.gates)
    rest = f"{numbers.count(passed, 'other gate')} hold"
    if not asked:
        rest += f", {numbers.count(len(judged.unproven), 'gate')} cannot be verified; --slo judges it and lists them"
    lines.append(("", Text(rest, style="dim")))
    return Group(heading("Our gates, by default policy (cold prompts, none repeated)"), facts(lines))


def _overview(runs: Sequence[Run]) -> RenderableType:
    columns = [
        Column("", side="left"), Column("run", side="left"), Column("completed"), Column("failed", rank=2),
        Column("requests/s", rank=3), Column("output\ntok/s"), Column("TTFT\np50", rank=1), Column("TTFT\np95"),
        Column("ITL\np50", rank=4), Column("E2E\np95", rank=5), Column("contradicted", side="left", rank=6),
    ]  # fmt: skip
    rows = [
        (
            str(at + 1), safe(run.label or load_name(run), 40), numbers.count(run.counts.completed),
            numbers.count(run.counts.failed), _cell(run, "request_rate"), _cell(run, "output_rate"),
            _cell(run, "ttft", "p50"), _cell(run, "ttft", "p95"), _cell(run, "itl", "p50"), _cell(run, "e2e", "p95"),
            ", ".join(dict.fromkeys(safe(check.name, 30) for check in run.contradictions)) or numbers.ABSENT,
        )
        for at, run in enumerate(runs[:_RUNS_SHOWN])
    ]  # fmt: skip
    table = tests_table(runs[:_RUNS_SHOWN]) if without_requests(runs) else FittingTable(columns, rows)
    parts: list[RenderableType] = [heading(numbers.count(len(runs), "run")), table]
    if len(runs) > _RUNS_SHOWN:
        parts.append(Text(f"and {len(runs) - _RUNS_SHOWN:,} more in result.json", style="dim"))
    parts.append(Text("--all prints each of them whole, with its definitions and checks.", style="dim"))
    return Group(*parts)


def _cell(run: Run, name: str, key: str = "") -> str:
    measure = run.measure(name)
    if measure is None:
        return numbers.ABSENT
    value = measure.percentiles.get(key) if key else measure.mean
    mark = numbers.UNSUPPORTED if key in measure.unsupported and value is not None else ""
    return value_words(measure.unit, value) + mark


def _listed(title: str, lines: Sequence[str]) -> RenderableType | None:
    if not lines:
        return None
    return Group(
        heading(title), *(indented(bulleted("-", "", safe_text(line, "", _TEXT_LIMIT))) for line in lines)
    )


def _notes(document: Imported, directory: str) -> RenderableType:
    text = Text("All of it is in ")
    text.append(safe(f"{directory}/result.json"), style="bold")
    text.append(".")
    listed = _listed("Of the file", document.notes)
    return text if listed is None else Group(listed, Text(""), text)
