"""Mixed prefill: what one long prompt costs the streams beside it, in words and on a line of time."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.matrix import label
from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.report import numbers
from nameplate.report.cells import label_of, status_of, values_of
from nameplate.report.layout import facts, heading, indented
from nameplate.report.matrix import ESTIMATED, legend
from nameplate.report.safe import safe
from nameplate.report.spark import Span, SparkLine
from nameplate.verdict.cell import CellStatus


def mixed_section(
    result: SpeedResult, explained: set[CellStatus], *, discarded: bool = False
) -> RenderableType | None:
    """Return what happened when a long prompt came among decoding streams; None where that was not planned."""
    rows = result.rows_of("mixed")
    if not rows:
        return None
    parts: list[RenderableType] = [
        heading("Mixed prefill").append(f"  {setting(result, rows[0])}", style="not bold")
    ]
    for row in rows:
        values = values_of(row, discarded)
        if values is None or values.mixed is None:
            parts.append(indented(status_of(row)))
            continue
        if row.status is not CellStatus.valid:
            said = status_of(row).append(": what follows is no result, shown because you asked", style="dim")
            parts.append(indented(said))
        parts += _cell(values, values.mixed)
    return Group(*parts, *legend(rows, explained))


def setting(result: SpeedResult, row: CellRow) -> str:
    """Say which prompt comes among which streams."""
    rule = (
        result.contract.speed.mixed
        if result.contract is not None and result.contract.speed is not None
        else None
    )
    said = f"one unique prompt of {label_of(row)} comes while {row.concurrency:,} streams decode"
    if rule is None:
        return said
    return f"{said} ({label(rule.stream_input_tokens)}/{label(rule.stream_output_tokens)} each)"


def _cell(values: CellValues, mixed: Mixed) -> list[RenderableType]:
    alone, loaded = numbers.duration(values.alone_ttft_ns), numbers.duration(mixed.ttft_ns)
    times = "" if values.slowdown is None else f": {values.slowdown:.2f} times as long"
    prompt = f"TTFT {loaded} under load, {alone} alone{times}"
    if mixed.arrival_prompt_tokens is not None:
        cached = mixed.arrival_cached_tokens
        of = "" if cached is None else f", {cached:,} of them cached"
        prompt += f" ({mixed.arrival_prompt_tokens:,} prompt tokens{of})"
    mark = ESTIMATED if mixed.estimated else ""
    streams = ", ".join(
        f"{mark}{numbers.rate(part.rate, 'tok/s')} {words}{_share(part, mixed.before)}"
        for part, words in ((mixed.before, "before"), (mixed.during, "during"), (mixed.after, "after"))
        if part is not None
    )
    lines: list[RenderableType] = [
        facts([("The long prompt", prompt), ("All the streams", streams or numbers.ABSENT)])
    ]
    if mixed.timeline:
        peak = numbers.rate(max(mixed.timeline), "tok/s")
        each = numbers.limit(mixed.slice_ns)
        lines += [
            Text(""),
            indented(SparkLine(mixed.timeline, _spans(mixed))),
            indented(Text(f"all streams' tok/s in slices of {each}; the highest bar is {peak}", style="dim")),
        ]
        if mixed.estimated:
            lines.append(
                indented(Text(f"{ESTIMATED} estimated: the server does not count tokens along", style="dim"))
            )
    return lines


def _share(part: Part, before: Part | None) -> str:
    if before is None or part is before or not before.rate:
        return ""
    return f" ({part.rate / before.rate:.0%})"


def _spans(mixed: Mixed) -> Sequence[Span]:
    """Place the parts on the timeline, which begins with `before`."""
    if mixed.before is None:
        return ()
    zero, length = mixed.before.window.begin_ns, len(mixed.timeline) * mixed.slice_ns
    return [
        Span(
            safe(part.name, 20), (part.window.begin_ns - zero) / length, (part.window.end_ns - zero) / length
        )
        for part in (mixed.before, mixed.during, mixed.after)
        if part is not None
    ]
