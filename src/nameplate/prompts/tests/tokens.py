"""Scripted tokenizers: every word has a cost of its own, after a split like that of the common tokenizers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

Counter = Callable[[str], int]
_SPLIT = re.compile(r" ?\w+|[^\w\s]+|\s+")


def additive(salt: str, cheapest: int = 1, dearest: int = 1) -> Counter:
    """Count a text as the sum of its words; a word's cost is drawn by its hash, a single letter's is 1."""
    known: dict[str, int] = {}

    def cost(word: str) -> int:
        if len(word.strip()) == 1:
            return 1
        drawn = hashlib.sha256(f"{salt}/{word}".encode()).digest()[0]
        return cheapest + drawn % (dearest - cheapest + 1)

    def count(text: str) -> int:
        total = 0
        for word in _SPLIT.findall(text):
            if word not in known:
                known[word] = cost(word)
            total += known[word]
        return total

    return count
