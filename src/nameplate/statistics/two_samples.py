"""Two small samples against each other: Welch's and the paired t interval, and which of many tests stand together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from nameplate.statistics.tails import student_quantile, student_tail

WELCH = "Welch's t interval (Welch 1947) with Satterthwaite's degrees of freedom"
PAIRED = "paired t interval"
SEVERAL = "Benjamini & Hochberg 1995"


class Difference(Struct, frozen=True, kw_only=True):
    """Hold the difference of two means (second - first), its interval and the chance of so large a one without any.

    `p_value` is two-sided. `degrees` is infinite where neither sample varies: the interval is then the estimate alone,
    and `error`, its standard error, is 0.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    error: float
    degrees: float

    def beyond(self, low: float, high: float) -> float:
        """Return the chance of an estimate so far outside low..high where the truth lies inside it; 1 where it does."""
        outside = self.estimate - high if self.estimate > high else low - self.estimate
        if outside <= 0:
            return 1.0
        return student_tail(outside / self.error, self.degrees) if self.error else 0.0


def welch(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Difference:
    """Return the difference of the means of two independent samples; ValueError for fewer than two values in either.

    The variances may differ. Exact for normal values of one variance in the limit, and slightly too wide for three.
    """
    _require(confidence, first, second)
    spread = [_variance(values) / len(values) for values in (first, second)]
    error = sum(spread)
    # Satterthwaite 1946: the degrees of freedom of a sum of two variances.
    degrees = (
        error**2 / math.fsum(s**2 / (len(v) - 1) for s, v in zip(spread, (first, second), strict=True))
        if error > 0
        else math.inf
    )
    return _difference(_mean(second) - _mean(first), math.sqrt(error), degrees, confidence)


def paired(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Difference:
    """Return the mean of the differences of pairs; ValueError for fewer than two, or samples of different length."""
    _require(confidence, first, second)
    gaps = [b - a for a, b in zip(first, second, strict=True)]
    error = math.sqrt(_variance(gaps) / len(gaps))
    return _difference(_mean(gaps), error, len(gaps) - 1 if error else math.inf, confidence)


def fisher(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the two-sided chance of two counts of (hits, tries) at least as unlikely, if one share holds for both.

    Fisher's exact test: all splits of the same number of hits that are no more likely than this one. ValueError for
    counts that cannot be.
    """
    (hits, tries), (others, against) = first, second
    if not (0 <= hits <= tries and 0 <= others <= against):
        raise ValueError(f"{hits} of {tries} and {others} of {against} are no counts")
    total = hits + others

    def log_chance(k: int) -> float:
        return _log_ways(tries, k) + _log_ways(against, total - k) - _log_ways(tries + against, total)

    # Splits that are as likely but for rounding count as well.
    seen = log_chance(hits) + 1e-7
    low, high = max(0, total - against), min(total, tries)
    chances = (log_chance(k) for k in range(low, high + 1))
    return min(1.0, math.fsum(math.exp(chance) for chance in chances if chance <= seen))


def _log_ways(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def standing(p_values: Sequence[float], false_alarms: float = 0.05) -> tuple[bool, ...]:
    """Say which of many tests stand when the share of false ones among those is bounded (Benjamini & Hochberg 1995).

    Where nothing differs at all, the chance that any stands is at most `false_alarms`: for tests that are independent
    or positively dependent (Benjamini & Yekutieli 2001), as measures of the same requests are.
    """
    many = len(p_values)
    order = sorted(range(many), key=lambda at: p_values[at])
    kept = max(
        (rank for rank, at in enumerate(order, 1) if p_values[at] <= rank * false_alarms / many), default=0
    )
    stand = set(order[:kept])
    return tuple(at in stand for at in range(many))


def _difference(estimate: float, error: float, degrees: float, confidence: float) -> Difference:
    if not error > 0:
        return Difference(
            estimate=estimate,
            low=estimate,
            high=estimate,
            p_value=1.0 if estimate == 0 else 0.0,
            error=0.0,
            degrees=math.inf,
        )
    half = student_quantile((1 + confidence) / 2, degrees) * error
    return Difference(
        estimate=estimate,
        low=estimate - half,
        high=estimate + half,
        p_value=min(1.0, 2 * student_tail(abs(estimate) / error, degrees)),
        error=error,
        degrees=degrees,
    )


def _require(confidence: float, *samples: Sequence[float]) -> None:
    if not 0.5 <= confidence < 1:
        raise ValueError(f"{confidence} is not a confidence")
    if min(map(len, samples)) < 2:
        raise ValueError("fewer than two values have no interval")
    if not all(math.isfinite(value) for values in samples for value in values):
        raise ValueError("values must be finite")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    # Equal values have no variance, whatever rounding makes of their mean.
    if all(a == b for a, b in pairwise(values)):
        return 0.0
    middle = _mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
