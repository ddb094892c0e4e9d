"""A soak over time: three series that are never one, and a row for each window."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.segment import Course, SegmentResult
from nameplate.measure.soak.window import Spread, WindowResult
from nameplate.report import numbers
from nameplate.report.layout import Cell, facts, heading, indented
from nameplate.report.soak_words import moment
from nameplate.report.spark import Span, SparkLine
from nameplate.report.table import Column, FittingTable

# Of a long soak the table shows so many windows, evenly; every one stands in the result.
MOST_ROWS = 24


def series(result: SoakResult) -> RenderableType | None:
    """Return what was outstanding, running and waiting over time, and KV use; None where nothing was sampled."""
    lines: list[tuple[str, RenderableType]] = []
    spans = _spans(result)
    for label, name, share in (
        ("Outstanding, ours", "outstanding", False),
        ("Running, server's", "running", False),
        ("Waiting, server's", "waiting", False),
        ("KV use, server's", "kv_usage", True),
    ):
        courses = [course for segment in result.segments for course in segment.courses if course.name == name]
        values = [value for course in courses for value in course.mean]
        if not values:
            if name != "kv_usage":
                lines.append((label, "not told"))
            continue
        lines.append((label, _drawn(courses, values, share, spans)))
        spans = ()  # The ruler stands once, below the first.
    return Group(heading("Over time"), facts(lines)) if lines else None


def _drawn(
    courses: Sequence[Course], values: Sequence[float], share: bool, spans: Sequence[Span]
) -> RenderableType:
    low, high = min(min(course.min) for course in courses), max(max(course.max) for course in courses)
    mean = sum(values) / len(values)

    def said(value: float) -> str:
        return numbers.share(value, 2) if share else numbers.count(round(value, 1))

    words = f"{said(mean)} on average, {said(low)} to {said(high)}"
    return Group(SparkLine(values, spans), Text(words, style="dim"))


def _spans(result: SoakResult) -> tuple[Span, ...]:
    """Return where each segment lies on the line, if there are several."""
    lengths = [
        max(1, len(next(iter(segment.courses)).mean) if segment.courses else 1) for segment in result.segments
    ]
    if len(lengths) < 2:
        return ()
    whole, at = sum(lengths), 0
    spans = []
    for segment, length in zip(result.segments, lengths, strict=True):
        spans.append(Span(segment.segment.rpartition(".")[2], at / whole, (at + length) / whole))
        at += length
    return tuple(spans)


def windows_table(
    result: SoakResult, *, most: int | None = MOST_ROWS, latest: int | None = None
) -> RenderableType | None:
    """Return the windows, `most` of them evenly spread, or all, or the `latest`; None before there is one."""
    held = [(segment, window) for segment in result.segments for window in segment.windows]
    if not held:
        return None
    every = 1 if most is None or latest is not None else -(-len(held) // most)
    shown = [pair for at, pair in enumerate(held) if at % every == 0 or at == len(held) - 1]
    if latest is not None:
        shown = shown[-latest:]
    columns = [
        Column("\nfrom"),
        Column("\nout tok/s"),
        Column("TTFT\np50"),
        Column("\np95", rank=1),
        Column("ITL\np50", rank=4, name="ITL p50"),
        Column("E2E\np50", rank=6, name="E2E p50"),
        Column("\nok"),
        Column("\nfailed", rank=2),
        Column("out-\nstanding", rank=1),
        Column("run-\nning", rank=1),
        Column("wait-\ning", rank=1),
        Column("KV\nmost", rank=3, name="KV"),
        Column("queue\nmean", rank=3, name="queue mean"),
        Column("prefill\nmean", rank=3, name="prefill mean"),
        Column("in tok/s\n", rank=7),
        Column("preempt-\nions", rank=5),
        Column("\nnote", side="left", rank=5),
    ]
    rows: list[Sequence[Cell] | None] = []
    last: SegmentResult | None = None
    for segment, window in shown:
        if last is not None and segment is not last:
            rows.append(None)
        last = segment
        rows.append(_row(result, window))
    length = numbers.rough(result.segments[0].window_ns / 1e9)
    told = (
        f"windows of {length}: tokens by when they arrived, TTFT by first output, ITL, E2E and ok by their end; "
        "queue and prefill are the server's own means of what it finished"
    )
    notes = [told]
    if latest is not None and len(held) > latest:
        notes.append(f"the last {latest} of {len(held)} windows")
    if every > 1:
        notes.append(f"one of {every} of {len(held)} windows is shown; all of them: nameplate show DIR --all")
    if any(window.partial for _, window in shown):
        notes.append("~ a window that was not observed as a whole")
    return Group(
        heading("Windows"),
        indented(FittingTable(columns, rows)),
        *(indented(Text(note, style="dim")) for note in notes),
    )


def _row(result: SoakResult, window: WindowResult) -> Sequence[Cell]:
    server = window.server
    at = moment((window.begin_wall_ns - result.began_wall_ns) / 1e9)
    failed = sum(window.failed.values())
    return (
        f"{at}{'~' if window.partial else ''}",
        numbers.brief_rate(window.output_tokens_per_s),
        numbers.brief(window.ttft.p50),
        numbers.brief(window.ttft.p95),
        numbers.brief(window.itl.p50),
        numbers.brief(window.e2e.p50),
        f"{window.completed:,}",
        Text(f"{failed:,}", style="red" if failed else ""),
        _mean(window.outstanding),
        _mean(server.running),
        _mean(server.waiting),
        numbers.ABSENT if server.kv_usage is None else numbers.share(server.kv_usage.max),
        _seconds(server.queue_mean_s),
        _seconds(server.prefill_mean_s),
        numbers.brief_rate(window.input_tokens_per_s),
        numbers.count(server.preemptions),
        note_words(window),
    )


def note_words(window: WindowResult) -> str:
    said = [] if window.load == "submission" else ["drain" if window.load == "drain" else "into the drain"]
    said += [note for note in window.notes if note not in said]
    return "; ".join(said)[:60]


def _mean(held: Spread | None) -> str:
    return numbers.ABSENT if held is None else numbers.count(round(held.mean, 1))


def _seconds(mean_s: float | None) -> str:
    return numbers.brief(None if mean_s is None else mean_s * 1e9)
