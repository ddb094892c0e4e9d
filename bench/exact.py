"""The chance that one trial passes, without drawing: by the binomial, and exactly where requests are independent."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from nameplate.statistics.binomial import log_tail
from nameplate.statistics.percentile import percent_as_fraction


class TrialOdds(Struct, frozen=True):
    """Hold what the binomial says: the chance of so few over that a trial surely passes, and that it may."""

    surely: float
    maybe: float


def odds(n: int, percent: float, share: float) -> TrialOdds:
    """Return the odds of a trial of n independent requests, a share of which is over the limit.

    The percentile at rank p(n-1) lies between two requests. It is below the limit where both are, and above it where
    the lower one is not; with just the upper one over, it depends on how far.
    """
    rank = percent_as_fraction(percent) * (n - 1)
    low, high = math.floor(rank), math.ceil(rank)
    return TrialOdds(math.exp(log_tail(n - 1 - high, n, share)), math.exp(log_tail(n - 1 - low, n, share)))


def pass_chance(n: int, percent: float, over: Callable[[float], float], nodes: int = 400) -> float:
    """Return the chance that the percentile of n independent requests lies below the limit; exact but for a sum.

    `over(x)` is the share of requests above x limits, continuous and falling. With K over, the least of them is a
    quantile of the tail and the greatest of the others must lie far enough below: one integral, by midpoints.
    """
    share = over(1.0)
    rank = percent_as_fraction(percent) * (n - 1)
    low, high = math.floor(rank), math.ceil(rank)
    sure = math.exp(log_tail(n - 1 - high, n, share))
    if low == high or not 0 < share < 1:
        return sure
    count, part = n - high, float(rank - low)
    exactly = math.exp(
        math.lgamma(n + 1)
        - math.lgamma(count + 1)
        - math.lgamma(n - count + 1)
        + count * math.log(share)
        + (n - count) * math.log1p(-share)
    )
    total = 0.0
    for node in range(nodes):
        # The least of `count` draws above the limit: the share above it, among those above, is u^(1/count).
        above = _where(over, share * ((node + 0.5) / nodes) ** (1 / count))
        room = (1 - part * above) / (1 - part)
        if room > 0:
            total += max(0.0, (1 - over(room)) / (1 - share)) ** (n - count)
    return sure + exactly * total / nodes


def _where(over: Callable[[float], float], share: float) -> float:
    """Return the x above 1 at which over(x) has come down to a share, by bisection of the logarithm."""
    low, high = 0.0, 1.0
    while over(math.exp(high)) > share and high < 500:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if over(math.exp(middle)) > share:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)
