"""Level shifts: found where they are, and not in noise, trends or outliers more often than stated."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.change_point import MOST_SHIFTS, level_shift, level_shifts
from nameplate.statistics.tests.noise import first_order

TRIALS = 120


def alarm_rates(phi: float, n: int, rise: float = 0.0, step: float = 0.0) -> tuple[float, float]:
    """Return how often one shift, and any of several, is found in noise with a rise and a step in the middle."""
    draws = random.Random(f"shift {phi} {n} {rise} {step}")
    one = several = 0
    for _ in range(TRIALS):
        noise = first_order(n, phi, draws)
        values = [rise * i / n + (step if i >= n // 2 else 0.0) + value for i, value in enumerate(noise)]
        one += level_shift(values).found
        several += bool(level_shifts(values).shifts)
    return one / TRIALS, several / TRIALS


def test_the_statistic_is_that_of_mann_and_whitney() -> None:
    """Pettitt's K is the largest |n1 n2 - 2 U| over all splits, U as SciPy gives it."""
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    values = first_order(30, 0.0, random.Random(1))
    splits = [
        abs(t * (30 - t) - 2 * stats.mannwhitneyu(values[:t], values[t:]).statistic) for t in range(5, 26)
    ]
    assert level_shift(values).statistic == pytest.approx(max(splits))


def test_a_known_step_is_dated_and_sized() -> None:
    """Sixty values at 10, then forty at 14: the shift is at the 61st, with both medians."""
    draws = random.Random(2)
    found = level_shift([draws.gauss(10 if i < 60 else 14, 0.5) for i in range(100)])
    assert found.found
    assert found.candidate.index == 60
    assert found.candidate.before == pytest.approx(10, abs=0.3)
    assert found.candidate.after == pytest.approx(14, abs=0.3)
    assert found.candidate.relative_change == pytest.approx(0.4, abs=0.05)


def test_several_levels_are_dated() -> None:
    """Up, further up, and back: three shifts, each within two windows of its place."""
    draws = random.Random(3)
    levels = [10.0] * 40 + [13.0] * 30 + [16.0] * 40 + [10.0] * 40
    found = level_shifts([draws.gauss(level, 0.7) for level in levels]).shifts
    assert [shift.index for shift in found] == pytest.approx([40, 70, 110], abs=2)
    assert all(shift.p_value < 0.05 for shift in found)


def test_a_heavy_tail_is_no_shift() -> None:
    """Noise whose variance is infinite alarms no more often than other noise, and hides no clear step."""
    draws = random.Random(4)
    alarms = hits = 0
    for _ in range(100):
        noise = [100 + draws.choice((-1, 1)) * draws.paretovariate(1.1) for _ in range(96)]
        alarms += bool(level_shifts(noise).shifts)
        hits += level_shift(
            [value + (10 if i >= 50 else 0) for i, value in enumerate(noise)], material_relative=0.02
        ).found
    assert alarms <= 5
    assert hits >= 90


@pytest.mark.parametrize(("phi", "most"), [(0.0, 0.05), (0.5, 0.08), (0.9, 0.12)])
def test_noise_alarms_no_more_than_stated(phi: float, most: float) -> None:
    """In 96 windows of first-order noise a shift is found no more often than stated, up to phi = 0.9."""
    one, several = alarm_rates(phi, 96)
    assert one <= most
    assert several <= most


@pytest.mark.parametrize(("rise", "most"), [(1.0, 0.1), (2.0, 0.15), (5.0, 0.05), (20.0, 0.0)])
def test_a_pure_trend_is_no_shift(rise: float, most: float) -> None:
    """A straight rise, in deviations of its noise, is taken for steps in at most one series of seven."""
    one, several = alarm_rates(0.0, 96, rise=rise)
    assert one <= most
    assert several <= most


def test_a_step_of_two_deviations_is_found() -> None:
    """Power: a step of two standard deviations in the middle of 96 windows."""
    assert alarm_rates(0.0, 96, step=2.0)[0] >= 0.85
    assert alarm_rates(0.5, 96, step=3.0)[0] >= 0.6


def test_an_immaterial_step_is_not_found() -> None:
    """A step by 1% is significant in quiet data and not told at a material size of 5%."""
    draws = random.Random(5)
    found = level_shift([draws.gauss(100 if i < 50 else 101, 0.1) for i in range(100)])
    assert found.significant and found.beats_line and not found.found
    assert level_shift(
        [draws.gauss(100 if i < 50 else 101, 0.1) for i in range(100)], material_relative=0.005
    ).found


def test_a_constant_series_has_no_shift() -> None:
    """All values equal: p = 1 and no shift."""
    assert level_shift([4] * 30).p_value == 1.0
    assert level_shifts([4] * 30).shifts == ()


def test_a_step_without_noise_is_found() -> None:
    """Two constant levels are a shift at the exact place, ties and all."""
    assert level_shift([0] * 12 + [5] * 20).candidate.index == 12
    found = level_shifts([0] * 12 + [5] * 20).shifts
    assert [(shift.index, shift.before, shift.after) for shift in found] == [(12, 0.0, 5.0)]


def test_long_series_are_thinned_and_indices_keep_their_meaning() -> None:
    """A step at the 20,000th of 30,000 values is dated within two runs of neighbours."""
    draws = random.Random(6)
    found = level_shifts([draws.gauss(10 if i < 20_000 else 12, 1) for i in range(30_000)])
    assert found.run == 30
    assert [shift.index for shift in found.shifts] == pytest.approx([20_000], abs=60)


@given(st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=60))
def test_shifts_stand_in_order_and_apart(values: list[float]) -> None:
    """Whatever the values, shifts ascend, leave at least five values a level, and are not too many."""
    places = [0, *(shift.index for shift in level_shifts(values).shifts), len(values)]
    assert all(after - before >= 5 for before, after in pairwise(places)) or len(places) == 2
    assert len(places) <= MOST_SHIFTS + 2


@pytest.mark.parametrize("values", [[1.0] * 9, [1.0] * 12 + [math.nan]])
def test_impossible_series_are_refused(values: list[float]) -> None:
    """Too few and unfinite values are an error."""
    with pytest.raises(ValueError):
        level_shift(values)
    with pytest.raises(ValueError):
        level_shifts(values)
