"""The drift verdict on series of known truth."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from nameplate.statistics.tests.noise import first_order
from nameplate.verdict.drift import TERMS, Drift, Series, SeriesDrift, SeriesPoints, judge_drift, judge_series

# Level and noise of one window, as share of the level.
LEVELS: dict[Series, tuple[float, float]] = {
    "ttft_p50": (2e9, 0.05),
    "ttft_p95": (3e9, 0.10),
    "itl_p50": (40e6, 0.02),
    "output_tokens_per_s": (1200.0, 0.03),
    "outstanding": (62.0, 0.0),
    "waiting": (40.0, 0.10),
    "kv_floor": (0.8, 0.05),
    "client_memory": (200e6, 0.005),
}


def points(name: Series, values: list[float], *, window_s: float = 300.0) -> SeriesPoints:
    starts = tuple(window_s * at for at in range(len(values)))
    return SeriesPoints(
        series=name,
        stretch="all",
        times_s=tuple(start + window_s / 2 for start in starts),
        starts_s=starts,
        values=tuple(values),
    )


def noisy(name: Series, n: int, phi: float, draws: random.Random) -> list[float]:
    level, share = LEVELS[name]
    return [max(0.0, level * (1 + share * value)) for value in first_order(n, phi, draws)]


def soak(n: int, phi: float, draws: random.Random) -> Drift:
    return judge_drift([points(name, noisy(name, n, phi, draws)) for name in LEVELS])


def changed(
    name: Series, n: int, phi: float, draws: random.Random, *, ramp: float, step: float
) -> SeriesDrift:
    """Judge one series among the others, so that it is tested at their common level."""
    level = LEVELS[name][0]
    values = noisy(name, n, phi, draws)
    values = [
        v + level * (ramp * at / (n - 1) + (step if at >= n // 2 else 0)) for at, v in enumerate(values)
    ]
    return judge_series(points(name, values), alpha=0.05 / len(LEVELS))


@pytest.mark.parametrize(("n", "phi", "most"), [(96, 0.0, 1), (96, 0.5, 2), (12, 0.5, 2)])
def test_steady_soaks_are_seldom_called_anything_else(n: int, phi: float, most: int) -> None:
    """Of twenty steady soaks with eight series each hardly one drifts or steps, though neighbours are alike."""
    draws = random.Random(n)
    found = Counter(soak(n, phi, draws).conclusion for _ in range(20))
    assert found["drifting up"] + found["drifting down"] + found["stepped"] <= most
    assert not found["collapsed"]


def test_a_long_steady_soak_is_steady() -> None:
    """Eight hours of five-minute windows are enough to say so, not only to be silent."""
    draws = random.Random(3)
    assert Counter(soak(96, 0.0, draws).conclusion for _ in range(6))["steady"] >= 5


@pytest.mark.parametrize(("name", "sign"), [("ttft_p50", 1.0), ("output_tokens_per_s", -1.0)])
def test_a_fifth_in_eight_hours_is_found(name: Series, sign: float) -> None:
    """A drift and a step of 20% are found in 96 windows whose neighbours depend on each other, and told apart."""
    draws = random.Random(11)
    ramps = Counter(changed(name, 96, 0.5, draws, ramp=0.2 * sign, step=0).conclusion for _ in range(8))
    steps = [changed(name, 96, 0.5, draws, ramp=0, step=0.2 * sign) for _ in range(8)]
    assert ramps["drifting up" if sign > 0 else "drifting down"] >= 6
    stepped = [held for held in steps if held.conclusion == "stepped"]
    assert len(stepped) >= 6
    dates = [held.shifts[0].at_s / 300 for held in stepped]
    assert sum(abs(date - 48) <= 2 for date in dates) >= len(dates) - 1


def test_too_few_windows_are_undecided() -> None:
    """Nine windows have no trend, however they look."""
    held = judge_series(points("ttft_p50", [1e9 * at for at in range(1, 10)]))
    assert held.conclusion == "undecided" and held.p_value is None and "9 comparable windows" in held.detail


def test_what_is_significant_and_small_is_no_drift() -> None:
    """A change of two percent without noise is certain, and does not matter."""
    held = judge_series(points("itl_p50", [40e6 * (1 + 0.02 * at / 95) for at in range(96)]))
    assert held.p_value is not None and held.p_value < 1e-6 and held.conclusion == "steady"


def test_a_change_below_its_floor_is_no_drift() -> None:
    """A queue that grows from nothing to half a request has doubled, and nobody waits for it."""
    held = judge_series(points("waiting", [0.01 + 0.5 * at / 95 for at in range(96)]))
    assert held.conclusion == "steady" and held.material == TERMS["waiting"].floor


def test_a_collapse_is_dated_and_worst() -> None:
    """Output that falls to nothing for two windows is no step: the verdict says from when to when."""
    values = [1200.0] * 40 + [20.0, 0.0, 10.0] + [1190.0] * 20
    drift = judge_drift([points("output_tokens_per_s", values), points("ttft_p50", [2e9] * 63)])
    held = drift.series[0]
    assert drift.conclusion == held.conclusion == "collapsed"
    assert (
        held.collapse is not None and held.collapse.from_s == 40 * 300 and held.collapse.until_s == 43 * 300
    )
    assert held.collapse.before == 1200 and held.collapse.windows == 3


def test_a_short_soak_without_any_output_collapsed() -> None:
    """Two windows with requests and no token are a collapse even where nothing says what there should have been."""
    held = judge_series(points("output_tokens_per_s", [0.0, 0.0]))
    assert held.conclusion == "collapsed" and held.collapse is not None and held.collapse.before is None


def test_a_memory_leak_is_a_drift() -> None:
    """A client that grows by half in a night is drifting up, with the slope per hour."""
    values = [200e6 * (1 + 0.5 * at / 95) + (at % 3) * 1e5 for at in range(96)]
    held = judge_series(points("client_memory", values))
    assert held.conclusion == "drifting up" and held.slope_per_hour == pytest.approx(
        1e8 / (95 / 12), rel=0.02
    )


def test_series_that_nobody_could_read_are_named() -> None:
    """A server without metrics has no queue of its own: the verdict says what it did not see."""
    drift = judge_drift([points("ttft_p50", [2e9] * 20)])
    assert "waiting" in drift.absent and "kv_floor" in drift.absent and drift.conclusion == "steady"
    assert judge_drift([]).conclusion == "undecided"


def test_a_short_stretch_beside_a_long_one_decides_nothing() -> None:
    """A client that was killed after two windows leaves a series too short to judge; the next one has a long one."""
    short, long = points("client_memory", [2e8] * 2), points("client_memory", [2e8] * 30)
    drift = judge_drift([short, long])
    assert drift.conclusion == "steady" and [held.counts for held in drift.series] == [False, True]
    assert judge_drift([short]).conclusion == "undecided"


@pytest.mark.parametrize("name", list(TERMS))
def test_a_share_that_was_asked_for_is_every_series_own(name: Series) -> None:
    """Neither tails nor queues are given more room than was asked for; without a share each has its own."""
    high = points(name, [TERMS[name].floor * 1000] * 20)
    (held,) = judge_drift([high], material_share=0.03).series
    assert held.material_share == 0.03 and held.material == pytest.approx(30 * TERMS[name].floor)
    (held,) = judge_drift([high]).series
    assert held.material_share == TERMS[name].share


def test_the_worst_run_is_what_five_windows_reached() -> None:
    """One outlier is no run; of five on end the least bad counts, upwards or downwards, with its moment."""
    values = [100.0] * 10 + [150.0, 160.0, 140.0, 155.0, 170.0] + [900.0] + [100.0] * 10
    up = judge_series(points("outstanding", values))
    assert up.worst_run == 140.0 and up.worst_run_at_s == 10 * 300
    down = judge_series(points("output_tokens_per_s", [1000 - value for value in values]))
    assert down.worst_run == 860.0
