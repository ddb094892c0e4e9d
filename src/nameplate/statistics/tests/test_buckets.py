"""Quantiles from buckets: the truth is always inside, and what is not known stays open."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.buckets import Counts, Interval, counts_of, quantile_interval, without
from nameplate.statistics.percentile import percentile

EDGES = st.lists(st.integers(1, 200), min_size=1, max_size=12, unique=True).map(sorted)
VALUES = st.lists(st.integers(0, 250), min_size=1, max_size=60)
PERCENTS = st.sampled_from([0.0, 10.0, 50.0, 95.0, 99.0, 99.9, 100.0])


def histogram(values: list[int], edges: list[int]) -> Counts:
    """Count as a metrics page does: at or below each edge."""
    ordered = sorted(values)
    return counts_of([(float(edge), bisect_right(ordered, edge)) for edge in edges], len(values))


def holds(interval: Interval, value: float) -> bool:
    return interval.low <= value and (interval.high is None or value <= interval.high)


@given(VALUES, EDGES, PERCENTS)
def test_the_true_quantile_is_within_the_interval(
    values: list[int], edges: list[int], percent: float
) -> None:
    """Whatever the values and edges are, the percentile of the values lies in the interval of their buckets."""
    assert holds(quantile_interval(histogram(values, edges), percent), percentile(sorted(values), percent))


@given(VALUES, st.lists(st.tuples(st.integers(0, 250), st.integers(0, 50)), max_size=20), EDGES, PERCENTS)
def test_values_that_are_taken_out_do_not_move_the_truth_out(
    values: list[int], others: list[tuple[int, int]], edges: list[int], percent: float
) -> None:
    """Others in the same histogram, known only by an upper bound of each, widen the interval and never shift it."""
    together = histogram([*values, *(value for value, _ in others)], edges)
    left = without(together, [float(value + slack) for value, slack in others])
    assert left.n == len(values)
    assert holds(quantile_interval(left, percent), percentile(sorted(values), percent))


def test_an_interval_ends_at_the_bucket_of_each_neighbour() -> None:
    """A rank between two values reaches from the bucket of the lower to that of the upper."""
    counts = counts_of([(1.0, 2), (5.0, 3), (10.0, 4)], 4)
    assert quantile_interval(counts, 0) == Interval(0.0, 1.0)
    assert quantile_interval(counts, 50) == Interval(0.0, 5.0)
    assert quantile_interval(counts, 100) == Interval(5.0, 10.0)


def test_above_the_last_edge_nothing_bounds_a_quantile() -> None:
    """The bucket that reaches to infinity has no upper end."""
    counts = counts_of([(1.0, 1), (2.0, 1)], 4)
    assert quantile_interval(counts, 99) == Interval(2.0, None)
    assert quantile_interval(counts_of([], 3), 50) == Interval(0.0, None)


def test_others_below_an_edge_leave_its_count_exact() -> None:
    """Two that are surely below two are taken out of the count there, and of no other for certain."""
    left = without(counts_of([(1.0, 2), (2.0, 6)], 10), [1.5, 1.9])
    assert (left.n, left.least, left.most) == (8, (0, 4), (2, 4))


def test_more_than_there_are_cannot_be_taken_out() -> None:
    """Nor has nothing a quantile."""
    with pytest.raises(ValueError, match="cannot be taken out"):
        without(counts_of([(1.0, 1)], 1), [0.5, 0.5])
    with pytest.raises(ValueError, match="no values"):
        quantile_interval(counts_of([(1.0, 0)], 0), 50)
