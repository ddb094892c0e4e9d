"""The answer of a capacity study: the number first, then what carries it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.contract import Contract
from nameplate.contract.levels import Levels, levels_of
from nameplate.measure.plate import Plate, PlateBaseline, PlateShape
from nameplate.measure.result import TrialResult
from nameplate.measure.study_record import StudyRecord, TrialEntry
from nameplate.report import numbers
from nameplate.report.boundary import boundary_table, judged, phase_table, range_at
from nameplate.report.certainty import standing_line
from nameplate.report.identity import one_line
from nameplate.report.layout import Cell, Chain, Command, facts, heading, indented, stacked
from nameplate.report.limit import limit_section
from nameplate.report.rated_rate import at_the_rated_rate
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import status, style_of, warnings
from nameplate.report.table import Column, FittingTable
from nameplate.report.words import answer, meaning, operating, overall_warnings, warnings_of
from nameplate.verdict.boundary import Status


def capacity_summary(
    plate: Plate,
    directory: Path | str,
    again: str,
    *,
    record: StudyRecord | None = None,
    results: Iterable[TrialResult] = (),
) -> RenderableType:
    """Return the whole answer of a capacity study; `again` is the command line that repeats it, quoted for a shell.

    `record` gives the locator's path and the time spent, `results` the path's numbers.
    """
    by_key = {result.plan.key: result for result in results}
    several = len(plate.shapes) > 1
    parts: list[RenderableType | None] = [_answer(plate)]
    if several:
        parts.append(_surface(plate))
    for shape in plate.shapes:
        parts += _shape(plate.contract, shape, record, by_key)
    parts.append(
        warnings(
            overall_warnings(plate), "Warnings for the whole plate" if several else "Warnings for the plate"
        )
    )
    parts.append(_ending(plate, record, directory, again))
    return stacked(parts)


def _answer(plate: Plate) -> RenderableType:
    lines: list[RenderableType] = [
        Text(answer(shape, plate.contract), style=style_of(shape.status)) for shape in plate.shapes
    ]
    if len(lines) > 1:
        lines.append(Text("These numbers are alternatives, one shape at a time, and not a sum."))
    lines.append(Text(f"{safe(plate.target.url)}: {one_line(plate.identity.facts)}"))
    return Group(*lines)


def _surface(plate: Plate) -> RenderableType:
    slo = plate.contract.slos[0] if plate.contract.slos else None
    name = "judged" if slo is None else numbers.promise(slo).partition(" <")[0]
    columns = [
        Column("shape"),
        Column("rated"),
        Column("operate\nat"),
        Column("prompt tokens\ncounted", rank=4),
        Column("pass", rank=5),
        Column(f"{name}\npassing", rank=3, name=f"{name} passing"),
        Column("fail", rank=5),
        Column(f"{name}\nfailing", rank=2, name=f"{name} failing"),
        Column("status", side="left"),
    ]
    levels = levels_of(plate.contract)

    def told(level: int | None, named: bool = False) -> str:
        return numbers.ABSENT if level is None else levels.name(level) if named else levels.told(level)

    rows: list[Sequence[Cell]] = []
    for shape in plate.shapes:
        counted = shape.prompt_tokens
        rows.append(
            (
                str(shape.shape),
                told(shape.rated),
                told(shape.operate_at),
                "-" if counted is None else numbers.between(f"{counted.low:,}", f"{counted.high:,}"),
                told(shape.pass_level, named=True),
                range_at(shape, slo, shape.pass_level),
                told(shape.fail_level, named=True),
                range_at(shape, slo, shape.fail_level),
                status(shape.status),
            )
        )
    return Group(heading("Capacity surface"), indented(FittingTable(columns, rows)))


def rated_number(shape: PlateShape, contract: Contract) -> str:
    """Write a rated number with its unit."""
    levels = levels_of(contract)
    return "- (no number)" if shape.rated is None else f"{levels.told(shape.rated)} {levels.noun}"


def _shape(
    contract: Contract,
    shape: PlateShape,
    record: StudyRecord | None,
    results: Mapping[str, TrialResult],
) -> list[RenderableType | None]:
    counted = shape.prompt_tokens
    reached = (
        "the server did not count prompt tokens"
        if counted is None
        else f"{numbers.between(f'{counted.low:,}', f'{counted.high:,}')} prompt tokens as the server counts them"
    )
    title = heading(f"Shape {shape.shape}").append(f"  {reached}", style="not bold")
    verdict = Text(shape.status, style=style_of(shape.status))
    verdict.append(f": {meaning(shape, contract)}", style="default not bold")
    number = rated_number(shape, contract)
    lines: list[tuple[str, RenderableType]] = [
        ("Rated", Text(number, style="bold")),
        ("Operate at", operating(shape, contract)),
        ("Status", verdict),
    ]
    if (certified := standing_line(shape, contract)) is not None:
        lines.insert(1, ("Certified", certified))
    if shape.status is not Status.confirmed:
        lines.append(("Because", safe(shape.reason, 1500)))
    if (sustains := at_the_rated_rate(shape)) is not None:
        lines.append(("Sustains", sustains))
    lines.append(("Alone", _alone(shape.baseline)))
    if record is not None:
        lines.append(("Located", _path(contract, shape, record.trials, results)))
    scope: list[tuple[str, RenderableType]] = [
        ("Qualified", safe("; ".join(shape.qualified), None) or "nothing"),
        ("Not qualified", safe("; ".join(shape.not_qualified), None) or "-"),
    ]
    return [
        Group(title, facts(lines)),
        boundary_table(shape, contract),
        phase_table(shape, contract),
        limit_section(shape.limit, _names(shape, levels_of(contract))),
        facts(scope, indent=0),
        warnings(warnings_of(shape), f"Warnings for {shape.shape}"),
    ]


def _names(shape: PlateShape, levels: Levels) -> dict[str, str]:
    """Return what people call the levels of a limit's figures."""
    found = {"pass": shape.pass_level, "fail": shape.fail_level}
    return {"alone": "alone", **{side: levels.name(at) for side, at in found.items() if at is not None}}


