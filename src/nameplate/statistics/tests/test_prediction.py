"""The bound of a further value: against SciPy, and on data of known truth."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.binomial import upper_bound
from nameplate.statistics.prediction import further_bound


@given(
    st.lists(st.floats(1e-3, 1e12), min_size=2, max_size=40),
    st.sampled_from([0.5, 0.9, 0.95, 0.9875, 0.999]),
)
def test_it_is_the_textbook_interval_of_the_logarithms(values: list[float], confidence: float) -> None:
    """SciPy's Student quantile gives the same bound, wherever the values are spread at all."""
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    logs = [math.log(value) for value in values]
    k, mean = len(logs), sum(logs) / len(logs)
    spread = math.sqrt(sum((log - mean) ** 2 for log in logs) / (k - 1))
    if spread < 1e-9:
        return
    reach = mean + stats.t.ppf(confidence, k - 1) * spread * math.sqrt(1 + 1 / k)
    if reach < 690:
        assert math.log(further_bound(values, confidence)) == pytest.approx(reach, rel=1e-9, abs=1e-9)


def test_it_keeps_its_promise_on_lognormal_values() -> None:
    """A further value lies above a bound at 90% one time in ten; the count fails this test once in 10,000 runs."""
    rng, runs, above = Random(5), 2000, 0
    for _ in range(runs):
        values = [rng.lognormvariate(3, 0.4) for _ in range(6)]
        above += rng.lognormvariate(3, 0.4) >= further_bound(values, 0.9)
    assert upper_bound(above, runs, 1 - 5e-5) > 0.1 > 1 - upper_bound(runs - above, runs, 1 - 5e-5)


def test_what_does_not_vary_is_its_own_bound() -> None:
    """Equal values give themselves; too few, or an infinite one, give no bound; no value at all below zero."""
    assert further_bound([5.0, 5.0, 5.0], 0.99) == 5.0
    assert further_bound([5.0], 0.99) == math.inf
    assert further_bound([5.0, math.inf], 0.99) == math.inf
    with pytest.raises(ValueError):
        further_bound([5.0, 0.0], 0.99)
