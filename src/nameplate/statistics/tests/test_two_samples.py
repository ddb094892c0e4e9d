"""Intervals of differences agree with scipy, and of many tests of nothing hardly any stands."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.two_samples import fisher, paired, standing, welch

stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
VALUES = st.lists(st.floats(-1e3, 1e3).map(lambda value: round(value, 3)), min_size=2, max_size=9)


@given(VALUES, VALUES)
def test_welch_is_scipys(first: list[float], second: list[float]) -> None:
    """Estimate, interval and chance are those of scipy's Welch test."""
    if max(len(set(first)), len(set(second))) < 2:
        return
    found = welch(first, second, 0.9)
    held = stats.ttest_ind(second, first, equal_var=False)
    bounds = held.confidence_interval(0.9)
    size = max(1e-3, abs(found.high - found.low))
    assert found.low == pytest.approx(bounds.low, abs=1e-6 * size)
    assert found.high == pytest.approx(bounds.high, abs=1e-6 * size)
    assert found.p_value == pytest.approx(held.pvalue, rel=1e-6, abs=1e-9)


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=2, max_size=9))
def test_pairs_are_scipys(pairs: list[tuple[int, int]]) -> None:
    """Pairs give scipy's test of related samples."""
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    if len({b - a for a, b in zip(first, second, strict=True)}) < 2:
        return
    found, held = paired(first, second), stats.ttest_rel(second, first)
    assert found.p_value == pytest.approx(held.pvalue, rel=1e-6, abs=1e-9)
    assert found.low == pytest.approx(held.confidence_interval(0.95).low, abs=1e-6)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_fisher_is_scipys(hits: int, misses: int, others: int, rest: int) -> None:
    """Two counts give scipy's exact chance."""
    found = fisher((hits, hits + misses), (others, others + rest))
    assert found == pytest.approx(stats.fisher_exact([[hits, misses], [others, rest]]).pvalue, rel=1e-6)


def test_samples_that_do_not_vary_are_their_difference() -> None:
    """Without any variance the interval is the estimate; equal samples differ by nothing."""
    found = welch([5.0, 5.0, 5.0], [5.25, 5.25, 5.25])
    assert (found.low, found.high, found.p_value) == (0.25, 0.25, 0.0)
    assert welch([0.1] * 3, [0.1] * 3).p_value == 1.0
    assert paired([1.0, 2.0], [1.0, 2.0]).p_value == 1.0


@pytest.mark.parametrize("values", [[1.0], [], [1.0, float("inf")]])
def test_what_has_no_interval_is_refused(values: list[float]) -> None:
    """One value, none, or one that is infinite has no interval."""
    with pytest.raises(ValueError):
        welch(values, [1.0, 2.0])


@given(st.lists(st.floats(0, 1), max_size=30))
def test_standing_is_scipys(p_values: list[float]) -> None:
    """The tests that stand are those whose adjusted chance is at most the bound."""
    if not p_values:
        assert standing(p_values) == ()
        return
    adjusted = stats.false_discovery_control(p_values)
    for stands, chance in zip(standing(p_values), adjusted, strict=True):
        if abs(chance - 0.05) > 1e-12:
            assert stands == (chance < 0.05)


def test_of_two_like_samples_few_are_told_apart() -> None:
    """Of 600 pairs of like samples of three at most 7% lie apart at 95%."""
    draws = Random(5)
    wrong = 0
    for _ in range(600):
        first, second = ([draws.gauss(0, 1) for _ in range(3)] for _ in range(2))
        wrong += welch(first, second).p_value < 0.05
    assert wrong < 0.07 * 600
