"""The stairs of first-token times: whether a shared prompt was prefilled once or again for every request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.exchange.inference_bench.sharing import MOST_UNIQUE, cold_prefills, stairs_of, weigh
from nameplate.exchange.inference_bench.tests.making import cell, read


def streams(times: list[float]) -> list[dict[str, Any]]:
    return [{"ttft": value} for value in times]


@settings(deadline=None, max_examples=60)
@given(
    unique=st.floats(0.05, MOST_UNIQUE),
    cold=st.floats(0.1, 500),
    count=st.integers(4, 64),
    batch=st.integers(1, 3),
    noise=st.lists(st.floats(0.9, 1.1), min_size=64, max_size=64),
)
def test_shared_prompts_do_not_fire_and_whole_ones_do(
    unique: float, cold: float, count: int, batch: int, noise: list[float]
) -> None:
    """Stairs of unique parts stay below the threshold and stairs of whole prompts above, however many come at once."""

    def stairs(step: float) -> tuple[float, ...]:
        times, now = [], 0.0
        for index in range(count):
            if index % batch == 0:
                now += batch * step * noise[index]
            times.append(now)
        return tuple(times)

    # A batch that is not full lengthens the rise a request by at most this.
    slack = 1 + batch / (count - 1)
    shared = weigh(8192, unique, cold, [stairs(unique * cold / slack)])
    whole = weigh(8192, unique, cold, [stairs(cold * slack)])
    assert shared is not None and whole is not None
    assert not shared.unshared
    assert whole.unshared


def test_the_tools_first_request_gives_the_cold_prefill() -> None:
    """The warm-up of one stream, less its standing still and its own first token, is the prefill of a whole prompt."""
    one = cell(65536, 1, warmup_duration=38.5, ttft_p50=0.5)
    assert cold_prefills(read(one))[65536] == pytest.approx(35.0)


def test_a_cold_first_token_is_the_prefill_itself() -> None:
    """Where nothing was warmed, the first token of the one stream took the whole prefill."""
    one = cell(65536, 1, warmup_duration=24.0, ttft_p50=20.0)
    assert cold_prefills(read(one))[65536] == pytest.approx(20.0)


def test_the_files_own_prefill_wins() -> None:
    """A prefill entry of the context is a better estimate than a warm-up."""
    top = {"prefill": {"65536": {"ttft_seconds": 30.0, "tok_per_sec": 2184, "samples": 3}}}
    assert cold_prefills(read(cell(65536, 1), top=top))[65536] == 30.0


def test_another_context_serves_in_proportion() -> None:
    """Without a cell of one stream at a context, the nearest other one tells by its tokens."""
    one = cell(32768, 1, warmup_duration=20.5, ttft_p50=0.5)
    whole = [34.0 * n for n in range(1, 5)]
    many = cell(65536, 4, request_samples=streams(whole))
    (stairs,) = stairs_of(read(one, many, unique_context_percent=25.0))
    assert stairs.cold_s == pytest.approx(34.0) and stairs.unshared


@pytest.mark.parametrize("percent", [None, 0.0, 100.0, 90.0])
def test_without_a_claim_of_sharing_there_is_nothing_to_test(percent: float | None) -> None:
    """A file that shares nothing, everything, or does not say is not tested."""
    many = cell(8192, 4, request_samples=streams([1.0, 2.0, 3.0, 4.0]))
    document = read(cell(8192, 1), many, unique_context_percent=percent)
    assert stairs_of(document) == ()


def test_too_few_streams_tell_nothing() -> None:
    """One rise is an accident."""
    pair = cell(8192, 2, request_samples=streams([1.0, 9.0]))
    assert stairs_of(read(cell(8192, 1), pair, unique_context_percent=25.0)) == ()
