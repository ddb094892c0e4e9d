"""The verdict of a soak: exact counts against limits, validity before gates."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.slo import Slo
from nameplate.statistics.censoring import Bounds
from nameplate.verdict.drift import Basis, Drift, SeriesPoints, judge_drift
from nameplate.verdict.soak import Overrun, SloCount, SoakFacts, counted, judge_count, judge_soak, merged
from nameplate.verdict.trial import PhaseValues, judge_slo

SLO = Slo.parse("ttft p95 < 10s")


def facts(**more: object) -> SoakFacts:
    """Return facts of a sound soak of a hundred ok requests, with fields replaced."""
    sound = SoakFacts(
        sent=100,
        failed=0,
        open=0,
        failed_by={},
        broken={},
        slos=(),
        drift=drift([2e9] * 20),
        send_lag_p99_ns=1e6,
        lateness_budget_ns=5_000_000,
        configuration_changes=(),
        unbalanced=(),
        damage=(),
        planned_s=3600,
        submitted_s=3600,
    )
    return structs.replace(sound, **more)


def drift(values: list[float], share: float | None = None, *, basis: Basis | None = None) -> Drift:
    starts = tuple(300.0 * at for at in range(len(values)))
    series = SeriesPoints(
        series="ttft_p50", stretch="all", times_s=starts, starts_s=starts, values=tuple(values), basis=basis
    )
    return judge_drift([series], material_share=share)


_VALUES = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(["known", "open", "never"])), min_size=1, max_size=60
)


@given(values=_VALUES, cut=st.integers(0, 60), percent=st.sampled_from([50.0, 90.0, 95.0, 99.0]))
def test_counts_judge_as_all_values_do(values: list[tuple[int, str]], cut: int, percent: float) -> None:
    """Counting against the limit gives the status of the percentile over all values, in parts as at once."""
    slo = Slo("ttft", percent, limit_ns=10)
    bounds = [
        Bounds.exactly(v) if kind == "known" else Bounds(v, math.inf) if kind == "open" else Bounds.never()
        for v, kind in values
    ]
    parts = []
    for some in (bounds[:cut], bounds[cut:]):
        count = SloCount(slo=slo)
        for held in some:
            count = counted(count, held.best, held.worst)
        parts.append(count)
    judged = judge_count(merged(parts))
    expected = judge_slo(slo, PhaseValues((), tuple(bounds)))
    assert judged.status == expected.status
    assert (judged.n, judged.over, judged.over_at_worst) == (
        expected.whole.n,
        expected.whole.over,
        expected.whole.over_at_worst,
    )


def test_a_sound_soak_passes() -> None:
    """Without SLOs and limits the gates alone decide, and say so."""
    verdict = judge_soak(facts())
    assert verdict.status == "pass" and verdict.exit_code == 0 and "no SLO" in verdict.reasons[0]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"damage": ("a: b",)}, "invalid"),
        ({"unbalanced": ("segment",)}, "invalid"),
        ({"configuration_changes": ("model changed",)}, "invalid"),
        ({"send_lag_p99_ns": 9e6}, "invalid"),
        ({"broken": {"output_length": 1}}, "invalid"),
        ({"broken": {"input_length": 1}}, "pass"),
        ({"broken": {"input_length": 20}}, "invalid"),
        ({"failed": 1, "failed_by": {"bad_request": 1}}, "invalid"),
        ({"failed": 1, "failed_by": {"reset": 1}}, "fail"),
        ({"failed": 1, "failed_by": {"reset": 1}, "max_error_rate": 0.02}, "pass"),
        ({"failed": 3, "failed_by": {"reset": 3}, "max_error_rate": 0.02}, "fail"),
        ({"failed": 1, "failed_by": {"reset": 1}, "open": 5, "max_error_rate": 0.02}, "inconclusive"),
        ({"submitted_s": 1800}, "inconclusive"),
        ({"submitted_s": 1800, "overruns": (Overrun(segment="s", limit=64, at_s=1800.0),)}, "fail"),
        ({"slos": (SloCount(slo=SLO),)}, "inconclusive"),
        ({"open": 99}, "pass"),
        ({"open": 100}, "inconclusive"),
    ],
)
def test_gates(more: dict[str, object], status: str) -> None:
    """Each gate has its status: broken evidence is invalid, a failure fails without a limit, what is open may be."""
    verdict = judge_soak(facts(**more))
    assert (
        verdict.status == status
        and verdict.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3, "invalid": 4}[status]
    )
    assert verdict.reasons


def test_max_drift_fails_only_what_gets_worse() -> None:
    """A TTFT that rises by a half is over any limit, one that falls is not; without the limit both are only told."""
    up = drift([1e9 * (1 + 0.5 * at / 19) for at in range(20)])
    down = drift([1e9 * (1 - 0.3 * at / 19) for at in range(20)])
    assert judge_soak(facts(drift=up, max_drift=0.1)).status == "fail"
    assert judge_soak(facts(drift=down, max_drift=0.1)).status == "pass"
    assert judge_soak(facts(drift=up)).status == "pass"
    assert judge_soak(facts(drift=drift([1e9] * 5), max_drift=0.1)).status == "inconclusive"


def _rough(levels: list[tuple[int, float]]) -> list[float]:
    """Return a TTFT in nanoseconds that stands at each level (in s) for so many windows, with 2% of noise."""
    draws = random.Random(7)
    return [1e9 * level * (1 + 0.02 * draws.gauss(0, 1)) for count, level in levels for _ in range(count)]


def _max_drift(levels: list[tuple[int, float]], *, share: float = 0.1) -> tuple[str, str]:
    held = drift(_rough(levels), share)
    (gate,) = (g for g in judge_soak(facts(drift=held, max_drift=share)).gates if g.gate == "max_drift")
    return gate.status, gate.detail


def test_a_soak_that_was_bad_for_hours_and_recovered_fails() -> None:
    """Up for three hours of eight and down again is no net change, and worse than it began by any limit."""
    status, detail = _max_drift([(30, 1), (36, 5), (30, 1)])
    assert status == "fail" and "stepped" in detail and "limit 101.8 ms" in detail


def test_levels_are_held_against_the_first() -> None:
    """Better and then back again is never worse than it began; a rise within the limit in between is none either."""
    assert _max_drift([(30, 2), (36, 1), (30, 2)])[0] == "pass"
    assert _max_drift([(32, 2), (32, 1), (32, 2.05)])[0] == "pass"
    assert _max_drift([(32, 2), (32, 1), (32, 3)])[0] == "fail"


def test_a_bad_hour_that_no_test_finds_does_not_pass() -> None:
    """Five windows on end beyond the limit, which no trend or step shows, leave the limit undecided; four pass."""
    status, detail = _max_drift([(45, 1), (5, 5), (46, 1)])
    assert status == "inconclusive" and "5 windows on end, from 3.75 h on" in detail
    assert _max_drift([(45, 1), (4, 5), (47, 1)])[0] == "pass"


def test_the_limit_of_each_series_is_named() -> None:
    """A gate that holds says from which change on it would not, and whether that is a floor."""
    status, detail = _max_drift([(96, 1)])
    assert status == "pass" and "ttft_p50 100.3 ms" in detail
    status, detail = _max_drift([(96, 0.05)])
    assert status == "pass" and "ttft_p50 10 ms (its floor)" in detail
    held = judge_soak(facts(drift=drift([2e9] * 20, 0.1, basis="schedule"), max_drift=0.1))
    assert any("ttft_p50 (from schedule)" in gate.detail for gate in held.gates)


def test_merging_counts_of_different_slos_is_refused() -> None:
    """Counts against one limit say nothing of another."""
    with pytest.raises(ValueError, match="different"):
        merged([SloCount(slo=SLO), SloCount(slo=Slo.parse("ttft p95 < 9s"))])
