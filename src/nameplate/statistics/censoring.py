"""Values that are not fully known: a best and a worst case for each, and what follows for a percentile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from nameplate.statistics.percentile import percentile, supported

# From this difference on, the percentile of the completed ones alone misleads.
MISLEADING_FROM = 0.05


class Bounds(NamedTuple):
    """Hold the best and the worst a value can be; equal where it is known, `worst` infinite where it is open."""

    best: float
    worst: float

    @classmethod
    def exactly(cls, value: float) -> Bounds:
        return cls(value, value)

    @classmethod
    def at_least(cls, waited: float) -> Bounds:
        """Bound a value whose request was cut by us: at best what was waited so far, at worst infinite."""
        return cls(max(0.0, waited), math.inf)

    @classmethod
    def never(cls) -> Bounds:
        """Bound a value that will never come, because the server failed the request."""
        return cls(math.inf, math.inf)


def percentile_bounds(values: Iterable[Bounds], percent: float, missing: int = 0) -> Bounds | None:
    """Return a percentile's best and worst case over all values; None where there are none.

    `missing` counts members of which nothing is known, such as requests that never started.
    """
    held = list(values)
    if not held and missing <= 0:
        return None
    best = sorted([0.0] * missing + [value.best for value in held])
    worst = sorted([value.worst for value in held] + [math.inf] * missing)
    if best == worst:
        return Bounds.exactly(percentile(best, percent))
    return Bounds(percentile(best, percent), percentile(worst, percent))


class CensoredPercentile(Struct, frozen=True, kw_only=True):
    """Hold a percentile with its best and worst case, beside that of the completed members alone.

    Of `n` members `completed` are known, `open` were cut while they waited (best: the wait so far, worst: infinite),
    `never` failed (infinite in both), and of `missing` nothing is known (best 0, worst infinite). `relative_error`
    bounds the error of the three numbers: 0 where they come from the values themselves. `worst` is null where it is
    infinite, and `best` likewise; `completed_only` where none completed. Units are those of the values.
    """

    method: str
    percent: float
    n: int
    completed: int
    open: int
    never: int
    missing: int
    completed_only: float | None
    best: float | None
    worst: float | None
    relative_error: float = 0.0

    @property
    def supported(self) -> bool:
        return supported(self.n, self.percent)

    @property
    def misleading(self) -> bool:
        """Tell whether the completed ones alone look better than even the best case, by more than 5% of it."""
        if self.completed_only is None or self.n == self.completed:
            return False
        # A sketch's two numbers may each be off by its error.
        slack = (1 + MISLEADING_FROM) * (1 + 2 * self.relative_error)
        return self.best is None or self.best > self.completed_only * slack

    @property
    def uncertain(self) -> bool:
        """Tell whether best and worst case differ."""
        return self.best != self.worst


def censored_percentile(
    completed: Iterable[float],
    percent: float,
    *,
    waited: Iterable[float] = (),
    never: int = 0,
    missing: int = 0,
) -> CensoredPercentile:
    """Return a percentile with bounds: `completed` values, `waited` so far by the open ones, and counts of the rest.

    It assumes nothing about how the open ones would have ended (so it is no estimator such as Kaplan & Meier's): the
    truth lies between both cases whatever they do.
    """
    known = sorted(completed)
    cut = sorted(max(0.0, value) for value in waited)
    lost = [math.inf] * (never + missing)
    best = [0.0] * missing + sorted(known + cut) + [math.inf] * never
    worst = known + [math.inf] * len(cut) + lost
    return CensoredPercentile(
        method="best and worst case of open values, linear between closest ranks",
        percent=percent,
        n=len(worst),
        completed=len(known),
        open=len(cut),
        never=never,
        missing=missing,
        completed_only=_finite(known, percent),
        best=_finite(best, percent),
        worst=_finite(worst, percent),
    )


def _finite(ordered: Sequence[float], percent: float) -> float | None:
    if not ordered:
        return None
    value = percentile(ordered, percent)
    return None if math.isinf(value) else value
