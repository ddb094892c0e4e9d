"""The stationary bootstrap: reproducible, right where the truth is known, honest where it is not."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from nameplate.statistics.bootstrap import MOST_VALUES, block_length, bootstrap
from nameplate.statistics.draws import Draws
from nameplate.statistics.tests.noise import first_order


def miss_rate(phi: float, n: int, trials: int, statistic: float | str = "mean") -> float:
    """Return how often the 95% interval of a mean or median of zero leaves out zero."""
    draws = random.Random(f"bootstrap {phi} {n} {statistic}")
    missed = 0
    for seed in range(trials):
        values = first_order(n, phi, draws)
        kind = "mean" if statistic == "mean" else 50.0
        found = bootstrap(values, kind, resamples=79, seed=seed)  # type: ignore[arg-type]
        missed += not found.low <= 0 <= found.high
    return missed / trials


def test_the_same_seed_gives_the_same_interval() -> None:
    """A result is a pure function of values and seed."""
    values = first_order(80, 0.5, random.Random(1))
    assert bootstrap(values, 95.0, seed=3) == bootstrap(values, 95.0, seed=3)
    assert bootstrap(values, seed=3) != bootstrap(values, seed=4)


def test_splitmix_gives_the_published_numbers() -> None:
    """The first outputs for seed 1234567 are those of the reference implementation."""
    draws = Draws(1234567)
    assert [draws.bits() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_draws_have_their_means() -> None:
    """Uniform numbers, places and run lengths have the means they are asked for."""
    draws = Draws(7)
    assert statistics.fmean(draws.uniform() for _ in range(5_000)) == pytest.approx(0.5, abs=0.02)
    assert statistics.fmean(draws.below(11) for _ in range(5_000)) == pytest.approx(5, abs=0.2)
    assert statistics.fmean(draws.run_length(6.0) for _ in range(5_000)) == pytest.approx(6, rel=0.05)
    assert draws.run_length(1.0) == 1


def test_without_dependence_it_is_the_textbook_interval() -> None:
    """For independent values the interval of the mean is about 1.96 standard errors on each side."""
    values = first_order(200, 0.0, random.Random(2))
    found = bootstrap(values, length=1)
    error = statistics.stdev(values) / math.sqrt(200)
    assert found.low == pytest.approx(found.estimate - 1.96 * error, abs=0.25 * error)
    assert found.high == pytest.approx(found.estimate + 1.96 * error, abs=0.25 * error)
    assert found.supported


def test_block_lengths_agree_with_a_reference() -> None:
    """A dependent series wants blocks of 37.0, as the package `arch` 8.0 says; constant and tiny ones want 1."""
    draws = random.Random("10000.9")
    values, value = [], 0.0
    for _ in range(1_000):
        value = 0.9 * value + draws.gauss(0, 1)
        values.append(value)
    assert block_length(values) == pytest.approx(36.950522, rel=1e-6)
    assert block_length([1.0] * 50) == 1.0
    assert block_length([1.0, 2.0]) == 1.0


def test_the_interval_of_a_mean_misses_as_stated() -> None:
    """Of nominally 5%: somewhat more without dependence and at phi = 0.5, but far more at 0.9 with 60 values."""
    assert miss_rate(0.0, 60, 60) <= 0.15
    assert miss_rate(0.5, 60, 60) <= 0.25
    assert 0.15 <= miss_rate(0.9, 60, 60) <= 0.6


def test_the_interval_of_a_median_misses_as_stated() -> None:
    """A median's interval holds about as well as a mean's."""
    assert miss_rate(0.5, 60, 40, "median") <= 0.25


def test_few_blocks_are_not_supported() -> None:
    """A series that is one slow wave holds too few blocks, and says so."""
    values = [math.sin(i / 30) for i in range(100)]
    assert not bootstrap(values, resamples=19).supported


def test_a_constant_series_has_no_width() -> None:
    """Values that never change give an interval of one point."""
    found = bootstrap([3.0] * 20, 95.0, resamples=19)
    assert (found.low, found.estimate, found.high) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [0.0] * (MOST_VALUES + 1)])
def test_impossible_series_are_refused(values: list[float]) -> None:
    """Too few, too many and unfinite values are an error."""
    with pytest.raises(ValueError):
        bootstrap(values)
