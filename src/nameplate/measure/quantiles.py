"""The percentiles of one latency as a plate shows them."""

from __future__ import annotations

from msgspec import Struct

from nameplate.statistics.percentile import Distribution


class Quantiles(Struct, frozen=True):
    """Hold n, p50, p95 and p99 of one latency in nanoseconds; `unsupported` names those that n does not carry."""

    n: int
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    unsupported: tuple[str, ...] = ()


def quantiles(distribution: Distribution) -> Quantiles:
    """Return a distribution's p50, p95 and p99."""
    shown = tuple(name for name in distribution.unsupported if name != "p90")
    return Quantiles(distribution.n, distribution.p50, distribution.p95, distribution.p99, shown)
