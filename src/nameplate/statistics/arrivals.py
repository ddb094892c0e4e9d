"""Whether delivered arrivals are those of the plan: their count, their gaps, their dispersion.

All times are in one unit of the caller's, and rates are per that unit. A rate that changes is tested after mapping
each time through the plan's cumulative number of arrivals: then the rate is 1 (time rescaling, Brown et al. 2002).

Measured false alarms of count, gaps and dispersion, 300 true arrivals, at 5% / 1% / 0.1%: Poisson (1,500 stretches)
0.053 / 0.010 / 0.001, 0.044 / 0.009 / 0.001, 0.058 / 0.014 / 0.001; gamma of shape 0.25 and 4 (400 each) at 5% between
0.035 and 0.063.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from nameplate.statistics.percentile import Number
from nameplate.statistics.tails import (
    chi_square_quantile,
    chi_square_tails,
    gamma_tails,
    kolmogorov_tail,
    poisson_tails,
    two_sided,
)

Process = Literal["constant", "poisson", "gamma", "trace"]
Kind = Literal["count", "gaps", "dispersion"]

# Of the gaps of a plan without chance so many may be off, as many as sends may be late; a single late send, which
# spoils two gaps, is let pass wherever that is at most a quarter of them.
OFF_SHARE = 0.01
# A true plan fails each test this often; three tests a trial, so one honest trial in 333 is questioned.
ALPHA = 0.001
# What the client's own innocence allows a send to be late.
TOLERANCE_NS = 2_000_000
# Arrivals a bin of the dispersion index should hold: the chi-square approximation is good from five on, and the
# correlation between gamma gaps has died out.
_PER_BIN = 20
_MOST_BINS = 200
_FEWEST_BINS = 5
# Up to this shape the tails of a gamma variable are summed; above it, it is normal for all that a count can show.
_SUMMED = 10_000
# Gaps up to which the limit of their distance is searched rather than approached.
_FEW = 20


class ArrivalTest(Struct, frozen=True, kw_only=True):
    """Hold one test of arrivals: its statistic, what the plan makes it, and the limits inside which it is held.

    `low` and `high` bound the statistic at `alpha` (null: no bound on that side); `p_value` is null where a
    deterministic plan leaves no room for chance, and the limits are a tolerance. `held` is null where there are too
    few arrivals to tell. Of the gaps of such a plan `off` are beyond `high`, and `may_be_off` could be.
    """

    test: Kind
    method: str
    process: Process
    n: int
    statistic: float | None
    expected: float | None
    low: float | None
    high: float | None
    p_value: float | None
    alpha: float | None
    held: bool | None
    off: int | None = None
    may_be_off: float | None = None


class Arrivals(Struct, frozen=True, kw_only=True):
    """Hold all tests of one stretch of arrivals; `held` is false where one failed, null where none could tell."""

    process: Process
    rate: float
    shape: float
    start: float
    end: float
    tests: tuple[ArrivalTest, ...]

    @property
    def held(self) -> bool | None:
        told = [test.held for test in self.tests if test.held is not None]
        return all(told) if told else None


def judge_arrivals(
    times: Sequence[Number],
    start: float,
    end: float,
    rate: float,
    process: Process = "poisson",
    *,
    shape: float = 1.0,
    tolerance: float = TOLERANCE_NS,
    slack: float = 0.0,
    alpha: float = ALPHA,
) -> Arrivals:
    """Test arrival times of start <= time < end, ascending and up to `slack` late: count, gaps and dispersion."""
    inside = [time for time in times if start <= time < end]
    gaps = [after - before for before, after in pairwise(inside)]
    return Arrivals(
        process=process,
        rate=rate,
        shape=shape,
        start=start,
        end=end,
        tests=(
            count_of_arrivals(
                len(inside), rate * (end - start), process, shape=shape, late=rate * slack, alpha=alpha
            ),
            gaps_of_arrivals(gaps, rate, process, shape=shape, tolerance=tolerance, slack=slack, alpha=alpha),
            dispersion_of_arrivals(
                inside, start, end, rate, process, shape=shape, late=rate * slack, alpha=alpha
            ),
        ),
    )


def count_of_arrivals(
    count: int,
    expected: float,
    process: Process = "poisson",
    *,
    shape: float = 1.0,
    late: float = 0.0,
    alpha: float = ALPHA,
) -> ArrivalTest:
    """Test a number of arrivals against the expected one.

    Poisson: exact, twice the smaller tail. Gamma gaps of this shape: exact for a stretch that begins with an arrival,
    which a long one need not; where that is long to sum, normal with the variance of a renewal process in equilibrium
    (Cox 1962). Constant: within one arrival, and as many as may be
    `late`. ValueError for a negative count or expectation.
    """
    if count < 0 or not expected >= 0:
        raise ValueError(f"{count} arrivals where {expected} are expected is impossible")
    p_value: float | None
    if process == "poisson":
        at_most, at_least = poisson_tails(count, expected)
        p_value = min(1.0, 2 * min(at_most, at_least))
        method = "exact Poisson, twice the smaller tail"
    elif process == "gamma" and shape * (count + 1) <= _SUMMED:
        # The n-th arrival after one comes after a gamma distributed time of the shape n * shape.
        at_least = gamma_tails(expected * shape, count * shape)[0] if count else 1.0
        at_most = gamma_tails(expected * shape, (count + 1) * shape)[1]
        p_value = min(1.0, 2 * min(at_most, at_least))
        method = "exact renewal count from one arrival on, twice the smaller tail (Cox 1962)"
    elif process == "gamma":
        deviation = math.sqrt(max(expected / shape / 2, expected * _index(expected, shape)))
        off = max(0.0, abs(count - expected) - 0.5)
        p_value = two_sided(off / deviation) if deviation > 0 else float(off == 0)
        method = "normal with the variance of a renewal process (Cox 1962)"
    else:
        most = 1 + math.floor(late)
        return ArrivalTest(
            test="count",
            method="within one arrival of the plan",
            process=process,
            n=count,
            statistic=float(count),
            expected=expected,
            low=expected - most,
            high=expected + most,
            p_value=None,
            alpha=None,
            held=abs(count - expected) <= most,
        )
    return ArrivalTest(
        test="count",
        method=method,
        process=process,
        n=count,
        statistic=float(count),
        expected=expected,
        low=None,
        high=None,
        p_value=p_value,
        alpha=alpha,
        held=p_value >= alpha,
    )


def gaps_of_arrivals(
    gaps: Sequence[Number],
    rate: float,
    process: Process = "poisson",
    *,
    shape: float = 1.0,
    tolerance: float = TOLERANCE_NS,
    slack: float = 0.0,
    alpha: float = ALPHA,
) -> ArrivalTest:
    """Test the gaps between arrivals against the plan's distribution, all of whose parameters are known.

    Poisson and gamma: the distance of Kolmogorov (1933), `high` the smallest one that alpha rejects; with a `slack` the
    least distance that gaps within so much of the given ones have. Constant: see `gaps_off_plan`.
    """
    if not rate > 0 or not shape > 0:
        raise ValueError(f"no process has a rate of {rate} and a shape of {shape}")
    n = len(gaps)
    if process == "constant":
        return gaps_off_plan([gap - 1 / rate for gap in gaps], process, tolerance=tolerance)
    shape = 1.0 if process == "poisson" else shape
    unit = rate * shape
    distance = _distance(sorted(gap * unit for gap in gaps), shape, slack * unit) if n else None
    p_value = None if distance is None else kolmogorov_tail(distance, n)
    return ArrivalTest(
        test="gaps",
        method="Kolmogorov 1933 distance to the planned distribution, parameters known",
        process=process,
        n=n,
        statistic=distance,
        expected=None,
        low=None,
        high=_critical_distance(n, alpha) if n else None,
        p_value=p_value,
        alpha=alpha,
        held=None if p_value is None else p_value >= alpha,
    )


def gaps_off_plan(
    deviations: Sequence[float], process: Process, *, tolerance: float = TOLERANCE_NS
) -> ArrivalTest:
    """Test how far gaps are from the planned ones, which are known: few may be off by more than twice the tolerance.

    `tolerance` is that of one arrival (nanoseconds by default), and the statistic is the largest deviation.
    """
    n = len(deviations)
    off = sum(abs(deviation) > 2 * tolerance for deviation in deviations)
    may = max(OFF_SHARE * n, min(2.0, n / 4))
    return ArrivalTest(
        test="gaps",
        method="largest deviation from the constant gap"
        if process == "constant"
        else "largest deviation from the recorded gap",
        process=process,
        n=n,
        statistic=max(map(abs, deviations), default=None),
        expected=0.0,
        low=None,
        high=2 * tolerance,
        p_value=None,
        alpha=None,
        held=None if not n else off <= may,
        off=off,
        may_be_off=may,
    )


def dispersion_of_arrivals(
    times: Sequence[Number],
    start: float,
    end: float,
    rate: float,
    process: Process = "poisson",
    *,
    shape: float = 1.0,
    late: float = 0.0,
    alpha: float = ALPHA,
) -> ArrivalTest:
    """Test the index of dispersion of counts in equal bins: variance over mean, 1 for a Poisson process.

    Times the degrees of freedom and over its expected value it is chi-square (Fisher 1925; Cox & Lewis 1966). Workers
    that share one seed, each repeating the others' arrivals, raise it to their number. For gamma gaps the expected
    index is that of a renewal process in equilibrium and the interval approximate. Constant arrivals put floor or ceil
    of the mean into each bin, and one more or less where they are late, or as many as may be `late`: at most 1/mean.
    """
    if not end > start or not rate > 0:
        raise ValueError(f"no arrivals at rate {rate} between {start} and {end}")
    planned = rate * (end - start)
    # Bursts of some 1/shape arrivals count as one: five of them a bin keep the stated error rates.
    per_bin = _PER_BIN * max(1.0, 1 / (4 * shape)) if process == "gamma" else _PER_BIN
    bins = min(_MOST_BINS, math.floor(planned / per_bin))
    if bins < _FEWEST_BINS:
        return ArrivalTest(
            test="dispersion",
            method=f"fewer than {_FEWEST_BINS} bins of {per_bin:g} arrivals",
            process=process,
            n=len(times),
            statistic=None,
            expected=None,
            low=None,
            high=None,
            p_value=None,
            alpha=None,
            held=None,
        )
    counts = [0] * bins
    for time in times:
        if start <= time < end:
            counts[min(bins - 1, math.floor((time - start) / (end - start) * bins))] += 1
    mean = math.fsum(counts) / bins
    index = math.fsum((count - mean) ** 2 for count in counts) / (bins - 1) / mean if mean else 0.0
    per_bin = planned / bins
    if process == "constant":
        # Of the arrivals that came where they are fewer: the stretch ends with the last one, however late that was, and
        # counts that are too few are the count's own test.
        most = (1 + math.floor(late)) ** 2 / (min(per_bin, mean) or per_bin)
        return ArrivalTest(
            test="dispersion",
            method=f"index of dispersion over {bins} bins, at most one arrival off in each",
            process=process,
            n=len(times),
            statistic=index,
            expected=0.0,
            low=None,
            high=most,
            p_value=None,
            alpha=None,
            held=index <= most,
        )
    expected = 1.0 if process == "poisson" else _index(per_bin, shape)
    below, above = chi_square_tails((bins - 1) * index / expected, bins - 1)
    p_value = min(1.0, 2 * min(below, above))
    return ArrivalTest(
        test="dispersion",
        method=f"index of dispersion over {bins} bins, chi-square interval (Cox & Lewis 1966)",
        process=process,
        n=len(times),
        statistic=index,
        expected=expected,
        low=chi_square_quantile(alpha / 2, bins - 1) / (bins - 1) * expected,
        high=chi_square_quantile(1 - alpha / 2, bins - 1) / (bins - 1) * expected,
        p_value=p_value,
        alpha=alpha,
        held=p_value >= alpha,
    )


def _index(mean: float, shape: float) -> float:
    """Return variance over mean of the count of gamma gaps in an interval that expects `mean` (Cox 1962, 4.5)."""
    if mean <= 0:
        return 1.0
    return 1 / shape + (1 - 1 / (shape * shape)) / (6 * mean)


def _distance(ordered: Sequence[float], shape: float, slack: float = 0.0) -> float:
    """Return the largest distance to a gamma variable's distribution; the least of all values within the slack."""

    def at_most(value: float) -> float:
        return -math.expm1(-value) if shape == 1 else gamma_tails(value, shape)[0]

    n = len(ordered)
    most = 0.0
    for i, value in enumerate(ordered):
        high = at_most(value + slack)
        low = at_most(max(0.0, value - slack)) if slack else high
        most = max(most, (i + 1) / n - high, low - i / n)
    return most


def _critical_distance(n: int, alpha: float) -> float:
    """Return the distance whose p-value is alpha."""
    near = math.sqrt(math.log(2 / alpha) / (2 * n))
    if n > _FEW:
        # The tail is nearly 2 exp(-2 n D^2): each step corrects the rest of its logarithm.
        for _ in range(6):
            near *= math.sqrt(math.log(2 / alpha) / math.log(2 / kolmogorov_tail(near, n)))
        return near
    low, high = near / 2, min(1.0, near * 2)
    for _ in range(24):
        middle = (low + high) / 2
        if kolmogorov_tail(middle, n) < alpha:
            high = middle
        else:
            low = middle
    return high
