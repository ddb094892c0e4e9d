"""Exact binomial bounds, held against known tables and against plain summation."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.statistics.binomial import extra_sample, log_tail, upper_bound
from nameplate.statistics.censoring import Bounds, percentile_bounds


def exact_tail(k: int, n: int, p: Fraction) -> Fraction:
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)), Fraction(0))


@given(st.integers(1, 60), st.data())
def test_the_tail_is_the_plain_sum(n: int, data: st.DataObject) -> None:
    """The log-space tail equals exact summation in rationals."""
    k = data.draw(st.integers(0, n))
    p = Fraction(data.draw(st.integers(1, 999)), 1000)
    assert log_tail(k, n, float(p)) == pytest.approx(math.log(exact_tail(k, n, p)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("over", "n", "bound"),
    [(0, 10, 0.2589), (1, 10, 0.3942), (3, 10, 0.6066), (0, 59, 0.0495), (0, 100, 0.0295), (5, 100, 0.1023)],
)
def test_bounds_match_published_tables(over: int, n: int, bound: float) -> None:
    """One-sided 95% Clopper-Pearson bounds as tables print them."""
    assert upper_bound(over, n) == pytest.approx(bound, abs=6e-5)


def test_sample_sizes_match_the_published_series() -> None:
    """The classical 95/95 sample sizes: 59, 93, 124, 153, 181, 208."""
    further = [extra_sample(over, over, 0.05).without_miss or 0 for over in range(6)]
    assert [over + more for over, more in enumerate(further)] == [59, 93, 124, 153, 181, 208]


def test_everything_over_bounds_nothing() -> None:
    """All over the limit, or nothing seen: the share may be one."""
    assert upper_bound(5, 5) == 1.0
    assert upper_bound(0, 0) == 1.0


def test_large_counts_stay_exact() -> None:
    """A million requests with 5% over: the bound is near the normal approximation."""
    n, over = 1_000_000, 50_000
    assert upper_bound(over, n) == pytest.approx(0.05 + 1.6449 * math.sqrt(0.05 * 0.95 / n), abs=2e-6)


@settings(max_examples=50)
@given(st.integers(1, 400), st.data())
def test_the_bound_is_where_so_few_have_probability_five_percent(n: int, data: st.DataObject) -> None:
    """At the bound P(X <= k) is 0.05, and one more over the limit raises it."""
    over = data.draw(st.integers(0, n - 1))
    bound = upper_bound(over, n)
    assert math.exp(log_tail(over, n, bound)) == pytest.approx(0.05, rel=1e-6)
    assert over / n < bound < upper_bound(over + 1, n)


@pytest.mark.parametrize(("over", "n"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(over: int, n: int) -> None:
    """Counts that cannot be are an error."""
    with pytest.raises(ValueError):
        upper_bound(over, n)


def test_open_values_bound_a_percentile_on_both_sides() -> None:
    """Waited-so-far at best, infinite at worst; a request that never started is anything."""
    values = [Bounds.exactly(10.0)] * 9 + [Bounds.at_least(4.0)]
    assert percentile_bounds(values, 95.0) == Bounds(10.0, math.inf)
    assert percentile_bounds([], 95.0) is None
    assert percentile_bounds([], 95.0, missing=1) == Bounds(0.0, math.inf)
    assert percentile_bounds([Bounds.never()], 50.0) == Bounds(math.inf, math.inf)
