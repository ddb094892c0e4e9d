"""One request as it came: its facts, its events with their times, and the text that it carried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.evidence.rows import RequestRow
from nameplate.measure.replay import ReplayedRequest, TimedEvent
from nameplate.report import numbers
from nameplate.report.layout import Cell, facts, heading, indented, stacked
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import style_of
from nameplate.report.table import Column, FittingTable
from nameplate.wire.events import Done, Event, Finish, Output, StreamError, Usage
from nameplate.wire.loop import KEPT_CHARS, LEAST_CHARS

# The first events show how a stream began, the last how it ended; between them they repeat.
FIRST, LAST = 40, 10
_EVENT_TEXT_LIMIT = 60
# What a person reads at once; `everything` prints it all.
_TEXT_LIMIT = 4000


def request_view(replayed: ReplayedRequest, everything: bool = False) -> RenderableType:
    """Return one request; without `everything` its events and its text are bounded.

    Whatever the server sent is made harmless: it cannot move the cursor or change a colour.
    """
    row = replayed.row
    return stacked(
        (
            _answer(row),
            _facts(replayed),
            _times(row),
            _events(replayed, everything),
            *_texts(replayed.events, everything),
        )
    )


def _answer(row: RequestRow) -> Text:
    text = Text(f"Request {row.index} ({row.phase}): ", style="bold")
    text.append(safe(row.outcome, 60), style=style_of("pass" if row.outcome == "ok" else "fail"))
    source = " (estimated)" if row.output_tokens_source == "estimated" else ""
    text.append(
        f", first output after {numbers.duration(row.ttft_ns)}, "
        f"{numbers.count(row.output_tokens, 'token')}{source} in {numbers.duration(row.e2e_ns)}",
        style="not bold",
    )
    return text


def _facts(replayed: ReplayedRequest) -> RenderableType:
    row = replayed.row
    finish = safe(row.finish_reason, 60) if row.finish_reason is not None else numbers.ABSENT
    lines: list[tuple[str, Cell]] = [
        ("Class", f"{safe(row.class_, 60)}, slot {numbers.count(row.slot)}, worker {row.worker}"),
        ("HTTP status", numbers.ABSENT if row.http_status is None else str(row.http_status)),
        ("Finish reason", finish),
        (
            "Prompt",
            f"{numbers.count(row.prompt_tokens, 'token')}, {numbers.count(row.cached_tokens)} of them cached",
        ),
        (
            "Output",
            f"{numbers.count(row.output_tokens, 'token')} of {row.asked_output_tokens:,} asked "
            f"({row.output_tokens_source or 'not counted'}), {numbers.count(row.output_events, 'event')}, "
            f"{numbers.count(row.output_bytes, 'byte')}"
            + (f", {numbers.count(row.reasoning_tokens)} reasoning tokens" if row.reasoning_tokens else ""),
        ),
        ("Loop", _loop(row)),
        (
            "Gaps",
            (
                f"ITL {numbers.duration(row.itl_ns)}, TPOT {numbers.duration(row.tpot_ns)}, longest "
                f"{numbers.duration(row.longest_gap_ns)}"
            ),
        ),
        (
            "Connection",
            (
                f"opened in {numbers.duration(row.connect_ns)}, idle for {numbers.duration(row.idle_ns)} before, "
                f"{numbers.count(replayed.reads, 'read')}"
            ),
        ),
        ("Prompt SHA-256", safe(row.prompt_sha256, 80)),
        ("Output SHA-256", safe(row.output_sha256, 80) if row.output_sha256 else numbers.ABSENT),
    ]
    if row.error:
        lines.append(("Error", safe_text(row.error, style_of("fail"), 1500)))
    if row.warnings:
        lines.append(("Warnings", safe(", ".join(row.warnings), 1000)))
    if replayed.headers:
        shown = "\n".join(f"{safe(name, 80)}: {safe(value, 200)}" for name, value in replayed.headers[:40])
        lines.append(("Headers", shown))
    return facts(lines, indent=0)


def _loop(row: RequestRow) -> str:
    found, chars = row.loop, row.longest_channel_chars
    if found is not None:
        return (
            f"{found.channel.replace('_', ' ')} ends in one: the same {numbers.count(found.period_chars, 'character')} "
            f"over and over, {found.length_chars:,} in all"
            + (" of the end that is looked at" if found.length_chars == KEPT_CHARS else "")
        )
    if chars is None:
        return "not looked for"
    if not row.long_enough_to_loop:
        return f"too short to judge: {numbers.count(chars, 'character')}, it takes {LEAST_CHARS:,}"
    return f"none in {numbers.count(chars, 'character')}"


def _times(row: RequestRow) -> RenderableType:
    zero = row.sent_ns if row.sent_ns is not None else row.scheduled_ns
    moments = [
        ("scheduled", row.scheduled_ns),
        ("sent", row.sent_ns),
        ("body sent", row.body_sent_ns),
        ("first output", row.first_output_ns),
        ("first answer", row.first_answer_ns),
        ("second output", row.second_output_ns),
        ("last output", row.last_output_ns),
        ("finish", row.finish_ns),
        ("end", row.end_ns),
    ]
    rows = [(name, _since(at, zero)) for name, at in moments]
    told = "sent" if row.sent_ns is not None else "scheduled, for it was never sent"
    return Group(
        heading(f"Times since it was {told}"),
        indented(FittingTable([Column("", side="left"), Column("")], rows)),
    )


def _since(at_ns: int | None, zero_ns: int) -> str:
    """Write a time in milliseconds with all its digits, so that events can be told apart and subtracted."""
    return numbers.ABSENT if at_ns is None else f"{(at_ns - zero_ns) / 1e6:,.3f} ms"


def _events(replayed: ReplayedRequest, everything: bool) -> RenderableType:
    events, row = replayed.events, replayed.row
    title = heading("Events")
    if not replayed.bytes_kept:
        why = "its raw reads were not kept" if replayed.reads else "nothing was read"
        return Group(title, indented(Text(f"none to show: {why}.")))
    zero = row.sent_ns if row.sent_ns is not None else row.scheduled_ns
    rows = _rows(events, zero)
    shown: list[Sequence[Cell] | None] = list(rows)
    if not everything and len(rows) > FIRST + LAST:
        hidden = f"{len(rows) - FIRST - LAST:,} more lines; --all prints them"
        shown = [*rows[:FIRST], ("...", "", "", "", "", Text(hidden, style="dim")), *rows[-LAST:]]
    columns = [
        Column("event"),
        Column("since sent"),
        Column("gap"),
        Column("kind", side="left"),
        Column("tokens\nso far", rank=1),
        Column("what", side="left"),
    ]
    return Group(title, indented(FittingTable(columns, shown, wraps=(5,))))


def _rows(events: Sequence[TimedEvent], zero_ns: int) -> list[Sequence[Cell]]:
    """Return a line an event; a count that came along with an output stands on the output's line."""
    rows: list[Sequence[Cell]] = []
    last_ns: int | None = None
    at = 0
    while at < len(events):
        t_ns, event = events[at].t_ns, events[at].event
        number, gap, so_far = f"{at:,}", "", ""
        if isinstance(event, Output):
            gap = "" if last_ns is None else f"{(t_ns - last_ns) / 1e6:,.3f} ms"
            last_ns = t_ns
            beside = events[at + 1] if at + 1 < len(events) else None
            if beside is not None and isinstance(beside.event, Usage) and beside.t_ns == t_ns:
                so_far = numbers.count(beside.event.completion_tokens)
                at += 1
        kind, said = _describe(event)
        rows.append((number, _since(t_ns, zero_ns), gap, kind, so_far, said))
        at += 1
    return rows


