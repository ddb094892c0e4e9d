"""Exact binomial bounds: how large a share over the limit may be, seeing k of n over it."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

# Terms that cannot change a double any more.
_NEGLIGIBLE = 2.0**-60
# Nobody waits for more: a decision that needs it is not told as a number.
MOST_REQUESTS = 10_000_000


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


def lower_bound(over: int, n: int, confidence: float = 0.95) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a share, seeing `over` of `n`; 0.0 where none were over."""
    if n < 0 or not 0 <= over <= n:
        raise ValueError(f"{over} of {n} is not a count")
    return 1 - upper_bound(n - over, n, confidence)


class ExtraSample(Struct, frozen=True, kw_only=True):
    """Hold what a sample decides about a share, and how many further requests a decision would need.

    `decided`: `below` where the one-sided upper bound is below the share, `above` where the lower bound is above it,
    else null. `without_miss` further requests, none of them over, would decide `below`; `at_observed_rate` would
    decide whichever side the observed share is on, if it stayed. Both are 0 where they are decided already, and null
    where no number up to MOST_REQUESTS would do: an observed share that equals the claimed one never decides.
    """

    method: str = (
        "one-sided Clopper-Pearson bounds (Clopper & Pearson 1934), searched for the smallest sample"
    )
    over: int
    n: int
    share: float
    confidence: float
    lower_bound: float
    upper_bound: float
    decided: Literal["below", "above"] | None
    without_miss: int | None
    at_observed_rate: int | None


def extra_sample(over: int, n: int, share: float, confidence: float = 0.95) -> ExtraSample:
    """Return how many further requests would decide whether the true share lies below `share`.

    "At the observed rate" rounds further misses up, against the decision. ValueError for impossible counts or a share
    that is not inside 0..1.
    """
    if not 0 < share < 1:
        raise ValueError(f"{share} is not a share")
    upper, lower = upper_bound(over, n, confidence), lower_bound(over, n, confidence)
    decided: Literal["below", "above"] | None = (
        "below" if upper < share else "above" if lower > share else None
    )
    without_miss = 0 if decided == "below" else _at_most(_least_sample(over, share, confidence), n)
    if decided is not None:
        observed: int | None = 0
    elif n == 0:
        observed = None
    elif over / n < share:
        observed = _at_rate(over, n, share, confidence)
    else:
        observed = _at_rate(n - over, n, 1 - share, confidence)
    return ExtraSample(
        over=over,
        n=n,
        share=share,
        confidence=confidence,
        lower_bound=lower,
        upper_bound=upper,
        decided=decided,
        without_miss=without_miss,
        at_observed_rate=observed,
    )


def _at_most(needed: int | None, n: int) -> int | None:
    return None if needed is None else max(0, needed - n)


def _least_sample(over: int, share: float, confidence: float) -> int | None:
    """Return the smallest n at which `over` of n bounds the share below `share`; None above MOST_REQUESTS."""
    target = math.log1p(-confidence)
    low, high = over, over + 1
    # The bound is below the share where seeing so few at the share itself is too unlikely.
    while high <= MOST_REQUESTS and log_tail(over, high, share) >= target:
        low, high = high, high * 2
    if high > MOST_REQUESTS:
        high = MOST_REQUESTS
        if high <= over or log_tail(over, high, share) >= target:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if log_tail(over, middle, share) < target:
            high = middle
        else:
            low = middle
    return high


def _at_rate(over: int, n: int, share: float, confidence: float) -> int | None:
    """Return the smallest number of further requests at the observed rate over/n that bounds the share."""
    if over == 0:
        return _at_most(_least_sample(0, share, confidence), n)

    def extra(misses: int) -> int | None:
        """Return the further requests that `misses` further misses need, if the observed rate grants so many."""
        needed = _at_most(_least_sample(over + misses, share, confidence), n)
        # As many requests as pass before the next miss is due.
        return needed if needed is not None and needed * over <= misses * n else None

    if over >= share * n:
        return None
    low, high = 0, 1
    # The needed sample grows by less and less a miss, the granted one evenly: once enough, always enough.
    while extra(high) is None:
        low, high = high, high * 2
        if over + high > MOST_REQUESTS * share:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if extra(middle) is None:
            low = middle
        else:
            high = middle
    return extra(high)
