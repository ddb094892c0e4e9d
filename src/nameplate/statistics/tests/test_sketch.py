"""The sketch: bounded memory, a stated error, and the same result whatever the order."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.statistics.censoring import censored_percentile
from nameplate.statistics.percentile import percentile, summarise
from nameplate.statistics.sketch import RELATIVE_ERROR, Sketch, SketchState

VALUES = st.lists(st.one_of(st.integers(0, 10**15), st.floats(1e-9, 1e18)), min_size=1, max_size=80)
PERCENTS = st.sampled_from([0.0, 1.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0])


def sketch_of(
    values: list[float], waited: list[float] | None = None, never: int = 0, missing: int = 0
) -> Sketch:
    made = Sketch()
    for value in values:
        made.add(value)
    for value in waited or []:
        made.add_open(value)
    made.add_never(never)
    made.add_missing(missing)
    return made


def near(found: float | None, exact: float | None) -> bool:
    if found is None or exact is None:
        return found is exact
    return abs(found - exact) <= RELATIVE_ERROR * exact


@given(VALUES, PERCENTS)
def test_percentiles_are_within_one_percent(values: list[float], percent: float) -> None:
    """Any percentile is within 1% of that of the values themselves, by the same definition."""
    found = sketch_of(values).percentile(percent)
    assert near(found.completed_only, percentile(sorted(values), percent))
    assert found.best == found.worst == found.completed_only


@settings(max_examples=60)
@given(VALUES, VALUES, st.integers(0, 5), st.integers(0, 5), PERCENTS)
def test_bounds_are_within_one_percent_of_the_exact_ones(
    values: list[float], waited: list[float], never: int, missing: int, percent: float
) -> None:
    """Best and worst case agree with those computed from all values, infinite ones included."""
    found = sketch_of(values, waited, never, missing).percentile(percent)
    exact = censored_percentile(values, percent, waited=waited, never=never, missing=missing)
    assert near(found.completed_only, exact.completed_only)
    assert near(found.best, exact.best)
    assert near(found.worst, exact.worst)
    assert (found.n, found.completed, found.open) == (exact.n, exact.completed, exact.open)


@given(VALUES, VALUES)
def test_parts_merge_into_the_whole(left: list[float], right: list[float]) -> None:
    """Merging two sketches gives the buckets of the sketch of all values; only the sum is rounded in another order."""
    merged, whole = sketch_of(left, right, 1, 2), sketch_of(left + right, right + left, 1, 2)
    merged.merge(sketch_of(right, left))
    mine, theirs = merged.state(), whole.state()
    assert mine.total == pytest.approx(theirs.total, rel=1e-12)
    assert msgspec.structs.replace(mine, total=0.0) == msgspec.structs.replace(theirs, total=0.0)


@given(VALUES)
def test_a_sketch_survives_json(values: list[float]) -> None:
    """Written as JSON and read back, it is the same sketch and goes on counting."""
    made = sketch_of(values, [5.0], 1, 1)
    state = msgspec.json.decode(msgspec.json.encode(made.state()), type=SketchState)
    again = Sketch.of(state)
    assert again.state() == made.state()
    again.add(7)
    made.add(7)
    assert again.state() == made.state()


def test_a_sketch_merges_into_itself() -> None:
    """Merging a sketch with itself doubles every count."""
    made = sketch_of([1.0, 2.0], [3.0], 1, 1)
    made.merge(made)
    assert (made.n, made.completed) == (10, 4)


def test_memory_is_bounded() -> None:
    """Values over the whole range fill at most 3,226 buckets, whatever their number."""
    draws = random.Random(1)
    made = Sketch()
    for _ in range(60_000):
        made.add(10 ** draws.uniform(-9, 19))
    assert len(made.state().known) <= 3_226


def test_the_summary_is_that_of_the_values() -> None:
    """n, mean and extremes are exact, percentiles within 1%, censored members at infinity."""
    draws = random.Random(2)
    values = [draws.lognormvariate(20, 1) for _ in range(2_000)]
    found, exact = sketch_of(values, never=30).summarise(), summarise(values, censored=30)
    assert (found.n, found.censored, found.min, found.max) == (exact.n, 30, exact.min, exact.max)
    for name in ("p50", "p90", "p95", "p99"):
        assert near(getattr(found, name), getattr(exact, name))
    assert sketch_of(values).summarise().mean == pytest.approx(math.fsum(values) / 2_000)
    assert Sketch().summarise() == summarise([])


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e20])
def test_impossible_values_are_refused(value: float) -> None:
    """Negative, undefined and infinite values are an error, and count nothing."""
    made = Sketch()
    with pytest.raises(ValueError):
        made.add(value)
    with pytest.raises(ValueError):
        made.add_open(value)
    assert made.n == 0


def test_sketches_of_different_error_do_not_merge() -> None:
    """Buckets of another width are refused."""
    with pytest.raises(ValueError):
        Sketch().merge(Sketch(0.02))


@pytest.mark.parametrize(
    "state",
    [
        SketchState(relative_error=0.01, known=((10**9, 1),), smallest=1.0, largest=1.0),
        SketchState(relative_error=0.01, known=((1, 0),), smallest=1.0, largest=1.0),
        SketchState(relative_error=0.01, known=((1, 1),)),
        SketchState(relative_error=0.01, zeros=-1),
        SketchState(relative_error=1e-9),
    ],
)
def test_a_state_that_no_sketch_wrote_is_refused(state: SketchState) -> None:
    """Impossible buckets, counts and errors are refused on reading."""
    with pytest.raises(ValueError):
        Sketch.of(state)