def _describe(event: Event) -> tuple[str, Cell]:
    match event:
        case Output():
            return event.channel.value, f'"{safe(event.text, _EVENT_TEXT_LIMIT)}"'
        case Usage():
            return "usage", _usage(event)
        case Finish():
            return "finish", safe_text(event.reason, "bold", 100)
        case StreamError():
            parts = [event.message, event.kind, event.code]
            return "error", safe_text(" | ".join(part for part in parts if part), style_of("fail"), 1000)
        case Done():
            return "done", "[DONE]"
    assert_never(event)


def _usage(usage: Usage) -> str:
    said = [
        f"{name.replace('_', ' ')} {value:,}"
        for name in usage.__struct_fields__
        if (value := getattr(usage, name)) is not None
    ]
    return ", ".join(said) or "nothing"


def _texts(events: Sequence[TimedEvent], everything: bool) -> list[RenderableType]:
    """Return the text of each channel, in the order in which they began."""
    channels: dict[str, list[str]] = {}
    for one in events:
        if isinstance(one.event, Output):
            channels.setdefault(one.event.channel.value, []).append(one.event.text)
    limit = None if everything else _TEXT_LIMIT
    return [
        Group(
            heading(f"Text ({name.replace('_', ' ')})"),
            indented(safe_text("".join(pieces), "", limit, lines=True)),
        )
        for name, pieces in channels.items()
    ]