def _alone(baseline: PlateBaseline | None) -> str:
    if baseline is None:
        return "no baseline"
    ttft, itl = baseline.ttft, baseline.itl
    return (
        f"TTFT p50 {numbers.quantile(ttft.p50_ns, ttft.n, False)}, ITL p50 "
        f"{numbers.quantile(itl.p50_ns, itl.n, False)} (n {ttft.n}); prefill "
        f"{numbers.rate(baseline.prefill_counted_per_s, 'tok/s')} counted, "
        f"{numbers.rate(baseline.prefill_nominal_per_s, 'tok/s')} nominal (asked length / median TTFT); decode "
        f"{numbers.rate(baseline.decode_per_s, 'tok/s')}"
    )


def _path(
    contract: Contract,
    shape: PlateShape,
    trials: Iterable[TrialEntry],
    results: Mapping[str, TrialResult],
) -> RenderableType:
    items: list[Text] = []
    levels = levels_of(contract)
    for trial in trials:
        if trial.role != "locator" or trial.shape != shape.shape:
            continue
        item = Text(f"{levels.name(trial.level)} ")
        result = results.get(trial.key)
        if result is not None and result.verdict.slos:
            item.append(f"{judged(result.verdict.slos[0], result.verdict.slos[0].whole)} ")
        items.append(item.append(trial.status, style=style_of(trial.status)))
    if not items:
        return Text("no locator trials")
    if not contract.slos or not results:
        return Chain(items)
    name = numbers.promise(contract.slos[0]).partition(" <")[0]
    return Group(Chain(items), Text(f"({name} of one trial a level; these never count)", style="dim"))


def _ending(plate: Plate, record: StudyRecord | None, directory: Path | str, again: str) -> RenderableType:
    lines: list[tuple[str, RenderableType]] = []
    if record is not None:
        spent_s = sum(verdict.spent_s for verdict in record.shapes)
        trials = numbers.count(len(record.trials), "trial")
        lines.append(("Spent", f"{trials}, {numbers.rough(spent_s)} with their quiet intervals"))
        if record.spoiled:
            lines.append(("Cut short", f"{safe(', '.join(record.spoiled), 1000)} (they do not count)"))
    lines += [
        ("Evidence", safe_text(directory, "bold", 1000)),
        ("Recompute", Command(("nameplate", "verify", str(directory)))),
        ("Repeat", Command.of(again)),
    ]
    if plate.study_manifest_sha256 is not None:
        lines.append(("Digest", f"{safe(plate.study_manifest_sha256)} (manifest.json)"))
    return facts(lines, indent=0)
