"""What became of a soak's requests, of its server, and of the time between its segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.soak.result import Gap, SoakResult
from nameplate.measure.soak.segment import ClockStep, Outage, Part, SegmentResult, Unfinished
from nameplate.report import numbers
from nameplate.report.layout import Cell, facts, heading, indented
from nameplate.report.safe import safe
from nameplate.report.soak_words import moment, spread
from nameplate.report.table import Column, FittingTable

# All of a usual number of clients; what is more is named in the result.
MOST_LEFT = 48
MOST_OUTAGES = 20

FATE = {
    "queued": "no byte of an answer: queued or in prefill",
    "accepted": "answer begun, no output: queued or in prefill",
    "decoding": "decoding",
}


def left_table(result: SoakResult, directory: str) -> RenderableType | None:
    """Return every request that had no end when observation ended; None where there is none."""
    left = [request for segment in result.segments for request in segment.unfinished]
    if not left:
        return None
    counted = Counter(request.fate for request in left)
    said = ", ".join(f"{count:,} {FATE[fate]}" for fate, count in counted.items())
    columns = [
        Column("request"),
        Column("sent at"),
        Column("waited"),
        Column("fate", side="left"),
        Column("tokens so far"),
        Column("ended as", side="left", rank=2),
        Column("known from", side="left", rank=3),
    ]
    rows = [_left(result, request) for request in left[:MOST_LEFT]]
    lines: list[RenderableType] = [
        heading(f"Left without an end: {len(left):,} requests"),
        indented(Text(said)),
    ]
    lines += [indented(Text(text)) for text in at_end_words(result)]
    lines.append(indented(FittingTable(columns, rows)))
    if len(left) > MOST_LEFT:
        more = len(left) - MOST_LEFT
        lines.append(
            indented(
                Text(
                    f"and {more:,} more: `unfinished` in {safe(directory)}/soak.json names each.", style="dim"
                )
            )
        )
    return Group(*lines)


def _left(result: SoakResult, request: Unfinished) -> Sequence[Cell]:
    at_s = None if request.sent_wall_ns is None else (request.sent_wall_ns - result.began_wall_ns) / 1e9
    tokens = numbers.count(request.tokens)
    if request.tokens is not None and not request.counted:
        tokens = f"{tokens} events"
    fate = FATE[request.fate] if request.bytes_kept else f"at least: {FATE[request.fate]}"
    short = request.segment.rpartition(".")[2]
    return (
        f"{short} {request.index:,}" if len(result.segments) > 1 else f"{request.index:,}",
        moment(at_s),
        numbers.brief(request.waited_ns),
        fate,
        tokens,
        safe(request.outcome, 40),
        "raw reads" if request.rebuilt else "its row",
    )


def at_end_words(result: SoakResult) -> list[str]:
    """Say what the server held when each segment's requests were given up."""
    said = []
    for segment in result.segments:
        end = segment.server_at_end
        if end is None or not segment.unfinished:
            continue
        where = f"{segment.segment}: " if len(result.segments) > 1 else ""
        said.append(
            f"{where}{numbers.duration(end.age_ns)} before they were given up the server said: running "
            f"{numbers.count(end.running)}, waiting {numbers.count(end.waiting)}, KV {numbers.share(end.kv_usage)}"
        )
    return said


def parts_table(result: SoakResult) -> RenderableType:
    """Return each server's life in order, with its pool in full budgets beside what was really resident."""
    columns = [
        Column("\npart", side="left"),
        Column("\nfrom"),
        Column("\nto"),
        Column("KV pool\ntokens"),
        Column("full-budget\nequivalents"),
        Column("really\nresident", name="really resident"),
        Column("\nrunning", rank=1),
        Column("\nKV use", rank=2),
        Column("\nok", rank=3),
        Column("\nfailed", rank=3),
        Column("\nchanged", side="left", rank=4),
    ]
    segments = {segment.segment: segment for segment in result.segments}
    rows = [_part(result, segments[part.segment], part) for part in result.parts if part.segment in segments]
    budget = result.parts[0].full_budget_tokens if result.parts else 0
    note = (
        f"full-budget equivalents: pool / {budget:,} tokens (input + output), a planning ratio; really resident: "
        "mean KV use x pool, in the same unit"
    )
    return Group(
        heading("The server, from start to start"),
        indented(FittingTable(columns, rows)),
        indented(Text(note, style="dim")),
    )


