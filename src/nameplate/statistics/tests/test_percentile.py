"""Percentiles: linear, rank p(n-1), infinity included."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.percentile import percentile, summarise, supported

VALUES = st.lists(st.integers(0, 10**13), min_size=1, max_size=80)
PERCENTS = st.sampled_from([1.0, 50.0, 90.0, 95.0, 99.0, 99.9])


def test_the_rank_lies_between_closest_ranks() -> None:
    """p95 of 1..64 has rank 59.85: 85% of the way from the 60th to the 61st value."""
    assert percentile(range(1, 65), 95.0) == 60.85


def test_a_single_value_is_every_percentile() -> None:
    """With n = 1 every rank is 0."""
    assert percentile([7], 99.9) == 7


@given(VALUES)
def test_the_median_is_the_standard_librarys(values: list[int]) -> None:
    """p50 equals the middle value, or the mean of the middle two."""
    assert percentile(sorted(values), 50.0) == pytest.approx(statistics.median(values))


@given(VALUES, PERCENTS)
def test_a_percentile_lies_within_the_values(values: list[int], percent: float) -> None:
    """No percentile leaves the range of its values, and a larger value never lowers it."""
    ordered = sorted(values)
    found = percentile(ordered, percent)
    assert ordered[0] <= found <= ordered[-1]
    assert percentile(sorted([*ordered[:-1], ordered[-1] + 1000]), percent) >= found


def test_a_percentile_that_equals_a_limit_compares_equal() -> None:
    """Exactly ten seconds between two neighbours is exactly ten seconds, not a hair below."""
    limit = 10_000_000_000
    # Rank 59.85: a + 0.85 (b - a) = limit, with a and b whole nanoseconds on both sides of it.
    ordered = [1] * 59 + [limit - 17, limit - 17, limit + 3] + [limit * 2] * 2
    assert percentile(ordered[:60] + [limit + 3] + [limit * 2] * 3, 95.0) == float(limit)


@pytest.mark.parametrize(("infinite", "expected"), [(3, 5.0), (4, math.inf), (5, math.inf)])
def test_an_infinite_neighbour_makes_it_infinite(infinite: int, expected: float) -> None:
    """p95 of 64 looks at the 60th and 61st value: three infinite ones are beyond it, four are not."""
    assert percentile([5.0] * (64 - infinite) + [math.inf] * infinite, 95.0) == expected


def test_a_whole_rank_has_one_neighbour() -> None:
    """p95 of 21 values is the 20th itself; an infinite 21st weighs nothing."""
    assert percentile([1.0] * 20 + [math.inf], 95.0) == 1.0


@pytest.mark.parametrize(
    ("n", "percent", "expected"),
    [
        (20, 95.0, True),
        (19, 95.0, False),
        (100, 99.0, True),
        (99, 99.0, False),
        (1000, 99.9, True),
        (0, 50.0, False),
    ],
)
def test_support_needs_the_tail_to_hold_one_value(n: int, percent: float, expected: bool) -> None:
    """A percentile is supported from n = 1/(1-p) on, exactly."""
    assert supported(n, percent) is expected


def test_no_values_have_no_percentile() -> None:
    """An empty sample is an error here, and all null in a summary."""
    with pytest.raises(ValueError):
        percentile([], 50.0)
    empty = summarise([])
    assert (empty.n, empty.mean, empty.p50) == (0, None, None)


def test_censored_members_count_and_hide_what_they_reach() -> None:
    """Four of ten requests that never got a token: the median stands, p90, mean and maximum are null."""
    found = summarise([1, 2, 3, 4, 5, 6], censored=4)
    assert (found.n, found.min, found.p50, found.p90, found.max, found.mean) == (
        10,
        1.0,
        5.5,
        None,
        None,
        None,
    )
    assert "p95" in found.unsupported
