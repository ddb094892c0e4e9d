"""What a plate qualifies and what it does not."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.shape import Shape

_LATENCIES = ("ttft", "itl", "e2e")


class Scope(Struct, frozen=True):
    """Hold two lists of sentences: what the rated number covers, and what it says nothing about."""

    qualified: tuple[str, ...]
    not_qualified: tuple[str, ...]


def _loop(contract: Contract) -> tuple[str, ...]:
    rates = contract.rate
    if rates is None:
        return (f"closed loop, start policy {contract.rules.start}",)
    return (
        f"open loop, {rates.spread} arrivals, latency from schedule",
        "a queue that does not grow and a latency that does not rise",
    )


def scope_of(contract: Contract, shape: Shape) -> Scope:
    """List what a study of this contract and shape qualifies: of concurrency, or of rate."""
    cache = (
        "cold prompts, unique from the first token of the user text"
        if contract.cache.cold
        else f"prompts that share a warm prefix of {contract.cache.shared_prefix_tokens} tokens"
    )
    qualified = (
        *(str(slo) for slo in contract.slos),
        *_loop(contract),
        f"shape {shape}" + ("" if contract.sampling.ignore_eos else ", answers stop naturally"),
        cache,
    )
    gated = {slo.metric for slo in contract.slos}
    judged = {slo.metric: slo.percentile for slo in contract.slos if slo.percentile is not None}
    missing = [f"other percentiles of {metric} than p{percent:g}" for metric, percent in judged.items()]
    missing += [f"{metric.upper()} at any percentile" for metric in _LATENCIES if metric not in gated]
    missing += [
        "arrival rates (open loop)"
        if contract.rate is None
        else "concurrency (closed loop), and other arrivals",
        "mixtures of shapes",
        "other shapes",
        "warm caches" if contract.cache.cold else "cold caches",
    ]
    return Scope(qualified, tuple(missing))
