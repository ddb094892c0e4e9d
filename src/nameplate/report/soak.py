"""A soak: the answer first, in a sentence; then what it rests on, and every request accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.evidence.soak_events import OUTSTANDING_LIMIT
from nameplate.measure.soak.result import Latency, SoakResult
from nameplate.measure.soak_record import Kept, SegmentEntry, SoakRecord
from nameplate.report import numbers
from nameplate.report.layout import Cell, Command, bulleted, facts, heading, indented, stacked
from nameplate.report.safe import safe, safe_text
from nameplate.report.soak_drift import drift_table
from nameplate.report.soak_fates import disturbances, left_table, parts_table
from nameplate.report.soak_windows import MOST_ROWS, series, windows_table
from nameplate.report.soak_words import (
    client_words,
    conclusion,
    limit_words,
    load_of,
    losses,
    moment,
    sooner,
    sums,
)
from nameplate.report.style import status, style_of
from nameplate.report.table import Column, FittingTable
from nameplate.statistics.censoring import CensoredPercentile

METRIC = {
    "ttft": "TTFT",
    "ttft_from_schedule": "TTFT from schedule",
    "itl": "ITL",
    "tpot": "TPOT",
    "e2e": "E2E",
    "longest_gap": "longest gap",
}


def soak_summary(record: SoakRecord, directory: Path | str, *, all_windows: bool = False) -> RenderableType:
    """Return all that a soak came to, whether it has ended or not; `directory` is where its evidence is."""
    result = record.result
    if result is None:
        return stacked(
            (Text(f"Nothing was measured yet of {load_of(record.contract)}."), ending(record, directory))
        )
    return stacked(
        (
            answer(record, result),
            series(result),
            windows_table(result, most=None if all_windows else MOST_ROWS),
            latencies(result),
            rates(result),
            left_table(result, str(directory)),
            parts_table(result),
            disturbances(result),
            drift_table(result.drift, result.warm_up),
            _gates(result),
            ending(record, directory),
        )
    )


def answer(record: SoakRecord, result: SoakResult) -> RenderableType:
    """Say the verdict, drift, SLOs and the sum of requests."""
    verdict = result.verdict
    word = "running" if record.exit_code is None else verdict.status
    first = Text(word, style=style_of(word))
    first.append(
        f": {load_of(record.contract)}, submitted for {sooner(result)}; {conclusion(result.drift)}",
        style="default bold",
    )
    lines: list[RenderableType] = [first]
    if verdict.slos:
        for slo in verdict.slos:
            line = Text("  ")
            line.append_text(status(slo.status)).append(f"  {safe(slo.detail, 300)}")
            lines.append(line)
    else:
        lines.append(Text("  No SLO was given: gates alone decide.", style="dim"))
    lines.append(Text(f"  {sums(result)}"))
    for said in (
        losses(record.contract, result),
        client_words(result.drift),
        f"Limit: {limit}." if (limit := limit_words(record.contract, result)) else "",
    ):
        if said:
            lines.append(indented(Text(said)))
    if verdict.status != "pass":
        told = {slo.detail for slo in verdict.slos}
        lines += [
            indented(bulleted("-", "", safe_text(reason, "", 600)))
            for reason in verdict.reasons
            if reason not in told
        ]
    misleads = misleading_words(
        result, open_loop=record.contract.soak is not None and record.contract.soak.arrivals is not None
    )
    if misleads:
        lines.append(indented(bulleted("!", "bold yellow", Text(misleads))))
    lines += [Text(said, style=style_of("interrupted")) for said in cut_words(record)]
    return Group(*lines)


def misleading_words(result: SoakResult, *, open_loop: bool) -> str:
    """Name the percentiles of which the completed requests alone say too little; their bounds stand in a table."""
    said: dict[str, list[str]] = {}
    for words in result.misleading:
        metric, _, percent = words.partition(":")[0].rpartition(" ")
        if metric in METRIC and (open_loop or metric != "ttft_from_schedule"):
            said.setdefault(METRIC[metric], []).append(percent)
    if not said:
        return ""
    names = "; ".join(f"{metric} {', '.join(percents)}" for metric, percents in said.items())
    held = result.counts
    return (
        f"Completed requests alone mislead in {names}: {held.failed:,} failed, and "
        f"{held.cancelled + held.unfinished:,} were left without an end. Best and worst case stand below."
    )


def cut_words(record: SoakRecord) -> list[str]:
    """Say what ended a soak before its time."""
    if record.exit_code is None or not record.left_ns:
        return []
    last = record.segments[-1] if record.segments else None
    left = f"{numbers.rough(record.left_ns / 1e9)} of its duration are left: go on with --resume."
    if last is None:
        return [left]
    why = {
        "interrupted": "It was interrupted",
        "broke_off": "Its load broke off",
        OUTSTANDING_LIMIT: "It came to its limit of unanswered requests",
        None: "Its process was killed",
    }.get(last.ended_by, f"It ended by {last.ended_by}")
    if last.fault is not None:
        why = f"It ended by a fault of {safe(last.fault.fault, 40)}: {safe(last.fault.what, 400).rstrip('.')}"
    return [f"{why}; {left}"]


def latencies(result: SoakResult) -> RenderableType:
    """Return percentiles of completed requests beside their bounds with those that have no end."""
    # In a closed loop a request is due when its slot comes free: that is the client's own lateness, and nothing else.
    open_loop = result.segments[0].plan.arrivals is not None
    shown = [
        held
        for held in result.latencies
        if held.metric in METRIC and held.n and (open_loop or held.metric != "ttft_from_schedule")
    ]
    percents = sorted({one.percent for held in shown for one in held.percentiles})
    columns = [Column("latency", side="left"), Column("n"), Column("completed", rank=2)]
    for at, percent in enumerate(percents):
        rank = 0 if percent in (50.0, 95.0) else 3
        columns.append(Column(f"p{percent:g}\ncompleted", rank=rank, name=f"p{percent:g} of the completed"))
        columns.append(Column("best to worst", rank=rank + 1 if rank else 1, name=f"bounds of p{percent:g}"))
        del at
    rows = [_latency(held, percents) for held in shown]
    lines: list[RenderableType] = [
        heading("Latency: completed only, and in the best and worst case of those without an end"),
        indented(FittingTable(columns, rows)),
    ]
    marked = any(str(cell).endswith(numbers.UNSUPPORTED) for row in rows for cell in row)
    if marked:
        lines.append(indented(Text(numbers.UNSUPPORTED_NOTE, style="dim")))
    error = max((one.relative_error for held in shown for one in held.percentiles), default=0.0)
    if error:
        lines.append(
            indented(
                Text(f"from sketches: each within {error:.2%}; SLOs are judged on exact counts", style="dim")
            )
        )
    return Group(*lines)


def _latency(held: Latency, percents: Sequence[float]) -> Sequence[Cell]:
    by_percent = {one.percent: one for one in held.percentiles}
    cells: list[Cell] = [METRIC[held.metric], f"{held.n:,}", f"{held.completed:,}"]
    for percent in percents:
        one = by_percent.get(percent)
        if one is None:
            cells += [numbers.ABSENT, numbers.ABSENT]
            continue
        mark = "" if one.supported else numbers.UNSUPPORTED
        cells.append(f"{numbers.duration(one.completed_only)}{mark}")
        cells.append(Text(_bounds(one), style="yellow" if one.misleading else ""))
    return cells


def _bounds(one: CensoredPercentile) -> str:
    if one.n == one.completed:
        return "the same"
    best = numbers.NEVER if one.best is None else numbers.duration(one.best)
    worst = numbers.NEVER if one.worst is None else numbers.duration(one.worst)
    return numbers.between(best, worst)


def rates(result: SoakResult) -> RenderableType:
    """Return each rate with the events that begin and end its denominator."""
    columns = [Column("rate", side="left"), Column("value"), Column("counted over", side="left")]
    rows = []
    for rate in result.rates:
        unit = "tok/s" if "token" in rate.of else "req/s"
        over = f"{numbers.count(round(rate.counted))} in {rate.seconds:,.3f} s"
        if len(rate.parts) > 1:
            over += f" of {len(rate.parts)} segments, gaps left out"
        estimated = ", estimated" if rate.estimated else ""
        said = f"{over}{estimated}: from {rate.begins} to {rate.ends}"
        rows.append((safe(rate.of, 80), numbers.rate(rate.per_s, unit), safe(said, 300)))
    return Group(heading("Rates"), indented(FittingTable(columns, rows, wraps=(2,))))


def _gates(result: SoakResult) -> RenderableType | None:
    bad = [gate for gate in result.verdict.gates if gate.status != "pass"]
    if not bad:
        return Text(f"All {len(result.verdict.gates)} gates pass.")
    rows = [(safe(gate.gate, 40), status(gate.status), safe(gate.detail, 600)) for gate in bad]
    columns = [Column("gate", side="left"), Column("status", side="left"), Column("detail", side="left")]
    return Group(heading("Gates that do not pass"), indented(FittingTable(columns, rows, wraps=(2,))))


def ending(record: SoakRecord, directory: Path | str) -> RenderableType:
    """Say how each segment ended, what of the raw reads was kept, and where everything is."""
    lines: list[tuple[str, RenderableType]] = []
    for at, entry in enumerate(record.segments):
        lines.append(("Segments" if at == 0 else "", segment_words(entry)))
    for at, said in enumerate(kept_words(record.segments)):
        lines.append(("Raw reads" if at == 0 else "", said))
    where = str(directory)
    lines.append(("Evidence", safe_text(where, "bold", 1000)))
    if record.exit_code is None:
        lines.append(("Look on", Command(("nameplate", "watch", where))))
    else:
        lines.append(("Recompute", Command(("nameplate", "verify", where))))
        if record.left_ns:
            lines.append(("Go on", Command(("nameplate", "soak", "--resume", where))))
    if record.segments:
        lines.append(
            ("One request", Command(("nameplate", "show", f"{where}/trials/{record.segments[0].key}", "0")))
        )
    return facts(lines, indent=0)


def segment_words(entry: SegmentEntry) -> str:
    how = {
        "running": "running",
        "killed": "its process was killed; sealed as it was found",
        "ended": {
            "duration": "ended by its duration",
            "interrupted": "interrupted",
            "broke_off": "broke off",
            OUTSTANDING_LIMIT: "ended at its limit of unanswered requests",
        }.get(entry.ended_by or "", f"ended by {entry.ended_by}"),
    }[entry.state]
    fault = "" if entry.fault is None else f" ({safe(entry.fault.what, 200)})"
    covered, planned = numbers.rough(entry.covered_ns / 1e9), numbers.rough(entry.planned_ns / 1e9)
    return f"{safe(entry.key, 60)}: submitted for {covered} of {planned}, {how}{fault}"


def kept_words(entries: Sequence[SegmentEntry]) -> list[str]:
    said = []
    for entry in entries:
        name = f"{safe(entry.key, 60)}: " if len(entries) > 1 else ""
        said.append(name + ", ".join(_keeping(kept) for kept in entry.kept))
    return said


def _keeping(kept: Kept) -> str:
    what = {"all": "all", "none": "none (times and sizes only)"}.get(
        kept.reads, f"one request in {kept.sample_every:,}"
    )
    if kept.why == "asked":
        return what
    why = {"budget": "by the byte budget", "disk": "as the disk filled up"}[kept.why]
    return f"from {moment(kept.from_s)} on {what}, {why}"
