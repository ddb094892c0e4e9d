"""What the levels of a study are: numbers of requests in flight, or rates on a grid. A level itself is an integer.

A study, its verdict and `verify` count, compare and bisect integers; only what a level is called, what it is worth and
how far it goes differs between a capacity study and a rate study, and stands here.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape


class ConcurrencyLevels(Struct, frozen=True):
    """Hold the levels of a capacity study: level C is C requests in flight. Below 1 lies 0, which is an answer."""

    rules: Rules

    noun: ClassVar[str] = "concurrent"
    head: ClassVar[str] = "C"
    admit_by: ClassVar[str] = "concurrency"

    @property
    def lowest(self) -> int:
        return self.rules.min_concurrency

    @property
    def highest(self) -> int:
        return self.rules.max_concurrency

    @property
    def zero_below(self) -> bool:
        """Say whether a lowest level that fails is an answer, zero, and not an open end."""
        return self.lowest == 1

    @property
    def guess(self) -> int | None:
        return self.rules.first_guess

    def start(self, alone_ns: float | None) -> int:  # noqa: ARG002 - what one request alone takes tells nothing here
        """Return where the locator begins without a guess."""
        return max(2, self.lowest)

    def doubled(self, level: int) -> int:
        return 2 * level

    def halved(self, level: int) -> int:
        return level // 2

    def lower(self, level: int, steps: int) -> int:
        """Return the level so many steps below; never below zero."""
        return max(0, level - steps)

    def value(self, level: int) -> int:
        return level

    def told(self, level: int) -> str:
        """Write a level without its unit, as in a table."""
        return f"{level:,}"

    def name(self, level: int) -> str:
        """Name a level with its unit, as in a sentence."""
        return f"C={level}"

    def load(self, level: int, shape: Shape) -> str:
        """Say the load of a level, as in a sentence."""
        return f"{level} concurrent {shape} requests"

    def slug(self, level: int) -> str:
        """Name a level within a directory's name."""
        return f"c{level}"


class RateLevels(Struct, frozen=True):
    """Hold the levels of a rate study: level k is the k-th rate of the grid, in requests a second."""

    rates: RateRules

    noun: ClassVar[str] = "requests/s"
    head: ClassVar[str] = "req/s"
    admit_by: ClassVar[str] = "requests a second"
    zero_below: ClassVar[bool] = False

    @property
    def lowest(self) -> int:
        return self.rates.grid.at_least(self.rates.min_per_s)

    @property
    def highest(self) -> int:
        return self.rates.grid.at_most(self.rates.max_per_s)

    @property
    def guess(self) -> int | None:
        guess = self.rates.guess_per_s
        return None if guess is None else self.rates.grid.at_most(guess)

    def start(self, alone_ns: float | None) -> int:
        """Return where the locator begins without a guess: at the rate that takes one request after the other."""
        return self.rates.grid.at_most(1e9 / alone_ns if alone_ns else 1.0)

    def doubled(self, level: int) -> int:
        return level + self.rates.grid.octave

    def halved(self, level: int) -> int:
        return level - self.rates.grid.octave

    def lower(self, level: int, steps: int) -> int:
        return level - steps

    def value(self, level: int) -> float:
        """Return a level's rate in requests a second."""
        return self.rates.grid.rate(level)

    def told(self, level: int) -> str:
        return f"{self.value(level):g}"

    def name(self, level: int) -> str:
        return f"{self.value(level):g} req/s"

    def load(self, level: int, shape: Shape) -> str:
        return f"{self.value(level):g} requests/s of {shape} ({self.rates.spread} arrivals)"

    def slug(self, level: int) -> str:
        return f"r{self.value(level):g}"


Levels = ConcurrencyLevels | RateLevels


def told_rated(levels: Levels, rated: int | None) -> str:
    """Say a rated level, or that there is none, for records."""
    return "None" if rated is None else f"{levels.value(rated):g}"


def levels_of(contract: Contract) -> Levels:
    """Return what the levels of a contract's study are."""
    return ConcurrencyLevels(contract.rules) if contract.rate is None else RateLevels(contract.rate)
