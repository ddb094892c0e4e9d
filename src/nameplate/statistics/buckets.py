"""Quantiles of values that only a histogram's buckets tell: intervals that hold the truth, not a line drawn through.

A bucket says how many values are at or below its upper edge, as Prometheus counts them. The value at a rank therefore
lies above the last edge that fewer values reach and at or below the first edge that enough do; above the last edge
nothing is known.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from nameplate.statistics.percentile import percent_as_fraction

Cumulative = Sequence[tuple[float, int]]


class Interval(Struct, frozen=True):
    """Hold where a quantile lies, edges included; `high` is null where no edge bounds it from above."""

    low: float
    high: float | None


class Counts(Struct, frozen=True):
    """Hold how many of `n` values are at or below each ascending edge, `least` and `most`."""

    n: int
    edges: tuple[float, ...]
    least: tuple[int, ...]
    most: tuple[int, ...]


def counts_of(cumulative: Cumulative, n: int) -> Counts:
    """Return the counts of a histogram of n values as they are."""
    counts = tuple(count for _, count in cumulative)
    return Counts(n, tuple(edge for edge, _ in cumulative), counts, counts)


def without(counts: Counts, bounds: Sequence[float]) -> Counts:
    """Take out values that are known to be among them and at most `bounds`, each at least zero.

    Where all of those lie below an edge the count there stays exact. ValueError for more values than there are.
    """
    left = counts.n - len(bounds)
    if left < 0:
        raise ValueError(f"{len(bounds)} values cannot be taken out of {counts.n}")
    ordered = sorted(bounds)
    surely = [bisect_right(ordered, edge) for edge in counts.edges]
    least = tuple(max(0, count - len(ordered)) for count in counts.least)
    most = tuple(min(left, max(0, count - below)) for count, below in zip(counts.most, surely, strict=True))
    return Counts(left, counts.edges, least, most)


def quantile_interval(counts: Counts, percent: float) -> Interval:
    """Return where the percentile (linear between closest ranks, rank p(n-1)) of these values lies.

    It lies between its two neighbours, so the interval reaches from the bucket of the one to that of the other.
    ValueError where there are no values.
    """
    if counts.n < 1:
        raise ValueError("a quantile of no values")
    rank = percent_as_fraction(percent) * (counts.n - 1)
    below, above = math.floor(rank), math.ceil(rank)
    low = 0.0
    for edge, most in zip(counts.edges, counts.most, strict=True):
        if most > below:
            break
        low = edge
    for edge, least in zip(counts.edges, counts.least, strict=True):
        if least > above:
            return Interval(max(0.0, low), edge)
    return Interval(max(0.0, low), None)
