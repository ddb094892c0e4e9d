"""Values that are not fully known: a best and a worst case for each, and what follows for a percentile."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from nameplate.statistics.percentile import percentile


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
    return Bounds(percentile(best, percent), percentile(worst, percent))
