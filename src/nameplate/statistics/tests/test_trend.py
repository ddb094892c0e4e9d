"""Trends: scores as published, error rates as measured, and nothing material out of nothing."""

from __future__ import annotations

import math
import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.tests.noise import first_order, queue_lengths
from nameplate.statistics.trend import MOST_POINTS, Alternative, no_upward_trend, score_and_variance, trend

TRIALS = 80


def alarm_rate(phi: float, n: int, rise: float = 0.0, alternative: Alternative = "two-sided") -> float:
    """Return how often 5% is undercut by first-order noise with a rise, in standard deviations over the span."""
    draws = random.Random(f"trend {phi} {n} {rise}")
    alarms = 0
    for _ in range(TRIALS):
        values = [rise * i / n + value for i, value in enumerate(first_order(n, phi, draws))]
        alarms += trend(values, alternative=alternative).significant
    return alarms / TRIALS


@given(st.lists(st.integers(0, 20), min_size=4, max_size=40))
def test_the_score_is_the_count_of_pairs(values: list[int]) -> None:
    """Kendall's score is the number of rising pairs less the falling ones, ties counting nothing."""
    pairs = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    assert score_and_variance(values)[0] == pairs


@given(st.lists(st.integers(-20, 20), min_size=4, max_size=30))
def test_a_mirrored_series_has_the_mirrored_trend(values: list[int]) -> None:
    """Values with their sign turned give the same test with its sign turned."""
    found, mirrored = trend(values), trend([-value for value in values])
    assert (found.s, found.z) == (-mirrored.s, -mirrored.z)
    assert found.p_value == mirrored.p_value
    assert found.slope == pytest.approx(-mirrored.slope)
    assert found.slope_low == pytest.approx(-mirrored.slope_high)


@pytest.mark.parametrize("seed", range(4))
def test_tau_and_slopes_agree_with_scipy(seed: int) -> None:
    """Kendall's tau and the Theil-Sen slope with its interval are SciPy's, with uneven times."""
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    draws = random.Random(seed)
    times = sorted(draws.sample(range(1_000), 60))
    values = [0.01 * time + draws.gauss(0, 1) for time in times]
    found = trend(values, times, correction="none")
    slope, _, low, high = stats.theilslopes(values, times, alpha=0.95)
    assert found.tau == pytest.approx(stats.kendalltau(times, values).statistic)
    assert (found.slope, found.slope_low, found.slope_high) == pytest.approx((slope, low, high))


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_hamed_and_rao_agree_with_pymannkendall(phi: float) -> None:
    """The classical and the modified test give the same variance, z and p as pymannkendall, ties included."""
    reference: Any = pytest.importorskip("pymannkendall", reason="pymannkendall is not installed")
    values = [round(value, 1) for value in first_order(80, phi, random.Random(f"reference {phi}"))]
    classical = reference.original_test(values)
    found = trend(values, correction="none")
    assert (found.s, found.variance, found.z, found.p_value) == pytest.approx(
        (classical.s, classical.var_s, classical.z, classical.p)
    )
    modified = reference.hamed_rao_modification_test(values)
    found = trend(values, correction="hamed-rao")
    if modified.var_s > 0:
        assert (found.variance * found.factor, found.z, found.p_value) == pytest.approx(
            (modified.var_s, modified.z, modified.p)
        )


def test_a_published_value_without_any_reference() -> None:
    """Ten values with one inversion: S = 43, variance 125, z = 42/sqrt(125)."""
    found = trend([1, 2, 3, 4, 5, 6, 7, 8, 10, 9], correction="none")
    assert (found.s, found.variance) == (43, 125.0)
    assert found.z == pytest.approx(42 / math.sqrt(125))


@pytest.mark.parametrize(("phi", "most"), [(0.0, 0.08), (0.5, 0.10), (0.9, 0.12)])
def test_the_false_alarm_rate_is_near_the_stated_one(phi: float, most: float) -> None:
    """Of nominally 5%, 96 windows of noise without trend alarm about that often, even at phi = 0.9."""
    assert alarm_rate(phi, 96) <= most


