"""The matrix of a speed study: labels, lengths, order, and what a server's limits make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.identity import Fact, Identity
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import (
    DEFAULT_CONCURRENCIES,
    DEFAULT_CONTEXTS,
    KI,
    LEAST_UNIQUE_TOKENS,
    LIMIT_MARGIN_TOKENS,
    LIMIT_SLACK_TOKENS,
    CellPlan,
    Matrix,
    MixedRule,
    burst_of,
    exact_label,
    label,
    limit_context,
    longest_context,
    planned_cells,
    telling_order,
)

lengths = st.integers(1, 1 << 21)
grids = st.lists(st.integers(1, 300_000), max_size=7), st.lists(st.integers(1, 512), max_size=7)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(8192, "8K"), (131_072, "128K"), (1024, "1K"), (1000, "1000"), (8190, "8190"), (1_048_576, "1024K")],
)
def test_k_is_1024_and_nothing_else(tokens: int, said: str) -> None:
    """A length is written in K only where it is a whole number of 1,024 tokens."""
    assert exact_label(tokens) == said


@given(lengths, lengths)
def test_no_two_lengths_are_written_alike(one: int, other: int) -> None:
    """The exact label tells any two lengths apart, since directories and prompts are named by it."""
    assert (exact_label(one) == exact_label(other)) == (one == other)


@given(st.integers(1, 2048))
def test_the_row_below_the_limit_bears_the_limits_name(thousands: int) -> None:
    """The longest prompt that a server takes is labelled by its limit, and its own length stays in the cell's name."""
    tokens = limit_context(thousands * KI)
    assert label(tokens) == f"{thousands}K" and tokens == thousands * KI - LIMIT_SLACK_TOKENS
    assert str(tokens) in CellPlan("prefill", tokens, 1).name


@given(*grids)
def test_every_cell_is_planned_once(contexts: list[int], concurrencies: list[int]) -> None:
    """The telling order holds each pair of the grid exactly once, whatever is asked twice."""
    order = telling_order(contexts, concurrencies)
    assert sorted(order) == sorted((row, column) for row in set(contexts) for column in set(concurrencies))


@given(*grids)
def test_what_tells_most_comes_first(contexts: list[int], concurrencies: list[int]) -> None:
    """First stands the column of the smallest concurrency, then the row of the smallest context, then the rest."""
    order = telling_order(contexts, concurrencies)
    if not order:
        assert not contexts or not concurrencies
        return
    rows, columns = sorted(set(contexts)), sorted(set(concurrencies))
    assert order[: len(rows)] == tuple((row, columns[0]) for row in rows)
    assert order[len(rows) : len(rows) + len(columns) - 1] == tuple((rows[0], each) for each in columns[1:])
    assert list(order[len(rows) + len(columns) - 1 :]) == sorted(order[len(rows) + len(columns) - 1 :])


def test_the_default_matrix_has_forty_cells_beside_prefill() -> None:
    """Five contexts by eight concurrencies are forty cells, after the five of prefill."""
    cells = planned_cells(
        Matrix(
            prefill_contexts=DEFAULT_CONTEXTS,
            decode_contexts=DEFAULT_CONTEXTS,
            concurrencies=DEFAULT_CONCURRENCIES,
        )
    )
    assert [cell.kind for cell in cells] == ["prefill"] * 5 + ["decode"] * 40
    assert len({cell.name for cell in cells}) == 45


def test_bursts_and_the_mixed_cell_follow_the_decode_cells() -> None:
    """Every level of the grid is also a burst, and the mixed cell names its arrival and its streams."""
    matrix = Matrix(
        decode_contexts=(KI,), concurrencies=(1, 2), burst=True, mixed=MixedRule(arrival_tokens=4 * KI)
    )
    assert [str(cell) for cell in planned_cells(matrix)] == [
        "decode 1K x 1",
        "decode 1K x 2",
        "burst 1K x 1",
        "burst 1K x 2",
        "mixed 4K x 8",
    ]


@given(limit=st.integers(0, 1 << 20), output=st.integers(0, 1 << 16))
def test_the_longest_context_leaves_room_for_output_and_margin(limit: int, output: int) -> None:
    """Prompt, output and margin never exceed the limit, and less than a K of it is wasted."""
    longest = longest_context(limit, output)
    room = limit - output - LIMIT_MARGIN_TOKENS
    assert longest == 0 if room <= 0 else 0 < longest <= room < longest + KI
    assert longest < KI or longest % KI == 0


@given(context=st.integers(LEAST_UNIQUE_TOKENS, 1 << 20), percent=st.floats(0, 100))
def test_each_prompt_keeps_a_tail_of_its_own(context: int, percent: float) -> None:
    """The shared part is what was asked, to the token, but never all of a prompt."""
    shared = Matrix(unique_percent=percent).shared_tokens(context)
    assert 0 <= shared <= context - LEAST_UNIQUE_TOKENS
    asked = context * (100 - percent) / 100
    assert abs(shared - asked) <= 0.5 or shared == context - LEAST_UNIQUE_TOKENS


@pytest.mark.parametrize(("percent", "shared"), [(100.0, 0), (25.0, 6144), (0.0, 8128), (50.0, 4096)])
def test_sharing_is_counted_in_tokens(percent: float, shared: int) -> None:
    """25% of 8K unique share 6,144 tokens; with nothing unique 64 tokens still are."""
    assert Matrix(unique_percent=percent).shared_tokens(8192) == shared


def test_a_prompt_shorter_than_the_least_tail_shares_nothing() -> None:
    """A prompt of 32 tokens is wholly its own."""
    assert Matrix(unique_percent=0.0).shared_tokens(32) == 0


def test_a_burst_has_five_requests_a_stream_and_never_fewer_than_streams() -> None:
    """Five for each stream by default, as many as were asked for else, at least one wave."""
    assert burst_of(Matrix(), 8) == 40
    assert burst_of(Matrix(burst_requests=100), 8) == 100
    assert burst_of(Matrix(burst_requests=4), 8) == 8


def test_output_is_capped_by_the_context() -> None:
    """An answer is as long as asked, or what the context leaves; with the limit unknown as asked."""
    matrix = Matrix(output_tokens=4096)
    assert matrix.output_for(8192, 131_072) == 4096
    assert matrix.output_for(8192, 9000) == 808
    assert matrix.output_for(9000, 8192) < 0
    assert matrix.output_for(8192, None) == 4096


def identity(**facts: str | float | bool) -> Identity:
    """Build an identity of facts."""
    return Identity({name: Fact(value, "test") for name, value in facts.items()})


def test_limits_prefer_what_is_in_effect() -> None:
    """The running limit in effect is taken before the requested one; what is unknown stays unknown."""
    both = ServerLimits.of(identity(running_limit_effective=100, running_limit_requested=256))
    assert (both.running, both.kv_tokens, both.context_tokens, both.block_tokens) == (100, None, None, None)
    assert ServerLimits.of(identity(running_limit_requested=256)).running == 256
    whole = ServerLimits.of(identity(context_limit_tokens=8192, kv_tokens=65_536, block_size_tokens=16))
    assert whole == ServerLimits(context_tokens=8192, kv_tokens=65_536, block_tokens=16)
