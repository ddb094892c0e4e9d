"""Delivered arrivals: honest plans are held at the stated rate, known faults are found."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from nameplate.statistics.arrivals import (
    Process,
    count_of_arrivals,
    dispersion_of_arrivals,
    gaps_of_arrivals,
    gaps_off_plan,
    judge_arrivals,
)

MS = 1_000_000


def arrivals(draws: random.Random, rate: float, end: float, shape: float = 1.0) -> list[float]:
    """Return the times of a renewal process with gamma gaps, long under way when it is first looked at."""
    now = -50 / rate
    found = []
    while now < end:
        now += draws.gammavariate(shape, 1 / (rate * shape))
        if 0 <= now < end:
            found.append(now)
    return found


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


@pytest.mark.parametrize("shape", [1.0, 0.25, 4.0])
def test_honest_arrivals_fail_as_often_as_stated(shape: float) -> None:
    """Of nominally 5%, true Poisson and gamma arrivals fail each test about so often."""
    draws = random.Random(f"honest {shape}")
    process: Process = "poisson" if shape == 1 else "gamma"
    failed = {"count": 0, "gaps": 0, "dispersion": 0}
    for _ in range(80):
        found = judge_arrivals(
            arrivals(draws, 5.0, 60.0, shape), 0.0, 60.0, 5.0, process, shape=shape, alpha=0.05
        )
        for test in found.tests:
            failed[test.test] += not test.held
    assert all(count / 80 <= 0.125 for count in failed.values()), failed


def test_workers_that_share_a_seed_are_found() -> None:
    """Six workers that each repeat the same arrivals give an index near 6 instead of 1."""
    own = arrivals(random.Random(1), 2.0, 100.0)
    found = dispersion_of_arrivals(sorted(own * 6), 0.0, 100.0, 12.0)
    assert found.held is False
    assert found.statistic == pytest.approx(6.0, rel=0.35)
    assert found.high is not None and found.high < 2
    assert not gaps_of_arrivals(gaps(sorted(own * 6)), 12.0).held


def test_a_constant_rate_that_was_exponential_is_found() -> None:
    """Exponential gaps at the right rate are no constant arrivals, by their gaps and their dispersion."""
    times = arrivals(random.Random(2), 10.0, 60.0)
    assert not gaps_of_arrivals([gap * 1e9 for gap in gaps(times)], 10 / 1e9, "constant").held
    assert not dispersion_of_arrivals(times, 0.0, 60.0, 10.0, "constant").held
    assert not gaps_of_arrivals([1e8] * 500, 10 / 1e9).held


def test_constant_arrivals_are_held_within_their_tolerance() -> None:
    """Arrivals at most a millisecond late are constant, also if one of many is late; if some are, they are not."""
    draws = random.Random(3)
    times = [i * 100.0 * MS + draws.uniform(0, 1) * MS for i in range(600)]
    assert gaps_of_arrivals(gaps(times), 10 / 1e9, "constant").held
    assert dispersion_of_arrivals(times, 0.0, 60e9, 10 / 1e9, "constant").held
    assert count_of_arrivals(600, 600.0, "constant").held
    times[300] += 50 * MS
    found = gaps_of_arrivals(gaps(times), 10 / 1e9, "constant")
    assert found.held and found.off == 2 and found.may_be_off == pytest.approx(5.99)
    assert (found.statistic or 0) > 49 * MS
    times[100:400:100] = [time + 50 * MS for time in times[100:400:100]]
    assert not gaps_of_arrivals(gaps(times), 10 / 1e9, "constant").held
    assert not count_of_arrivals(598, 600.0, "constant").held


def test_gamma_arrivals_are_no_poisson_arrivals() -> None:
    """A burstiness of 0.25 fails as Poisson, by gaps and dispersion, and holds as what it is."""
    times = arrivals(random.Random(4), 5.0, 200.0, shape=0.25)
    assert not gaps_of_arrivals(gaps(times), 5.0).held
    assert not dispersion_of_arrivals(times, 0.0, 200.0, 5.0).held
    assert gaps_of_arrivals(gaps(times), 5.0, "gamma", shape=0.25).held
    assert dispersion_of_arrivals(times, 0.0, 200.0, 5.0, "gamma", shape=0.25).held


def test_a_wrong_rate_is_found() -> None:
    """Arrivals at 80% of the planned rate fail by count and by gaps."""
    times = arrivals(random.Random(5), 4.0, 200.0)
    assert not count_of_arrivals(len(times), 1_000.0).held
    assert not gaps_of_arrivals(gaps(times), 5.0).held


def test_counts_and_gaps_agree_with_scipy() -> None:
    """The count's p-value, and Kolmogorov's distance and p-value are SciPy's."""
    stats: Any = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    for count, mean in ((0, 3.0), (7, 3.0), (480, 500.0)):
        tail = min(stats.poisson.cdf(count, mean), stats.poisson.sf(count - 1, mean))
        assert count_of_arrivals(count, mean).p_value == pytest.approx(min(1, 2 * tail))
    for shape in (1.0, 0.5, 3.0):
        values = gaps(arrivals(random.Random(6), 5.0, 40.0, shape))
        found = gaps_of_arrivals(values, 5.0, "gamma", shape=shape)
        exact = stats.kstest(values, stats.gamma(shape, scale=1 / (5 * shape)).cdf)
        assert found.statistic == pytest.approx(exact.statistic)
        assert found.p_value == pytest.approx(exact.pvalue, abs=2e-4)


