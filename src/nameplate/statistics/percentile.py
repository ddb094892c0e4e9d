"""Percentiles: linear between closest ranks, rank p(n-1), infinity included."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

from msgspec import Struct

Number = int | float


@cache
def percent_as_fraction(percent: float) -> Fraction:
    """Return a percentage such as 95.0 as an exact share of one; ValueError outside 0..100."""
    # Through the shortest decimal text, because a person wrote 99.9 and meant 999/1000, not its binary neighbour.
    share = Fraction(repr(percent)) / 100
    if not 0 <= share <= 1:
        raise ValueError(f"{percent} is not a percentage")
    return share


def percentile(ordered: Sequence[Number], percent: float) -> float:
    """Return a percentile of ascending values; ValueError where there are none.

    The arithmetic is exact and rounded once, so that a percentile that equals a limit compares equal to it. If
    either neighbour of the rank is infinite the result is infinite; a whole rank has one neighbour, itself.
    """
    if not ordered:
        raise ValueError("a percentile of no values")
    rank = percent_as_fraction(percent) * (len(ordered) - 1)
    low = ordered[math.floor(rank)]
    high = ordered[math.ceil(rank)]
    if math.isinf(low) or math.isinf(high):
        return math.inf
    if low == high:
        return float(low)
    exact_low, exact_high = Fraction(low), Fraction(high)
    return float(exact_low + (exact_high - exact_low) * (rank - math.floor(rank)))


def supported(n: int, percent: float) -> bool:
    """Tell whether n values carry this percentile: n >= 1/(1-p)."""
    tail = 1 - percent_as_fraction(percent)
    return n > 0 and n * tail >= 1


SHOWN = (50.0, 90.0, 95.0, 99.0)


class Distribution(Struct, frozen=True, kw_only=True):
    """Summarise one value a request (or a gap), in `unit`: `ns` or `1/s`.

    `n` counts all members, `censored` those that never came to a value; these stand at their worst, so a
    percentile they reach is null, and so are the mean and the extreme on their side. `unsupported` names the
    percentiles for which n is below 1/(1-p). All fields are null where n is 0.
    """

    unit: str
    n: int
    censored: int = 0
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def low_median_high(self) -> tuple[float, float, float] | None:
        """Return the smallest, median and largest member; None where any is not known."""
        if self.min is None or self.p50 is None or self.max is None:
            return None
        return self.min, self.p50, self.max


def summarise(values: Iterable[Number], unit: str = "ns", censored: int = 0) -> Distribution:
    """Summarise values, with `censored` further members that stand at infinity."""
    ordered: list[Number] = sorted(values)
    known = len(ordered)
    n = known + censored
    unsupported = tuple(f"p{percent:g}" for percent in SHOWN if not supported(n, percent))
    if n == 0:
        return Distribution(unit=unit, n=0, unsupported=unsupported)
    mean = math.fsum(ordered) / known if not censored else None
    low = float(ordered[0]) if known else None
    high = float(ordered[-1]) if known and not censored else None
    ordered.extend([math.inf] * censored)
    p50, p90, p95, p99 = (_finite(percentile(ordered, percent)) for percent in SHOWN)
    return Distribution(
        unit=unit,
        n=n,
        censored=censored,
        mean=mean,
        min=low,
        max=high,
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        unsupported=unsupported,
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
