"""How the rate runs over time, and when a count of arrivals is reached: cumulative rates and their exact inverses.

A process of unit rate becomes one of a rate that varies when its times are read as cumulative counts (time
rescaling). All here is in integers: a count is a number of `1 / UNIT`, a rate is meant as the decimal number that it
is written as, and a time is the nanosecond in which the exact one lies. So a time is early by less than 1 ns, at any
index.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import cached_property
from math import isqrt, lcm
from typing import Final

from msgspec import Struct

from nameplate.schedule.gaps import UNIT

SECOND_NS: Final = 10**9


def decimal(rate: float) -> Fraction:
    """Return a rate as the decimal number that it is written as: 0.1 is a tenth, not the double nearest to it."""
    return Fraction(repr(rate))


class Level(Struct, frozen=True, dict=True):
    """Keep one rate for ever; `rate` in requests per second, above 0."""

    rate: float

    @property
    def endless(self) -> bool:
        return True

    @cached_property
    def _factors(self) -> tuple[int, int]:
        rate = decimal(self.rate)
        return SECOND_NS * rate.denominator, rate.numerator * UNIT

    def time_ns(self, count: int) -> int | None:
        """Return when `count` / UNIT arrivals are expected."""
        numerator, denominator = self._factors
        return count * numerator // denominator

    def expected(self, t_ns: int) -> Fraction:
        """Return how many arrivals are expected before a time."""
        return decimal(self.rate) * max(0, t_ns) / SECOND_NS


class Slope(Struct, frozen=True, dict=True):
    """Go evenly from one rate to another in `over_ns`, and stay there; rates in requests per second, 0 allowed."""

    from_rate: float
    to_rate: float
    over_ns: int

    @property
    def endless(self) -> bool:
        return self.to_rate > 0

    @cached_property
    def _rates(self) -> tuple[int, int, int]:
        """Return both rates as numerators over the third number."""
        first, last = decimal(self.from_rate), decimal(self.to_rate)
        common = lcm(first.denominator, last.denominator)
        return int(first * common), int(last * common), common

    @cached_property
    def _end(self) -> int:
        """Return the scaled count at the end of the slope: `count` x 2 x over x second x common, over UNIT."""
        first, last, _ = self._rates
        return (first + last) * self.over_ns * self.over_ns * UNIT

    def time_ns(self, count: int) -> int | None:
        """Return when `count` / UNIT arrivals are expected; None if never."""
        first, last, common = self._rates
        over = self.over_ns
        scaled = 2 * over * SECOND_NS * common * count
        if scaled >= self._end:
            if last == 0:
                return None
            return over + (scaled - self._end) // (2 * over * last * UNIT)
        if scaled == 0 and first == 0:
            return 0
        # (last - first) t^2 + 2 over first t = scaled / UNIT, solved in the form that does not cancel.
        level = over * first * UNIT
        root = isqrt(level * level + (last - first) * scaled * UNIT)
        t = scaled // (level + root)
        while self._reached(t) > scaled:
            t -= 1
        while self._reached(t + 1) <= scaled:
            t += 1
        return t

    def _reached(self, t: int) -> int:
        first, last, _ = self._rates
        return ((last - first) * t + 2 * self.over_ns * first) * t * UNIT

    def expected(self, t_ns: int) -> Fraction:
        """Return how many arrivals are expected before a time."""
        _, last, common = self._rates
        within = min(max(0, t_ns), self.over_ns)
        scaled = self._reached(within) + 2 * self.over_ns * last * UNIT * max(0, t_ns - self.over_ns)
        return Fraction(scaled, 2 * self.over_ns * SECOND_NS * common * UNIT)


class Stairs(Struct, frozen=True, dict=True):
    """Keep one rate after the other, each a (requests per second, ns) pair, and none after the last; 0 allowed."""

    steps: tuple[tuple[float, int], ...]

    @cached_property
    def _table(self) -> tuple[list[int], list[int], list[int], int]:
        """Return scaled counts and times at the start of each step and at the end, scaled rates, and the scale."""
        rates = [decimal(rate) for rate, _ in self.steps]
        common = lcm(*(rate.denominator for rate in rates))
        counts, times, scaled = [0], [0], [int(rate * common) * UNIT for rate in rates]
        for rate, (_, lasts_ns) in zip(scaled, self.steps, strict=True):
            counts.append(counts[-1] + rate * lasts_ns)
            times.append(times[-1] + lasts_ns)
        return counts, times, scaled, SECOND_NS * common

    @property
    def endless(self) -> bool:
        return False

    @property
    def end_ns(self) -> int:
        return self._table[1][-1]

    def time_ns(self, count: int) -> int | None:
        """Return when `count` / UNIT arrivals are expected; None if never. Nothing comes in a step of rate 0."""
        counts, times, rates, scale = self._table
        scaled = count * scale
        # The last step that begins at this count: where the rate is 0 several do, and the arrival waits for the end.
        step = bisect_right(counts, scaled) - 1
        if step == len(rates):
            return None
        return times[step] + (scaled - counts[step]) // rates[step]

    def expected(self, t_ns: int) -> Fraction:
        """Return how many arrivals are expected before a time."""
        counts, times, rates, scale = self._table
        t_ns = max(0, t_ns)
        step = bisect_right(times, t_ns) - 1
        beyond = 0 if step == len(rates) else rates[step] * (t_ns - times[step])
        return Fraction(counts[step] + beyond, scale * UNIT)


Profile = Level | Slope | Stairs
