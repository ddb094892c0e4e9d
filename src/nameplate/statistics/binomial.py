"""Exact binomial bounds: how large a share over the limit may be, seeing k of n over it."""

from __future__ import annotations

import math

# Terms that cannot change a double any more.
_NEGLIGIBLE = 2.0**-60


def log_tail(k: int, n: int, p: float) -> float:
    """Return ln P(X <= k) of a binomial(n, p) variable; -inf where it is impossible.

    The largest term is taken in log space and the others relative to it, so that neither large n nor small
    probabilities underflow.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is not a count")
    if k == n or p <= 0:
        return 0.0
    if p >= 1:
        return -math.inf
    odds = math.log(p) - math.log1p(-p)
    # The largest of the terms 0..k stands at the distribution's mode or, below it, at k.
    peak = min(k, math.floor((n + 1) * p))
    log_peak = (
        math.lgamma(n + 1)
        - math.lgamma(peak + 1)
        - math.lgamma(n - peak + 1)
        + peak * odds
        + n * math.log1p(-p)
    )
    ratio_of_odds = p / (1 - p)
    total = 1.0
    term = 1.0
    for i in range(peak, 0, -1):
        term *= i / ((n - i + 1) * ratio_of_odds)
        total += term
        if term < _NEGLIGIBLE * total:
            break
    term = 1.0
    for i in range(peak, k):
        term *= (n - i) / (i + 1) * ratio_of_odds
        total += term
        if term < _NEGLIGIBLE * total:
            break
    return min(0.0, log_peak + math.log(total))


def upper_bound(over: int, n: int, confidence: float = 0.95) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a share, seeing `over` of `n`.

    It is the share p at which seeing so few has probability 1 - confidence. 1.0 where nothing was seen or all
    were over; ValueError for impossible counts or a confidence below one half.
    """
    if not 0.5 <= confidence < 1:
        raise ValueError(f"{confidence} is not a confidence")
    if n < 0 or not 0 <= over <= n:
        raise ValueError(f"{over} of {n} is not a count")
    if over == n:
        return 1.0
    if over == 0:
        return -math.expm1(math.log1p(-confidence) / n)
    target = math.log1p(-confidence)
    # At p = over/n the tail is at least one half (the median of a binomial with a whole mean is the mean).
    low, high = over / n, 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        if log_tail(over, n, middle) > target:
            low = middle
        else:
            high = middle


def allowed_over(n: int, share: float, confidence: float = 0.95) -> int | None:
    """Return how many of n may be over the limit so that the bound stays below `share`; None if not even 0 may."""
    if n <= 0 or upper_bound(0, n, confidence) >= share:
        return None
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if upper_bound(middle, n, confidence) < share:
            low = middle
        else:
            high = middle
    return low


def samples_needed(over: int, share: float, confidence: float = 0.95) -> int:
    """Return the smallest n at which `over` of n bounds the share below `share`; ValueError for share outside 0..1."""
    if not 0 < share < 1:
        raise ValueError(f"{share} is not a share")
    high = over + 1
    while upper_bound(over, high, confidence) >= share:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if middle > over and upper_bound(over, middle, confidence) < share:
            high = middle
        else:
            low = middle
    return high
