"""Prefill from its samples: rates, their spread, when they are enough, and the server's own view beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.matrix import PrefillRule
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.measure.prefill import Prefill, PrefillSample, enough, samples_of, spread_of
from nameplate.measure.result import evaluate
from nameplate.measure.tests.trials import S, evidence, ok_row
from nameplate.verdict.cell import CellStatus

RULE = PrefillRule(least=3, most=8, spread=0.03, budget_ns=60 * S)


def rows(*ttfts_ns: int, cached: int | None = 0) -> list[RequestRow]:
    """Return requests alone, one after the other, of a thousand tokens and a single token of answer each."""
    found, now_ns = [], S
    for index, ttft_ns in enumerate(ttfts_ns):
        phase = "opening" if index == 0 else "steady"
        row = ok_row(index, now_ns, phase=phase, ttft_ns=ttft_ns, tokens=1, cached_tokens=cached)  # type: ignore[arg-type]
        found.append(row)
        now_ns += ttft_ns
    return found


def measured(given_rows: list[RequestRow], **more: object) -> Prefill:
    """Evaluate a prefill trial."""
    plan = TrialPlan("t", "prefill", Shape(1000, 1), 1, 9, 0, until=RULE)
    result = evaluate(evidence(given_rows, plan=plan, **more))  # type: ignore[arg-type]
    assert result.speed is not None and result.speed.prefill is not None
    assert (result.speed.verdict.status is CellStatus.valid) == (result.speed.prefill.n > 0)
    return result.speed.prefill


def test_rates_are_computed_tokens_by_ttft() -> None:
    """(prompt - cached) / TTFT of each sample; the median with its range, n and spread."""
    prefill = measured(rows(S // 2, S, S // 4, cached=200))
    assert prefill.n == 3 and prefill.median == 1600.0
    assert (prefill.low, prefill.high) == (800.0, 3200.0) and prefill.spread == pytest.approx(1.5)
    assert prefill.ttft_median_ns == S // 2


def test_cached_tokens_that_are_not_told_are_taken_as_none() -> None:
    """A server that tells nothing of its cache gives the rate of the whole prompt."""
    assert measured(rows(S, S, cached=None)).median == 1000.0


def test_requests_that_failed_or_were_cut_are_no_samples() -> None:
    """What was cut when there were enough samples is no sample; a prompt that was not counted is a nominal one."""
    given_rows = rows(S, S, S, S)
    given_rows[2] = structs.replace(given_rows[2], prompt_tokens=None)
    given_rows[3] = structs.replace(given_rows[3], outcome="cancelled")
    assert measured(given_rows).n == 3
    found = samples_of(given_rows, 8192)
    assert [sample.ttft_ns for sample in found] == [S, S, S]
    assert [sample.nominal for sample in found] == [False, False, True] and found[2].prompt_tokens == 8192
    warm = structs.replace(given_rows[0], phase="warmup")
    assert samples_of([warm], 8192) == ()


def test_without_a_sample_there_is_no_number() -> None:
    """A trial of which nothing ended has nulls, and no valid status."""
    only = [structs.replace(rows(S)[0], outcome="cancelled")]
    prefill = measured(only)
    assert prefill.n == 0 and prefill.median is None and prefill.ttft_median_ns is None


def idle(t_ns: int, prompt: int, cached: int, seconds: float, count: int) -> ServerSample:
    """Return the counters of an idle server."""
    return ServerSample(
        t_ns=t_ns,
        running=0,
        waiting=0,
        prompt_tokens_total=prompt,
        cached_tokens_total=cached,
        prefill_s=(seconds, count),
    )


def test_the_servers_own_prefill_is_a_check_beside_ours() -> None:
    """Its mean prefill time and computed tokens between two idle moments stand beside ours with the difference."""
    prefill = measured(
        rows(S, S, cached=100),
        idle_before=idle(0, 5000, 300, 2.0, 4),
        idle_after=idle(9 * S, 7000, 500, 3.6, 6),
    )
    assert prefill.server_s == pytest.approx(0.8)
    assert prefill.server_rate == pytest.approx(900 / 0.8)
    assert prefill.server_difference == pytest.approx(0.25)
    assert (prefill.computed_tokens, prefill.counted_tokens) == (1800, 1800)
    alone = measured(rows(S, S, cached=None))
    assert (alone.server_s, alone.computed_tokens, alone.counted_tokens) == (None, None, None)


def samples(*ttfts_ns: int, cached: int = 0) -> list[PrefillSample]:
    """Return samples of a thousand tokens."""
    return [PrefillSample(1000, cached, ttft_ns) for ttft_ns in ttfts_ns]


def test_enough_is_little_spread_or_a_bound() -> None:
    """Three alike, eight of any kind, or used-up time with at least one."""
    assert not enough(samples(S, S), RULE, 0)
    assert enough(samples(S, S, S), RULE, 0)
    assert not enough(samples(S, S, 2 * S), RULE, 59 * S)
    assert enough(samples(*[S, 2 * S] * 4), RULE, 0)
    assert enough(samples(S), RULE, 60 * S)
    assert not enough([], RULE, 10**15)


@given(st.lists(st.integers(1, 100 * S), min_size=1, max_size=12), st.integers(0, 1000))
def test_any_samples_can_be_judged(ttfts_ns: list[int], cached: int) -> None:
    """Whatever a server says of its cache, judging never fails, and its bound holds."""
    found = samples(*ttfts_ns, cached=cached)
    spread = spread_of([sample.rate for sample in found])
    assert spread is None or spread >= 0
    assert enough(found, RULE, 0) or len(found) < RULE.most


@pytest.mark.parametrize("cached", [1000, 1200])
def test_a_wholly_cached_prompt_has_no_spread(cached: int) -> None:
    """Where a server claims that all was cached, or more than there was, no rate can be told from another."""
    assert spread_of([sample.rate for sample in samples(S, S, S, cached=cached)]) is None
    assert spread_of([1.0]) is None and spread_of([]) is None
