"""What a cell's requests hold of the KV pool, and what of a ramp's prompts came from the cache, as the server tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix
from nameplate.engines.state import ServerSample
from nameplate.measure.cell import measure_cell
from nameplate.measure.kv_claim import kv_prompt_tokens
from nameplate.measure.ramp_cache import RampCache, ramp_cache
from nameplate.measure.tests.held_cells import BEGIN, MS, Part, S, cell_evidence, every, hold_plan, sample
from nameplate.measure.tests.trials import identity
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verdict.cell_plan import kv_need


@given(
    prompt=st.integers(1, 200_000),
    percent=st.sampled_from([100.0, 75.0, 25.0, 0.0]),
    streams=st.integers(1, 128),
    block=st.one_of(st.none(), st.integers(1, 512)),
)
def test_plan_and_measurement_do_the_same_arithmetic(
    prompt: int, percent: float, streams: int, block: int | None
) -> None:
    """What a plan says that prompts need is what the measurement says that they claim."""
    matrix = Matrix(unique_percent=percent)
    need = kv_need(matrix, CellPlan("decode", prompt, streams), ServerLimits(block_tokens=block))
    assert kv_prompt_tokens(prompt, matrix.shared_tokens(prompt), streams, block) == need.prompts


def test_a_prompt_shorter_than_the_shared_part_claims_nothing_negative() -> None:
    """A server that read less than the shared part leaves no negative unique part."""
    assert kv_prompt_tokens(100, 320, 4, 16) == 320


def known(**more: object) -> dict[str, object]:
    """Return an identity with a pool."""
    facts = identity(engine="vllm", model="m", kv_tokens=10_000, block_size_tokens=16, **more)  # type: ignore[arg-type]
    return {"identity_before": facts, "identity_after": facts}


def test_a_claim_is_prompts_and_what_was_produced() -> None:
    """Two prompts of 1,008 tokens in blocks, and what each had produced so far; held is use times pool."""
    parts = [Part(stream, every(10 * MS)) for stream in range(2)]
    looks = [
        sample(BEGIN + n * S, kv_usage_mean=0.3 + 0.02 * n, kv_usage_max=0.4 + 0.02 * n) for n in range(3)
    ]
    given_evidence = cell_evidence(parts, samples=looks, **known())  # type: ignore[arg-type]
    kv = measure_cell(given_evidence, given_evidence.held).kv
    assert kv is not None and (kv.pool_tokens, kv.prompt_tokens) == (10_000, 2 * 1008)
    # 800, 900 and 1,000 tokens of each stream's output at the three looks.
    assert kv.claim_tokens == pytest.approx(2 * (1000 + 900), abs=2 * 16 + 4)
    assert kv.held_tokens == pytest.approx(3200) and kv.held_share_max == pytest.approx(0.44)
    assert kv.ratio == pytest.approx(3200 / kv.claim_tokens)


def test_what_a_server_does_not_tell_is_null() -> None:
    """Without a pool or a gauge there is a claim and no ratio."""
    parts = [Part(stream, every(10 * MS)) for stream in range(2)]
    given_evidence = cell_evidence(parts)
    kv = measure_cell(given_evidence, given_evidence.held).kv
    assert kv is not None and kv.claim_tokens > 2016
    assert (kv.pool_tokens, kv.held_tokens, kv.held_share_max, kv.ratio) == (None, None, None, None)


def counter(t_ns: int, cached: int | None) -> ServerSample:
    """Return a look that tells how many prompt tokens came from the cache so far."""
    return sample(t_ns, cached_tokens_total=cached)


def ramp(
    *looks: ServerSample,
    before: ServerSample | None = None,
    parts: list[Part] | None = None,
    warm: bool = False,
) -> TrialEvidence:
    """Return two streams whose first outputs came by 2.5 s."""
    two = [Part(0, every(10 * MS, 2 * S)), Part(1, every(10 * MS, 2 * S + S // 2))]
    return cell_evidence(
        parts if parts is not None else two,
        plan=hold_plan(2, warm=warm),
        samples=list(looks),
        idle_before=before or counter(S // 2, 100),
    )


def test_the_counter_tells_of_the_ramp() -> None:
    """From the idle server to the first look after every first output the counter grew by what the ramp found."""
    seen = ramp_cache(ramp(counter(2 * S, 400), counter(3 * S, 1900), counter(4 * S, 9999)))
    assert seen == RampCache(1800, 2) and seen is not None and seen.mean == 900


def test_a_failed_look_is_skipped() -> None:
    """A scrape that failed tells nothing, and the next one is taken."""
    failed = structs.replace(counter(3 * S, None), error="timed out")
    assert ramp_cache(ramp(failed, counter(4 * S, 500))) == RampCache(400, 2)


def test_nothing_is_told_where_it_cannot_be() -> None:
    """Without an idle reading, with a stream that never produced, one that started again before the look, a counter
    that fell, or none at all, nothing is said."""
    look = counter(3 * S, 1900)
    assert ramp_cache(structs.replace(ramp(look), idle_before=None)) is None
    assert ramp_cache(ramp(look, parts=[Part(0, every(10 * MS, 2 * S)), Part(1, [])])) is None
    again = Part(0, every(10 * MS, 3 * S), index=2, phase="steady", sent_ns=2 * S + 600 * MS)
    first = [Part(0, [2 * S, 2 * S + 500 * MS], outcome="ok"), Part(1, every(10 * MS, 2 * S)), again]
    assert ramp_cache(ramp(look, parts=first)) is None
    assert ramp_cache(ramp(counter(3 * S, 50))) is None
    assert ramp_cache(ramp(counter(3 * S, None))) is None
    assert ramp_cache(ramp(counter(2 * S, 1900))) is None


def test_warming_requests_are_taken_off() -> None:
    """What the warming requests found in the cache, by their usage, is none of the ramp's; unknown, nothing is said."""
    warming = [
        Part(n, [S], 1, index=n, phase="warmup", outcome="ok", end_ns=S, cached_tokens=64) for n in (0, 1)
    ]
    streams = [Part(n, every(10 * MS, 2 * S), index=2 + n) for n in (0, 1)]
    look = counter(3 * S, 100 + 128 + 1984)
    assert ramp_cache(ramp(look, parts=[*warming, *streams], warm=True)) == RampCache(1984, 2)
    unknown = [Part(0, [S], 1, index=0, phase="warmup", outcome="ok", cached_tokens=None), *streams]
    assert ramp_cache(ramp(look, parts=unknown, warm=True)) is None
