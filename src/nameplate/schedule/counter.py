"""A counter-based generator: the n-th number of a stream is a pure function of the seed, the purpose and n.

The generator is SplitMix64 (G. L. Steele, D. Lea, C. H. Flood: "Fast splittable pseudorandom number generators",
OOPSLA 2014, with the mixing function of its `nextSeed` / `mix64`, variant 13 of D. Stafford). It is a counter by
nature: number n is mix(key + (n + 1) x golden). The mixing is a bijection of 64 bits, so different counters of a
stream never give the same word by construction.
"""

from __future__ import annotations

import hashlib
from typing import Final

MASK: Final = (1 << 64) - 1

GOLDEN: Final = 0x9E3779B97F4A7C15
"""The odd integer nearest to 2**64 over the golden ratio: SplitMix64's increment."""

MAXIMUM_INDEX: Final = 1 << 40
"""A counter is an index below this and, above it, how many numbers of that index were used before (24 bits)."""

_UNIT: Final = 2.0**-53


def key_of(seed: int, purpose: str) -> int:
    """Return the 64-bit key of a stream; the same seed with another purpose is an unrelated stream."""
    return int.from_bytes(hashlib.sha256(f"{purpose}\n{seed}".encode()).digest()[:8], "big")


def word(key: int, index: int, use: int = 0) -> int:
    """Return the 64-bit word of an index; `use` counts the words that one index takes, from 0."""
    z = (key + (index + (use << 40) + 1) * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform(key: int, index: int, use: int = 0) -> float:
    """Return a number in (0, 1], a multiple of 2**-53; never 0, so its logarithm is finite."""
    # `word`, written out: it is asked once for every arrival, in the loop that sends them.
    z = (key + (index + (use << 40) + 1) * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return (((z ^ (z >> 31)) >> 11) + 1) * _UNIT
