"""What of a recorded trace can be sent to this server: no row beyond its context, none below its shortest prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import structs

from nameplate.contract.errors import CallerError
from nameplate.contract.trace import TracePlan, TraceRow, TraceRows
from nameplate.verdict.tolerances import PROMPT_TOLERANCE_TOKENS

TooLong = Literal["refuse", "skip"]
TooShort = Literal["refuse", "skip", "raise"]


def fit_trace(
    trace: TracePlan,
    *,
    context_tokens: int | None,
    floor_tokens: int,
    template_tokens: int,
    too_long: TooLong = "refuse",
    too_short: TooShort = "refuse",
) -> TracePlan:
    """Return the trace with those of its requests that can be sent, counted by what became of the others.

    `floor_tokens` is the shortest prompt that is unique, `template_tokens` what a prompt has beside its text.
    CallerError where a row cannot be sent and was not allowed to be left out or raised, or where none is left.
    """
    assert trace.rows is not None
    rows = list(trace.rows)
    left_out = dict(trace.left_out)
    raised = 0

    def shortest(row: TraceRow) -> int:
        # What begins with blocks of others need not be unique itself; a few tokens off are within the tolerance.
        return template_tokens + 1 if row.blocks else floor_tokens - PROMPT_TOLERANCE_TOKENS

    def is_short(row: TraceRow) -> bool:
        return row.input_tokens < shortest(row)

    def is_long(row: TraceRow) -> bool:
        return context_tokens is not None and row.input_tokens + row.output_tokens > context_tokens

    short = sum(map(is_short, rows))
    if short and too_short == "refuse":
        raise CallerError(
            f"{short:,} of {len(rows):,} requests of the trace {trace.name} have inputs below {floor_tokens} tokens: "
            "no prompt is so short here, chat template included.",
            why="They would be sent longer than they were recorded.",
            hint="Say what becomes of them: --trace-too-short raise sends the shortest prompt, skip leaves them out.",
        )
    if short and too_short == "raise":
        rows = [
            structs.replace(row, input_tokens=max(shortest(row), floor_tokens)) if is_short(row) else row
            for row in rows
        ]
        raised = short
    elif short:
        rows, left_out["too short for a prompt"] = _without(rows, is_short), short
    long = sum(map(is_long, rows))
    if long and too_long == "refuse":
        first = next(row for row in rows if is_long(row))
        raise CallerError(
            f"{long:,} of {len(rows):,} requests of the trace {trace.name} do not fit the server's context of "
            f"{context_tokens:,} tokens; the first asks for {first.input_tokens:,} + {first.output_tokens:,}.",
            hint="--trace-too-long skip leaves them out, counted; or start the server with a longer context.",
        )
    if long:
        rows, left_out["too long for the context"] = _without(rows, is_long), long
    if not rows:
        raise CallerError(
            f"Nothing is left of the trace {trace.name}: {left_out}.",
            hint="Is it a trace of this model's lengths?",
        )
    return with_rows(
        structs.replace(trace, left_out=left_out, raised=raised), TraceRows.of(rows, trace.rows.block_tokens)
    )


def with_rows(trace: TracePlan, rows: TraceRows) -> TracePlan:
    """Return the trace with these requests, and what is told of them."""
    return structs.replace(
        trace,
        requests=len(rows),
        duration_ns=rows.duration_ns,
        block_tokens=rows.block_tokens,
        rows_sha256=rows.sha256,
        rows=rows,
    )


def _without(rows: list[TraceRow], wrong: Callable[[TraceRow], bool]) -> list[TraceRow]:
    return [row for row in rows if not wrong(row)]
