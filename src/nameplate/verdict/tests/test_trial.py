"""A trial's verdict: strict limits, best and worst cases, the order of statuses."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.slo import Slo
from nameplate.statistics.censoring import Bounds
from nameplate.verdict.gate import Gate, GateResult
from nameplate.verdict.trial import (
    PhaseValues,
    SloResult,
    describe,
    failure_certain,
    judge_slo,
    judge_trial,
)

S = 1_000_000_000
SLO = Slo.parse("ttft p95 < 10s")
ERRORS = Slo.parse("error_rate < 10%")


def judged(*values: Bounds, missing: int = 0, slo: Slo = SLO) -> SloResult:
    return judge_slo(slo, PhaseValues((), values, missing))


def exactly(*seconds: float) -> tuple[Bounds, ...]:
    return tuple(Bounds.exactly(round(value * S)) for value in seconds)


def test_a_p95_of_exactly_ten_seconds_does_not_pass() -> None:
    """Strict: 10,000 ms is not below ten seconds, and one nanosecond less is."""
    assert judged(*exactly(*[10.0] * 64)).status == "fail"
    assert judged(*[Bounds.exactly(10 * S - 1)] * 64).status == "pass"


def test_an_interpolated_p95_of_exactly_ten_seconds_does_not_pass() -> None:
    """The same where the percentile lies between two neighbours."""
    low, high = 10 * S - 17, 10 * S + 3
    values = [Bounds.exactly(v) for v in [1] * 59 + [low, high] + [20 * S] * 3]
    result = judged(*values)
    assert result.whole.best == 10 * S and result.status == "fail"


def test_open_values_are_inconclusive_where_they_decide() -> None:
    """Four of 64 still waiting: at best they pass, at worst they do not."""
    values = (*exactly(*[1.0] * 60), *[Bounds.at_least(2 * S)] * 4)
    result = judged(*values)
    assert result.status == "inconclusive"
    assert (result.whole.worst, result.whole.worst_infinite) == (None, True)
    assert result.whole.bounds == Bounds(S + 0.85 * S, math.inf)


def test_waiting_beyond_the_limit_is_a_certain_fail() -> None:
    """Unfinished requests fail a trial once what they waited is enough."""
    assert judged(*exactly(*[1.0] * 59), *[Bounds.at_least(11 * S)] * 5).status == "fail"


def test_requests_that_never_started_can_be_anything() -> None:
    """Planned requests without a row keep a trial from passing."""
    assert judged(*exactly(*[1.0] * 60), missing=4).status == "inconclusive"
    assert judged(missing=0).status == "inconclusive"


def test_phases_stand_beside_the_whole() -> None:
    """The whole sample decides; opening and steady are shown with their own n and support."""
    result = judge_slo(SLO, PhaseValues(exactly(*[12.0] * 4), exactly(*[1.0] * 60)))
    assert (result.opening.n, result.steady.n, result.whole.n) == (4, 60, 64)
    assert result.opening.over == 4 and not result.opening.supported
    assert result.steady.over == 0 and result.steady.supported


@pytest.mark.parametrize(
    ("failed", "open_", "expected"), [(0, 0, "pass"), (6, 0, "pass"), (7, 0, "fail"), (6, 1, "inconclusive")]
)
def test_an_error_rate_is_strict_too(failed: int, open_: int, expected: str) -> None:
    """6 of 64 is below 10%, 7 is not, and an unfinished request may still be the seventh."""
    values = (
        *[Bounds.exactly(1.0)] * failed,
        *[Bounds(0.0, 1.0)] * open_,
        *[Bounds.exactly(0.0)] * (64 - failed - open_),
    )
    assert judged(*values, slo=ERRORS).status == expected


def gate(gate_: Gate, status: str) -> GateResult:
    return GateResult(gate_, status, "found")  # type: ignore[arg-type]


def test_the_order_is_invalid_fail_inconclusive_pass() -> None:
    """Each earlier status hides the later ones; an unverified gate hides nothing."""
    passing, failing = judged(*exactly(*[1.0] * 64)), judged(*exactly(*[11.0] * 64))
    open_ = judged(*exactly(1.0), missing=63)
    invalid, load = gate(Gate.identity, "invalid"), gate(Gate.reset, "fail")
    assert judge_trial((invalid, load), [failing]).status == "invalid"
    assert judge_trial((load,), [open_]).status == "fail"
    assert judge_trial((), [open_, failing]).status == "fail"
    assert judge_trial((), [passing, open_]).status == "inconclusive"
    assert judge_trial((gate(Gate.all_ended, "inconclusive"),), [passing]).status == "inconclusive"
    verdict = judge_trial((gate(Gate.cached_tokens, "unverified"),), [passing])
    assert verdict.status == "pass" and verdict.reasons == (describe(passing),)


def test_reasons_say_what_decided() -> None:
    """A failing trial names the gate or the SLO, with the value in milliseconds."""
    verdict = judge_trial((), [judged(*exactly(*[10.0] * 64))])
    assert verdict.reasons == ("ttft p95 < 10 s: fail, n 64, 10000.000 ms",)


def test_infinity_survives_json() -> None:
    """An infinite worst case is null with its flag, and comes back as infinite."""
    result = judged(*[Bounds.never()] * 64)
    raw = msgspec.json.encode(result)
    assert b"Infinity" not in raw and b"inf" not in raw.replace(b"_infinite", b"")
    again = msgspec.json.decode(raw, type=SloResult)
    assert again == result and again.whole.bounds == Bounds(math.inf, math.inf)


def test_failure_is_certain_only_when_no_rest_can_save_it() -> None:
    """Four of 64 beyond the limit decide a p95 between the 60th and 61st value; three never do."""
    assert not failure_certain([SLO], 64, {"ttft": [60 * S] * 3})
    assert failure_certain([SLO], 64, {"ttft": [200 * S] * 4})
    assert failure_certain([SLO], 64, {"ttft": [11 * S] * 5})
    assert failure_certain([SLO], 64, {}, load_failures=1)
    assert not failure_certain([SLO, ERRORS], 64, {}, load_failures=6)
    assert failure_certain([SLO, ERRORS], 64, {}, load_failures=7)


@given(st.lists(st.integers(0, 20 * S), min_size=1, max_size=64), st.integers(0, 10))
def test_certain_failure_never_contradicts_the_verdict(values: list[int], more: int) -> None:
    """When failure was certain at some point, no continuation of the trial passes."""
    total = len(values) + more
    if failure_certain([SLO], total, {"ttft": values}):
        rest = exactly(*[0.0] * more)
        assert judged(*[Bounds.exactly(v) for v in values], *rest).status == "fail"
