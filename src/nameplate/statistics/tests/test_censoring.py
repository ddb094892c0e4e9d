"""Percentiles with bounds for what never finished, beside those of the completed alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.censoring import Bounds, censored_percentile, percentile_bounds
from nameplate.statistics.percentile import percentile

VALUES = st.lists(st.floats(0, 1e9), max_size=30)


def test_the_completed_alone_can_mislead() -> None:
    """38 of 100 requests still wait after 900 s: the completed p95 of 10 s is not the p95."""
    found = censored_percentile([10.0] * 62, 95.0, waited=[900.0] * 38)
    assert (found.completed_only, found.best, found.worst) == (10.0, 900.0, None)
    assert found.misleading and found.uncertain


def test_open_values_beyond_the_percentile_change_nothing() -> None:
    """One open request of a hundred leaves the p50 known."""
    found = censored_percentile([10.0] * 99, 50.0, waited=[11.0])
    assert found.best == found.worst == found.completed_only == 10.0
    assert not found.misleading and not found.uncertain


def test_failed_ones_are_infinite_in_both_cases() -> None:
    """If failures reach the percentile there is no best case either."""
    found = censored_percentile([10.0] * 90, 95.0, never=10)
    assert (found.best, found.worst) == (None, None)
    assert found.misleading


def test_nothing_is_null() -> None:
    """Without members every number is null."""
    found = censored_percentile([], 95.0)
    assert (found.n, found.best, found.worst, found.completed_only) == (0, None, None, None)
    assert not found.misleading and not found.supported


@given(VALUES, VALUES, st.lists(st.floats(0, 1e9), min_size=30, max_size=30), st.sampled_from([50.0, 95.0]))
def test_the_truth_lies_between_the_cases(
    completed: list[float], waited: list[float], further: list[float], percent: float
) -> None:
    """However the open ones would have ended, the percentile lies between best and worst."""
    found = censored_percentile(completed, percent, waited=waited)
    if not found.n:
        return
    ended = [value + more for value, more in zip(waited, further, strict=False)]
    truth = percentile(sorted(completed + ended), percent)
    assert found.best is not None and found.best <= truth
    assert found.worst is None or truth <= found.worst


@given(VALUES, VALUES, st.integers(0, 3), st.integers(0, 3))
def test_it_agrees_with_bounds_value_by_value(
    completed: list[float], waited: list[float], never: int, missing: int
) -> None:
    """The counts' form and the form with one pair of bounds a value say the same."""
    values = [Bounds.exactly(v) for v in completed] + [Bounds.at_least(v) for v in waited]
    values += [Bounds.never()] * never
    bounds = percentile_bounds(values, 95.0, missing)
    found = censored_percentile(completed, 95.0, waited=waited, never=never, missing=missing)
    if bounds is None:
        assert found.n == 0
        return
    infinite = float("inf")
    assert bounds == (
        infinite if found.best is None else pytest.approx(found.best),
        infinite if found.worst is None else pytest.approx(found.worst),
    )
