"""Gaps of a unit-rate arrival process: even, exponential or gamma distributed, each a pure function of its index.

A gap is a whole number of `1 / UNIT` mean gaps. Sums of such gaps are exact, so a long schedule cannot drift.
"""

from __future__ import annotations

from math import sqrt
from typing import Final

from msgspec import Struct

from nameplate.schedule.counter import uniform
from nameplate.schedule.elementary import exp, log

UNIT: Final = 1 << 52
"""What one mean gap is, in the integers that are summed: as fine as a double is near 1."""

_UNIT: Final = float(UNIT)


class Even(Struct, frozen=True, tag=True):
    """Space all arrivals alike, the first at once."""

    def first(self, _key: int) -> int:
        """Return the time of arrival 0."""
        return 0

    def gap(self, _key: int, _index: int) -> int:
        """Return the distance between arrival `index` - 1 and arrival `index`."""
        return UNIT


class Exponential(Struct, frozen=True, tag=True):
    """Draw exponential gaps by inversion: a Poisson process. The first arrival comes after one gap."""

    def first(self, key: int) -> int:
        """Return the time of arrival 0."""
        return self.gap(key, 0)

    def gap(self, key: int, index: int) -> int:
        """Return the distance between arrival `index` - 1 and arrival `index`: -ln of one uniform number."""
        return int(-log(uniform(key, index)) * _UNIT)


class GammaGaps(Struct, frozen=True, tag=True):
    """Draw gamma gaps of mean 1 and shape `burstiness`: a renewal process, whose first arrival comes after one gap.

    The variance of a gap is 1 / `burstiness`: 1 is the Poisson process, below 1 burstier, above 1 more even. The
    method is exact: G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000),
    with normal numbers by Marsaglia's polar method. It rejects, and takes the next numbers of the same index.
    """

    burstiness: float

    def first(self, key: int) -> int:
        """Return the time of arrival 0."""
        return self.gap(key, 0)

    def gap(self, key: int, index: int) -> int:
        """Return the distance between arrival `index` - 1 and arrival `index`."""
        shape = self.burstiness
        if shape >= 1.0:
            return int(_gamma(shape, key, index, 0) / shape * _UNIT)
        # Below 1 the method needs a shape one higher, and a power of another uniform number (section 6 there).
        power = exp(log(uniform(key, index, 0)) / shape)
        return int(_gamma(shape + 1.0, key, index, 1) * power / shape * _UNIT)


Gaps = Even | Exponential | GammaGaps


def _gamma(shape: float, key: int, index: int, use: int) -> float:
    """Return a gamma number of a shape of at least 1; the words of the index are used from number `use` on."""
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    while True:
        while True:
            a = 2.0 * uniform(key, index, use) - 1.0
            b = 2.0 * uniform(key, index, use + 1) - 1.0
            use += 2
            square = a * a + b * b
            if 0.0 < square <= 1.0:
                break
        normal = a * sqrt(-2.0 * log(square) / square)
        v = 1.0 + c * normal
        if v <= 0.0:
            continue
        v = v * v * v
        if log(uniform(key, index, use)) < 0.5 * normal * normal + d - d * v + d * log(v):
            return d * v
        use += 1
