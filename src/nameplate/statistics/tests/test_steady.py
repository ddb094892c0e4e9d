"""Where a warm-up ends, and whether the thirds of what follows agree."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.statistics.steady import drift_between_thirds, warm_up_end
from nameplate.statistics.tests.noise import first_order

VALUES = st.lists(st.floats(-1e6, 1e6), max_size=150)


def plain_mser(values: list[float]) -> list[float]:
    """Return MSER-5's statistic for each allowed cut, from its definition."""
    means = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) - 4, 5)]
    found = []
    for cut in range(len(means) // 2 + 1):
        rest = means[cut:]
        mean = sum(rest) / len(rest)
        found.append(sum((value - mean) ** 2 for value in rest) / len(rest) ** 2)
    return found


def test_the_cut_is_the_smallest_error() -> None:
    """The cut and its statistic are those of the plain definition."""
    draws = random.Random(1)
    values = [draws.gauss(10, 1) + 20 * math.exp(-i / 15) for i in range(200)]
    found, plain = warm_up_end(values), plain_mser(values)
    assert found.values == 5 * plain.index(min(plain))
    assert found.statistic == pytest.approx(min(plain))


def test_a_warm_up_ends_where_the_transient_has_died() -> None:
    """A transient of time constant 15 and twenty deviations is left out, and no more than twice what it takes."""
    draws = random.Random(2)
    ends = [
        warm_up_end([draws.gauss(10, 1) + 20 * math.exp(-i / 15) for i in range(400)]).values
        for _ in range(40)
    ]
    assert all(end >= 30 for end in ends)
    assert sorted(ends)[35] <= 120


def test_a_steady_series_loses_little() -> None:
    """Without a transient the median loss is below a tenth of the series."""
    draws = random.Random(3)
    found = [warm_up_end(first_order(400, 0.5, draws)) for _ in range(40)]
    assert sorted(end.values for end in found)[20] <= 40
    assert sum(not end.ended for end in found) <= 4


def test_a_series_still_on_its_way_has_no_end() -> None:
    """A straight rise has its smallest error at the last cut allowed: no end seen, the bound returned."""
    found = warm_up_end([float(i) for i in range(200)])
    assert not found.ended and found.values == found.latest == 100


@pytest.mark.parametrize("n", [0, 3, 49])
def test_a_short_series_has_no_end(n: int) -> None:
    """Fewer than ten batches tell nothing: no statistic, no end."""
    found = warm_up_end([1.0] * n)
    assert (found.ended, found.statistic) == (False, None)
    assert found.values <= n / 2


@given(VALUES)
def test_the_cut_is_bounded(values: list[float]) -> None:
    """Whatever the values, at most half of them are left out."""
    found = warm_up_end(values)
    assert 0 <= found.values <= found.latest <= len(values) / 2


def test_a_constant_series_is_steady_at_once() -> None:
    """All values equal: nothing is left out."""
    assert warm_up_end([5.0] * 100).values == 0


def test_the_thirds_are_compared_as_kruskal_and_wallis_do() -> None:
    """Without correction the statistic is SciPy's, ties included, and the p-value that of its F distribution."""
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    draws = random.Random(4)
    values = [draws.randint(0, 12) for _ in range(50)]
    found = drift_between_thirds(values)
    statistic = stats.kruskal(values[:16], values[16:34], values[34:]).statistic
    assert found.statistic * found.factor == pytest.approx(statistic)
    assert found.p_value == pytest.approx(stats.f.sf(found.statistic / 2, 2, 50 / found.factor - 3))


@pytest.mark.parametrize(("phi", "most"), [(0.0, 0.09), (0.5, 0.1), (0.9, 0.12)])
def test_the_false_alarm_rate_of_thirds_is_as_stated(phi: float, most: float) -> None:
    """Of nominally 5% in 150 requests: kept at phi 0 and 0.5, and up to twice it at 0.9."""
    draws = random.Random(f"thirds {phi}")
    alarms = sum(drift_between_thirds(first_order(150, phi, draws)).significant for _ in range(300))
    assert alarms / 300 <= most


def test_a_drift_between_thirds_is_found_and_sized() -> None:
    """Latencies that grow by half over a trial drift; the sizes are the thirds' medians."""
    draws = random.Random(5)
    found = drift_between_thirds([draws.lognormvariate(0, 0.3) * (1 + i / 300) for i in range(150)])
    assert found.drifting
    assert found.sizes[0] < found.sizes[1] < found.sizes[2]
    assert found.relative_spread == pytest.approx(1.42 / 1.08 - 1, abs=0.15)


def test_a_small_difference_is_not_material() -> None:
    """A significant difference by 2% is no drift at a material size of 10%."""
    draws = random.Random(6)
    found = drift_between_thirds([draws.gauss(100, 0.5) + (i >= 100) * 2 for i in range(150)])
    assert found.significant and not found.drifting


def test_constant_thirds_agree() -> None:
    """All values equal: p = 1."""
    found = drift_between_thirds([3] * 15)
    assert (found.p_value, found.drifting) == (1.0, False)


@pytest.mark.parametrize("values", [[1.0] * 14, [1.0] * 15 + [math.inf]])
def test_impossible_series_are_refused(values: list[float]) -> None:
    """Too few and unfinite values are an error."""
    with pytest.raises(ValueError):
        drift_between_thirds(values)
