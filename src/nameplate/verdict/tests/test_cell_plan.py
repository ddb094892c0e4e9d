"""What is known of a cell before it runs: capacity and limits, preemption, and its deadline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import KI, READY_MARGIN_NS, CellPlan, Matrix, MixedRule
from nameplate.verdict.cell import CellStatus
from nameplate.verdict.cell_plan import (
    expected_ready_ns,
    foregone,
    kv_need,
    preemption_warning,
    ready_deadline_ns,
)

S = 10**9
MATRIX = Matrix(output_tokens=1024)


def decode(context: int, streams: int) -> CellPlan:
    """Plan a decode cell."""
    return CellPlan("decode", context, streams)


def test_the_arithmetic_of_sharing_is_shown() -> None:
    """The shared part counts once and the unique parts for each stream, as in 8K with 25% of its own."""
    need = kv_need(
        Matrix(output_tokens=1024, unique_percent=25.0), decode(8192, 4), ServerLimits(kv_tokens=9)
    )
    assert (need.shared_tokens, need.unique_tokens, need.prompts) == (6144, 2048, 6144 + 4 * 2048)
    assert need.whole == need.prompts + 4 * 1024
    assert str(need) == (
        "6,144 shared + 4 x 2,048 unique = 14,336 prompt tokens, 18,432 with outputs, KV pool 9"
    )


@given(
    context=st.integers(1, 200_000),
    streams=st.integers(1, 256),
    percent=st.floats(0, 100),
    block=st.integers(1, 1024),
)
def test_whole_blocks_hold_every_token(context: int, streams: int, percent: float, block: int) -> None:
    """Shared and unique parts are whole blocks, hold every prompt token, and waste less than a block a stream."""
    matrix = Matrix(unique_percent=percent)
    need = kv_need(matrix, decode(context, streams), ServerLimits(block_tokens=block))
    assert need.shared_tokens % block == need.unique_tokens % block == 0
    assert need.shared_tokens <= matrix.shared_tokens(context)
    assert context <= need.shared_tokens + need.unique_tokens < context + block
    exact = matrix.shared_tokens(context) + streams * (context - matrix.shared_tokens(context))
    assert need.prompts >= exact


@given(pool=st.integers(0, 100_000), streams=st.integers(1, 64))
def test_over_capacity_is_prompts_beyond_the_pool(pool: int, streams: int) -> None:
    """A cell is over capacity exactly where its prompts exceed the pool; with outputs beyond it, it runs and warns."""
    limits, cell = ServerLimits(kv_tokens=pool), decode(1024, streams)
    verdict, warned = foregone(MATRIX, cell, limits), preemption_warning(MATRIX, cell, limits)
    if streams * 1024 > pool:
        assert verdict is not None and verdict.status is CellStatus.over_capacity
        assert f"{streams} x 1,024 unique" in verdict.reason and f"KV pool {pool:,}" in verdict.reason
    else:
        assert verdict is None
        assert (warned is not None) == (streams * 2048 > pool)


def test_sharing_makes_room() -> None:
    """What would be over capacity with prompts of its own fits where most of them is shared."""
    limits, cell = ServerLimits(kv_tokens=20_000, block_tokens=16), decode(8192, 4)
    assert foregone(MATRIX, cell, limits) is not None
    assert foregone(Matrix(output_tokens=1024, unique_percent=25.0), cell, limits) is None


def test_an_unknown_pool_forbids_and_warns_of_nothing() -> None:
    """What is not known is not zero: the cell runs."""
    assert foregone(MATRIX, decode(131_072, 128), ServerLimits()) is None
    assert preemption_warning(MATRIX, decode(131_072, 128), ServerLimits()) is None


@pytest.mark.parametrize(
    ("kind", "context", "fits"),
    [
        ("prefill", 8191, True),
        ("prefill", 8192, False),
        ("decode", 8191, True),
        ("decode", 8192, False),
        ("decode", 9000, False),
        ("burst", 8191, True),
        ("burst", 8192, False),
        ("mixed", 8192, False),
    ],
)
def test_over_limit_is_a_prompt_without_room_for_an_answer(kind: str, context: int, fits: bool) -> None:
    """A prompt fits where at least one token of answer does."""
    cell = CellPlan(kind, context, 1)  # type: ignore[arg-type]
    verdict = foregone(MATRIX, cell, ServerLimits(context_tokens=8192))
    assert (verdict is None) == fits
    if verdict is not None:
        assert verdict.status is CellStatus.over_limit and "8,192" in verdict.reason


def test_streams_beyond_the_running_limit_are_over_limit() -> None:
    """A held cell must run all at once, in a mixed cell the long prompt beside its streams; a burst may queue."""
    limits = ServerLimits(running=8)
    assert foregone(MATRIX, decode(1024, 8), limits) is None
    verdict = foregone(MATRIX, decode(1024, 9), limits)
    assert verdict is not None and verdict.status is CellStatus.over_limit and "at most 8" in verdict.reason
    assert foregone(MATRIX, CellPlan("burst", 1024, 64), limits) is None
    mixed = Matrix(mixed=MixedRule(arrival_tokens=4 * KI))
    assert foregone(mixed, CellPlan("mixed", 4 * KI, 7), limits) is None
    eight = foregone(mixed, CellPlan("mixed", 4 * KI, 8), limits)
    assert eight is not None and "8 streams and the long prompt" in eight.reason


def test_only_decode_cells_are_warned_of_preemption() -> None:
    """A burst queues by nature."""
    assert preemption_warning(MATRIX, CellPlan("burst", 1024, 64), ServerLimits(kv_tokens=70_000)) is None


@given(streams=st.integers(1, 128), prefill_s=st.floats(0.001, 100), percent=st.floats(0, 100))
def test_the_deadline_is_the_serial_prefill_of_what_is_unique_with_a_margin(
    streams: int, prefill_s: float, percent: float
) -> None:
    """C prefills of the unique share and the stable time, half as much again, and thirty seconds."""
    matrix = Matrix(unique_percent=percent)
    cell = decode(8192, streams)
    expected = expected_ready_ns(matrix, cell, prefill_s * 1e9)
    unique = 1 - matrix.shared_tokens(8192) / 8192
    assert expected == pytest.approx(streams * prefill_s * 1e9 * unique + 3 * S, rel=1e-9, abs=2)
    deadline = ready_deadline_ns(matrix, cell, prefill_s * 1e9)
    assert deadline == pytest.approx(1.5 * expected + READY_MARGIN_NS, rel=1e-9, abs=2)
    assert deadline > expected


def test_a_given_deadline_overrides_and_an_unknown_prefill_is_patient() -> None:
    """`--ready-timeout` is taken as it is; without it and without a measured prefill an hour is."""
    assert ready_deadline_ns(Matrix(ready_timeout_ns=7 * S), decode(8192, 4), 1e9) == 7 * S
    assert ready_deadline_ns(Matrix(ready_timeout_ns=7 * S), decode(8192, 4), None) == 7 * S
    assert ready_deadline_ns(Matrix(), decode(8192, 4), None) == 3600 * S
