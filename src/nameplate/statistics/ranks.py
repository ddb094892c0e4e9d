"""Ranks of values, ties at their middle, and the thinning of long series."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nameplate.statistics.percentile import Number


def ranks(values: Sequence[Number]) -> list[float]:
    """Return each value's rank from 1, equal values sharing the middle of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        middle = (start + 1 + end) / 2
        for place in order[start:end]:
            found[place] = middle
        start = end
    return found


def median(values: Sequence[Number]) -> float:
    """Return the middle value, or the mean of the middle two; ValueError where there are none."""
    if not values:
        raise ValueError("a median of no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[half])
    return (ordered[half - 1] + ordered[half]) / 2


def finite(values: Sequence[Number], what: str) -> None:
    """Refuse a series that holds an infinite or undefined value: ValueError that says which."""
    for place, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"value {place} of {what} is {value}: every value must be finite")


def thinned(values: Sequence[Number], most: int) -> tuple[list[float], int]:
    """Return at most `most` medians of equal runs of neighbours, and the run's length; a short last run is dropped.

    A median, since one stall in a run of neighbours must not move its point.
    """
    run = max(1, math.ceil(len(values) / most))
    if run == 1:
        return [float(value) for value in values], 1
    whole = len(values) // run
    return [median(values[i * run : (i + 1) * run]) for i in range(whole)], run
