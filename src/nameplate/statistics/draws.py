"""Draws from a seed, the same on every machine and for ever: SplitMix64."""

from __future__ import annotations

import math

# SplitMix64: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", OOPSLA.
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Draws:
    """Draw numbers from a 64-bit seed; a resampling result is a pure function of it."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def bits(self) -> int:
        """Return 64 random bits."""
        self._state = (self._state + _GOLDEN) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def uniform(self) -> float:
        """Return a number inside 0..1, neither end included."""
        return ((self.bits() >> 11) + 0.5) * 2.0**-53

    def below(self, n: int) -> int:
        """Return a whole number in 0..n-1; its bias is n / 2^64."""
        return (self.bits() * n) >> 64

    def run_length(self, mean: float) -> int:
        """Return a geometric number of at least 1 with this mean."""
        if mean <= 1:
            return 1
        return 1 + math.floor(math.log(self.uniform()) / math.log1p(-1 / mean))