def _part(result: SoakResult, segment: SegmentResult, part: Part) -> Sequence[Cell]:
    short = part.segment.rpartition(".")[2]
    usage = part.kv_usage
    return (
        f"{short}, {part.number}" if len(result.segments) > 1 else f"{part.number}",
        moment(since_s(result, segment, part.begin_ns)),
        moment(since_s(result, segment, part.end_ns)),
        numbers.count(part.kv_tokens),
        _one_decimal(part.equivalents_full),
        _one_decimal(part.equivalents_resident),
        spread(part.running),
        numbers.ABSENT if usage is None else f"{numbers.share(usage.mean)} ({numbers.share(usage.max, 2)})",
        f"{part.ok:,}",
        f"{part.failed:,}",
        safe("; ".join(str(change) for change in part.changes), 200),
    )


def _one_decimal(value: float | None) -> str:
    return numbers.ABSENT if value is None else f"{value:.1f}"


def since_s(result: SoakResult, segment: SegmentResult, t_ns: int) -> float:
    """Return a segment's moment in seconds since the soak began, by the wall clock at the segment's start."""
    wall_ns = t_ns - segment.started.monotonic_ns + segment.started.wall_ns
    return (wall_ns - result.began_wall_ns) / 1e9


def disturbances(result: SoakResult) -> RenderableType | None:
    """Return losses of the server, gaps between segments and steps of the clock; None where there were none."""
    lines: list[tuple[str, RenderableType]] = []
    segments = {segment.segment: segment for segment in result.segments}
    outages = [outage for segment in result.segments for outage in segment.outages]
    for outage in outages[:MOST_OUTAGES]:
        lines.append(("Server lost", outage_words(result, segments[outage.segment], outage)))
    if len(outages) > MOST_OUTAGES:
        lines.append(("", f"and {len(outages) - MOST_OUTAGES:,} more losses: `outages` in soak.json"))
    for gap in result.gaps:
        lines.append(("Gap", gap_words(result, gap)))
    for segment in result.segments:
        for step in segment.clock_steps:
            lines.append(("Clock step", step_words(result, segment, step)))
        lines += [("Damage", safe(f"{segment.segment}: {said}", 400)) for said in segment.damage]
    return Group(heading("What came in between"), facts(lines)) if lines else None


def gap_words(result: SoakResult, gap: Gap) -> str:
    """Say when nothing was submitted, between which segments and for how long."""
    at = moment((gap.begin_wall_ns - result.began_wall_ns) / 1e9)
    length = (
        "of unknown length (the wall clock was set)"
        if gap.length_s is None
        else f"of {numbers.rough(gap.length_s)}"
    )
    return f"{length} at {at}, between {gap.after} and {gap.before}: nothing was submitted; in no rate"


def step_words(result: SoakResult, segment: SegmentResult, step: ClockStep) -> str:
    """Say when the wall clock was set, and by how much."""
    at = moment(since_s(result, segment, step.after_ns))
    return f"the wall clock was set by {step.step_ns / 1e9:+.3f} s after {at}"


def outage_words(result: SoakResult, segment: SegmentResult, outage: Outage) -> str:
    said = [f"at {moment(since_s(result, segment, outage.lost_ns))} (sign: {safe(outage.sign, 60)})"]
    if outage.back_ns is None:
        said.append("not back within what was observed")
    else:
        said.append(f"away {numbers.duration(outage.away_ns)}")
        said.append(
            {True: "restarted", False: "the same process", None: "restarted or not: not told"}[
                outage.restarted
            ]
        )
    failed = ", ".join(f"{count:,} {safe(name, 40)}" for name, count in outage.failed_by.items())
    said.append(f"{outage.failures:,} requests failed{f' ({failed})' if failed else ''}")
    if outage.recovery_ns is not None:
        said.append(f"first success {numbers.duration(outage.recovery_ns)} after the first failure")
    return ", ".join(said)
