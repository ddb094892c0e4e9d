"""Statistics as the llm-d benchmark report has them: a mean, extremes and percentiles, with their unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from nameplate.statistics.percentile import Distribution, percentile, supported

SECONDS, PER_TOKEN, COUNT = "s", "s/token", "count"
TOKENS_PER_S, QUERIES_PER_S = "tokens/s", "queries/s"
NS = 1e9

_PERCENTS: Mapping[str, float] = {
    "p0p1": 0.1, "p1": 1.0, "p5": 5.0, "p10": 10.0, "p25": 25.0, "p50": 50.0, "p75": 75.0, "p90": 90.0, "p95": 95.0,
    "p99": 99.0, "p99p9": 99.9,
}  # fmt: skip


def statistics_of(values: Iterable[float | None], units: str, divisor: float = 1.0) -> dict[str, Any] | None:
    """Return the statistics of the values that are known; None where there are none.

    A percentile that so few values do not carry is left out: the schema has no place to mark it.
    """
    ordered = sorted(value / divisor for value in values if value is not None)
    if not ordered:
        return None
    n = len(ordered)
    mean = math.fsum(ordered) / n
    told: dict[str, Any] = {"units": units, "mean": mean}
    told["stddev"] = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / n)
    told["min"] = ordered[0]
    told |= {
        name: percentile(ordered, percent) for name, percent in _PERCENTS.items() if _carried(n, percent)
    }
    return told | {"max": ordered[-1]}


def mean_alone(value: float | None, units: str) -> dict[str, Any] | None:
    """Return the statistics of what has one value; None where that is not known."""
    return None if value is None else {"units": units, "mean": value}


def point_of(held: Distribution, divisor: float = NS) -> dict[str, float] | None:
    """Return a distribution as a point of a series; None where it has no mean."""
    if held.mean is None:
        return None
    names = ("mean", "min", "p50", "p90", "p95", "p99", "max")
    return {
        name: value / divisor
        for name in names
        if name not in held.unsupported and (value := getattr(held, name)) is not None
    }


def known(**values: Any) -> dict[str, Any]:
    """Return what is there: in such a report absent is absent, and an empty part too."""
    return {name: value for name, value in values.items() if value is not None and value != {}}


def _carried(n: int, percent: float) -> bool:
    return supported(n, max(percent, 100.0 - percent))