def test_what_the_correction_is_for() -> None:
    """At phi = 0.9 the classical test is wrong more often than right, and Hamed & Rao's alone a third of the time."""
    draws = random.Random(11)
    series = [first_order(96, 0.9, draws) for _ in range(50)]
    assert sum(trend(values, correction="none").significant for values in series) >= 25
    assert sum(trend(values, correction="hamed-rao").significant for values in series) >= 10
    assert sum(trend(values).significant for values in series) <= 8


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.97), (0.5, 0.8)])
def test_a_rise_of_two_deviations_is_found(phi: float, least: float) -> None:
    """A rise by two standard deviations over 96 windows is found nearly always at phi 0 and mostly at 0.5."""
    assert alarm_rate(phi, 96, rise=2.0, alternative="up") >= least


def test_strong_dependence_hides_a_trend() -> None:
    """At phi = 0.9 the same rise is found less than half the time, and the sample says that it is worth few points."""
    assert 0.1 <= alarm_rate(0.9, 96, rise=2.0, alternative="up") <= 0.5
    found = trend(first_order(96, 0.9, random.Random(5)))
    assert not found.supported and found.effective < 15


def test_significant_is_not_material() -> None:
    """A rise by 1% over the span is significant in quiet data and yet no drift at a material size of 5%."""
    draws = random.Random(3)
    found = trend([100 + i / 200 + draws.gauss(0, 0.05) for i in range(200)])
    assert found.significant and not found.drifting
    assert found.relative_change == pytest.approx(0.01, abs=0.002)
    assert trend([100 + i / 10 for i in range(200)]).drifting


def test_a_line_that_starts_at_zero_has_no_relative_size() -> None:
    """Where the fitted start is not above zero the absolute size alone decides."""
    found = trend([i - 5 for i in range(50)], material_absolute=10.0)
    assert found.relative_change is None and found.drifting
    assert not trend([i - 5 for i in range(50)], material_absolute=100.0).drifting


def test_a_constant_series_has_no_trend() -> None:
    """All values equal: p = 1, no slope, and a queue that is bounded."""
    found = trend([7] * 30)
    assert (found.p_value, found.slope, found.factor) == (1.0, 0.0, 1.0)
    assert no_upward_trend([0] * 30).conclusion == "bounded"


def test_long_series_are_thinned_and_say_so() -> None:
    """28,800 seconds of samples become medians of runs; slope, times and span keep their meaning."""
    draws = random.Random(4)
    values = [10 + i / 28_800 + draws.gauss(0, 0.2) for i in range(28_800)]
    found = trend(values)
    assert found.n == 28_800 and found.points <= MOST_POINTS and found.run == 29
    assert found.slope == pytest.approx(1 / 28_800, rel=0.05)
    assert found.change == pytest.approx(1.0, rel=0.05)


def conclusions(load: float, runs: int = 40) -> list[str]:
    """Return what is concluded from queues of this load, 150 samples each, 20 service times apart."""
    draws = random.Random(f"queue {load}")
    # The first third of the samples is the warm-up of a queue that starts empty.
    return [
        no_upward_trend(queue_lengths(225, load, draws)[75:], material_absolute=10.0).conclusion
        for _ in range(runs)
    ]


def test_a_queue_below_capacity_is_not_called_rising() -> None:
    """At 70% load no material rise is claimed, and most runs show the queue bounded."""
    found = conclusions(0.7)
    assert found.count("rising") == 0
    assert found.count("bounded") >= 36


def test_a_queue_near_capacity_is_left_undecided_rather_than_called_rising() -> None:
    """At 90% load a queue swings by more than ten requests: sometimes undecided, hardly ever rising."""
    assert conclusions(0.9).count("rising") <= 3


def test_a_queue_above_capacity_rises() -> None:
    """At 110% load, 300 requests more over the span, nearly every queue is found rising, and none bounded."""
    found = conclusions(1.1)
    assert found.count("rising") >= 36
    assert found.count("bounded") == 0


def test_a_straight_rise_is_rising() -> None:
    """Without any noise a rise is certain, and a fall is bounded."""
    assert no_upward_trend(list(range(40)), material_absolute=5.0).conclusion == "rising"
    assert no_upward_trend(list(range(40, 0, -1)), material_absolute=5.0).conclusion == "bounded"


@pytest.mark.parametrize(
    ("values", "times"),
    [([1, 2, 3], None), ([1, 2, 3, math.nan], None), ([1, 2, 3, 4], [0, 1, 1, 2]), ([1, 2, 3, 4], [0, 1, 2])],
)
def test_impossible_series_are_refused(values: list[float], times: list[float] | None) -> None:
    """Too few or unfinite values and times that do not ascend are an error."""
    with pytest.raises(ValueError):
        trend(values, times)