def test_the_limits_stated_are_the_limits_applied() -> None:
    """A statistic beyond the stated limits is one that is not held, for gaps and dispersion alike."""
    draws = random.Random(7)
    for _ in range(25):
        times = arrivals(draws, 5.0, 60.0, draws.choice((0.6, 1.0, 1.6)))
        for test in (gaps_of_arrivals(gaps(times), 5.0), dispersion_of_arrivals(times, 0.0, 60.0, 5.0)):
            assert test.statistic is not None and test.high is not None
            inside = (test.low is None or test.low <= test.statistic) and test.statistic <= test.high
            assert test.held == inside


def test_one_failed_test_fails_the_arrivals() -> None:
    """True arrivals hold; at half the planned rate they do not; none where none is due hold."""
    times = arrivals(random.Random(8), 5.0, 100.0)
    assert judge_arrivals(times, 0.0, 100.0, 5.0).held is True
    assert judge_arrivals(times, 0.0, 100.0, 10.0).held is False
    assert judge_arrivals([], 0.0, 1.0, 0.01).held is True


def test_too_few_arrivals_are_left_open() -> None:
    """Without gaps, or with fewer than five bins of twenty, nothing is held and nothing refuted."""
    assert gaps_of_arrivals([], 5.0).held is None
    assert gaps_of_arrivals([], 5.0, "constant").held is None
    assert dispersion_of_arrivals([1.0, 2.0], 0.0, 10.0, 5.0).held is None


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_of_few_gaps_none_may_be_off(n: int) -> None:
    """Where a late send would spoil a quarter of the gaps, it is not let pass; two that are, are."""
    plan = [0.0] * n
    assert gaps_off_plan(plan, "trace").held
    assert gaps_off_plan([*plan[1:], 9.0 * MS], "trace").held is (n > 3)
    assert not gaps_off_plan([9.0 * MS] * n, "trace").held


def test_constant_arrivals_at_a_high_rate_may_be_late_by_several() -> None:
    """A client that may be 2 ms late may have ten arrivals of 5,000 a second late at once, and no more."""
    times = [i * 0.2 * MS for i in range(5000)]
    late = [time + (1.9 * MS if i % 50 < 4 else 0.0) for i, time in enumerate(times)]
    found = judge_arrivals(
        sorted(late), 0.0, times[-1] - MS, 5000 / 1e9, "constant", tolerance=2 * MS, slack=2 * MS
    )
    assert found.held
    bunched = [time // (20 * MS) * 20 * MS for time in times]
    found = judge_arrivals(bunched, 0.0, times[-1], 5000 / 1e9, "constant", tolerance=2 * MS, slack=2 * MS)
    assert not found.held


def test_no_arrivals_at_all_are_found() -> None:
    """Where five hundred were planned, none is a failed count and an index of zero."""
    assert not count_of_arrivals(0, 500.0).held
    assert not dispersion_of_arrivals([], 0.0, 100.0, 5.0).held
    assert count_of_arrivals(0, 0.0).held


@pytest.mark.parametrize(("count", "expected"), [(-1, 5.0), (3, -1.0), (3, float("nan"))])
def test_impossible_counts_are_refused(count: int, expected: float) -> None:
    """Negative counts and expectations are an error."""
    with pytest.raises(ValueError):
        count_of_arrivals(count, expected)


def test_impossible_plans_are_refused() -> None:
    """A rate or duration that is not positive is an error."""
    with pytest.raises(ValueError):
        gaps_of_arrivals([1.0], 0.0)
    with pytest.raises(ValueError):
        dispersion_of_arrivals([1.0], 5.0, 5.0, 1.0)


@pytest.mark.parametrize("shape", [1e-3, 0.05, 0.3, 4.0, 1e6])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_a_count_of_gamma_arrivals_can_be_judged_however_few(shape: float, count: int) -> None:
    """Bursts of any shape and stretches of any length have a p-value, and where an arrival begins them it is exact."""
    for expected in (0.0, 1e-9, 0.5, float(count), 1e6):
        found = count_of_arrivals(count, expected, "gamma", shape=shape)
        assert found.p_value is not None and 0 <= found.p_value <= 1
    assert count_of_arrivals(count, float(count), "gamma", shape=shape).held or shape < 0.1


def test_a_slack_forgives_as_much_and_no_more() -> None:
    """Gaps that are wrong by no more than the slack are held, and others are still found."""
    draws = random.Random("slack")
    times = arrivals(draws, 5.0, 60.0, 0.1)
    # A loop sends one after the other: what is due at once leaves a thousandth apart.
    sent: list[float] = []
    for time in times:
        sent.append(max(time, sent[-1] + 0.001) if sent else time)
    moved = gaps(sent)
    assert gaps_of_arrivals(moved, 5.0, "gamma", shape=0.1).held is False
    assert gaps_of_arrivals(moved, 5.0, "gamma", shape=0.1, slack=0.001).held
    assert gaps_of_arrivals(moved, 5.0, "poisson", slack=0.001).held is False
