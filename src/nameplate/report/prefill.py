"""The prefill of a speed study by context length: how fast prompts are read, and what the server says of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.report import numbers
from nameplate.report.cells import bracketed, label_of, middle, status_of, values_of
from nameplate.report.layout import Cell, heading, indented
from nameplate.report.matrix import legend
from nameplate.report.table import Column, FittingTable
from nameplate.verdict.cell import CellStatus


def prefill_table(
    result: SpeedResult, explained: set[CellStatus], *, discarded: bool = False
) -> RenderableType | None:
    """Return the table of prefill by context; None where none was planned."""
    rows = sorted(result.rows_of("prefill"), key=lambda row: row.context_tokens)
    if not rows:
        return None
    plain = all(row.status is CellStatus.valid for row in rows)
    held = [(row, values_of(row, discarded)) for row in rows]
    server = any(v is not None and v.prefill is not None and v.prefill.server_s is not None for _, v in held)
    counted = any(_counted(row, values) != numbers.ABSENT for row, values in held)
    columns = [
        Column("\n\ncontext"),
        Column("\nprompt\ntokens"),
        Column("\nmedian\ntok/s"),
        Column("\nrange\ntok/s", rank=2),
        Column("\n\nn", rank=1),
        Column("\nmedian\nTTFT"),
        *([Column("server's\nown\nprefill", rank=3), Column("\n\ndifference", rank=3)] if server else []),
        *([Column("computed\ntokens, server's\ncounter to ours", rank=6)] if counted else []),
        *([] if plain else [Column("\n\nstatus", side="left")]),
    ]
    table = [
        (
            Text(label_of(row), style="bold"),
            _prompts(row),
            *_speeds(row, values),
            *(_server(row, values) if server else ()),
            *((_counted(row, values),) if counted else ()),
            *(() if plain else (status_of(row),)),
        )
        for row, values in held
    ]
    notes: list[RenderableType] = []
    if server:
        notes.append(
            Text(
                "difference: (our TTFT - the server's prefill time) / the server's, of the means", style="dim"
            )
        )
    return Group(
        heading("Prefill").append(
            "  (prompt - cached tokens) / TTFT of one cold prompt at a time", style="not bold"
        ),
        indented(FittingTable(columns, table)),
        *(indented(note) for note in notes),
        *legend(rows, explained),
    )


def _prompts(row: CellRow) -> str:
    held = row.prompt_tokens
    return numbers.ABSENT if held is None else numbers.between(f"{held.low:,}", f"{held.high:,}")


def _speeds(row: CellRow, values: CellValues | None) -> tuple[Cell, Cell, Cell, Cell]:
    """Return the median rate, its range, n and the median TTFT."""
    if values is None:
        return (numbers.ABSENT,) * 4
    prefill = values.prefill
    median = values.tokens_per_s if prefill is None else prefill.median
    rate = Text(
        bracketed(numbers.brief_rate(median), row), style="bold" if row.status is CellStatus.valid else "dim"
    )
    if prefill is None:
        n = values.ttft.n if values.ttft is not None else values.completed
        return rate, numbers.ABSENT, numbers.count(n), bracketed(middle(values.ttft, brief=False), row)
    spread = numbers.ABSENT
    if prefill.n > 1:
        spread = numbers.between(numbers.brief_rate(prefill.low), numbers.brief_rate(prefill.high))
    return (
        rate,
        bracketed(spread, row),
        f"{prefill.n:,}",
        bracketed(numbers.duration(prefill.ttft_median_ns), row),
    )


def _server(row: CellRow, values: CellValues | None) -> Sequence[Cell]:
    prefill = values.prefill if values is not None else None
    if prefill is None or prefill.server_s is None:
        return numbers.ABSENT, numbers.ABSENT
    said = numbers.ABSENT if prefill.server_difference is None else f"{prefill.server_difference:+.1%}"
    return bracketed(numbers.duration(prefill.server_s * 1e9), row), bracketed(said, row)


def _counted(row: CellRow, values: CellValues | None) -> Cell:
    """Compare the computed tokens by the server's counters with those by usage."""
    prefill = values.prefill if values is not None else None
    if prefill is None or prefill.computed_tokens is None or prefill.counted_tokens is None:
        return numbers.ABSENT
    difference = prefill.computed_tokens - prefill.counted_tokens
    return bracketed("the same" if not difference else f"{difference:+,}", row)
