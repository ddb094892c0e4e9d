"""The speed matrix that a study is asked for: contexts by simultaneous requests, and how each cell is measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Kind = Literal["prefill", "decode", "burst", "mixed"]

KI = 1024
DEFAULT_CONTEXTS = (8 * KI, 16 * KI, 32 * KI, 64 * KI, 128 * KI)
DEFAULT_CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128)
# Between the longest prompt of the matrix and the server's limit, beside the output: the template, and lengths that
# are off by up to 0.5%.
LIMIT_MARGIN_TOKENS = 1024
# Prompts are composed to within two tokens; a prompt at the limit leaves room for that and for one token of answer.
LIMIT_SLACK_TOKENS = 16
BURST_REQUESTS_PER_STREAM = 5
# Even prompts that share everything end in a tail of their own, so that each is a request of its own.
LEAST_UNIQUE_TOKENS = 64
# How long a ramp may take beyond the prefill that it must do: others' decoding slows it, and a server has pauses.
READY_MARGIN_FACTOR = 1.5
READY_MARGIN_NS = 30 * 10**9


class PrefillRule(Struct, frozen=True):
    """Sample cold prefills at one context until their spread is small, or a bound is reached.

    At least `least` samples and at most `most`; between them it ends when (max - min) / median of the rates is at
    most `spread`, or `budget_ns` is used up.
    """

    least: int = 3
    most: int = 8
    spread: float = 0.03
    budget_ns: int = 60 * 10**9


class MixedRule(Struct, frozen=True):
    """Let one unique prompt of `arrival_tokens` arrive while `streams` streams of the shape `stream_*` decode.

    The streams are watched for `before_ns` first and for `after_ns` after the arrival's first token.
    """

    arrival_tokens: int
    streams: int = 8
    stream_input_tokens: int = 2 * KI
    stream_output_tokens: int = KI
    before_ns: int = 5 * 10**9
    after_ns: int = 5 * 10**9
    deadline_ns: int = 600 * 10**9


class Matrix(Struct, frozen=True, kw_only=True):
    """Fix what a speed study measures; lengths in tokens, times in nanoseconds.

    `decode_contexts` by `concurrencies` are the cells, each with a fixed window of `window_ns` after readiness, or
    a count of `requests`. `unique_percent` of each prompt is its own; the rest is a prefix that all share. With
    `burst` each level is also sent as one wave of `burst_requests`, five for each stream by default.
    `ready_timeout_ns` of None derives each cell's deadline from the measured prefill. `time_budget_s` trims the plan.
    """

    prefill_contexts: tuple[int, ...] = ()
    decode_contexts: tuple[int, ...] = ()
    concurrencies: tuple[int, ...] = ()
    window_ns: int = 30 * 10**9
    stable_ns: int = 3 * 10**9
    output_tokens: int = 4096
    unique_percent: float = 100.0
    ready_timeout_ns: int | None = None
    warm_streams: bool = False
    loop_limit: float = 0.05
    prefill: PrefillRule = PrefillRule()
    requests: int | None = None
    burst: bool = False
    burst_requests: int | None = None
    mixed: MixedRule | None = None
    time_budget_s: float | None = None
    profile: str = "custom"

    def output_for(self, context_tokens: int, limit_tokens: int | None) -> int:
        """Return the output length of a cell: as asked, or what the context limit leaves."""
        if limit_tokens is None:
            return self.output_tokens
        return min(self.output_tokens, limit_tokens - context_tokens)

    def shared_tokens(self, context_tokens: int) -> int:
        """Return how many tokens of a prompt of this length all prompts share."""
        shared = round(context_tokens * (100.0 - self.unique_percent) / 100.0)
        return max(0, min(shared, context_tokens - LEAST_UNIQUE_TOKENS))


class CellPlan(Struct, frozen=True, order=True):
    """Name one planned cell of the matrix."""

    kind: Kind
    context_tokens: int
    concurrency: int

    @property
    def name(self) -> str:
        """Return the cell's name, usable as a directory's name and unique in a study."""
        return f"{self.kind}.{exact_label(self.context_tokens)}.c{self.concurrency}"

    def __str__(self) -> str:
        return f"{self.kind} {label(self.context_tokens)} x {self.concurrency}"


def exact_label(tokens: int) -> str:
    """Write a length so that no two are written alike: 8K for 8,192, else the plain number."""
    return f"{tokens // KI}K" if tokens and tokens % KI == 0 else str(tokens)


def label(tokens: int) -> str:
    """Write a context as its row is labelled; the one just below the server's limit is labelled as the limit."""
    near = tokens + LIMIT_SLACK_TOKENS
    return exact_label(near) if near % KI == 0 else exact_label(tokens)


def limit_context(limit_tokens: int) -> int:
    """Return the longest prompt that a server takes with an answer of one token, sure to be within its limit."""
    return limit_tokens - LIMIT_SLACK_TOKENS


def burst_of(matrix: Matrix, concurrency: int) -> int:
    """Return how many requests a level of the burst phase sends."""
    asked = (
        BURST_REQUESTS_PER_STREAM * concurrency if matrix.burst_requests is None else matrix.burst_requests
    )
    return max(concurrency, asked)


def longest_context(limit_tokens: int, output_tokens: int) -> int:
    """Return the longest prompt that fits beside its output, as a multiple of 1,024 where it is above that."""
    longest = limit_tokens - output_tokens - LIMIT_MARGIN_TOKENS
    return longest // KI * KI if longest >= KI else max(0, longest)


def telling_order(contexts: Iterable[int], concurrencies: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Order (context, concurrency) so that what tells most comes first.

    First the column of the smallest concurrency (how fast is one user at each length), then the row of the smallest
    context (how far does it scale), then the rest row by row.
    """
    rows, columns = sorted(set(contexts)), sorted(set(concurrencies))
    if not rows or not columns:
        return ()
    first_column = [(context, columns[0]) for context in rows]
    first_row = [(rows[0], concurrency) for concurrency in columns[1:]]
    rest = [(context, concurrency) for context in rows[1:] for concurrency in columns[1:]]
    return (*first_column, *first_row, *rest)


def planned_cells(matrix: Matrix) -> tuple[CellPlan, ...]:
    """List every cell of the matrix in the order in which they are measured."""
    cells = [CellPlan("prefill", context, 1) for context in sorted(set(matrix.prefill_contexts))]
    grid = telling_order(matrix.decode_contexts, matrix.concurrencies)
    cells += [CellPlan("decode", context, concurrency) for context, concurrency in grid]
    if matrix.burst:
        cells += [CellPlan("burst", context, concurrency) for context, concurrency in grid]
    if matrix.mixed is not None:
        cells.append(CellPlan("mixed", matrix.mixed.arrival_tokens, matrix.mixed.streams))
    return tuple(cells)
