"""What a plate shows of a rate: the rates behind its levels, and each trial's open loop."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.levels import RateLevels
from nameplate.measure.quantiles import Quantiles, quantiles
from nameplate.measure.result import TrialResult
from nameplate.verdict.boundary import Boundary


class PlateRates(Struct, frozen=True, kw_only=True):
    """Hold in requests a second what a shape's levels stand for."""

    rated_per_s: float | None
    operate_at_per_s: float | None
    pass_per_s: float | None
    fail_per_s: float | None
    noisy_per_s: tuple[float, ...]


class PlateOpen(Struct, frozen=True, kw_only=True):
    """Hold one trial's open loop; what each means is said where it is measured.

    `queue` is the conclusion on the outstanding requests, `growth` and `most_growth` their rise as a share of the
    arrivals, `latency` that on the thirds of the arrivals, whose waits are `thirds_ns`. Null is too little to tell.
    """

    asked_per_s: float
    delivered_per_s: float | None
    ttft_from_schedule: Quantiles
    e2e_from_schedule: Quantiles | None
    met: int | None
    goodput_per_s: float | None
    outstanding_mean: float | None
    outstanding_max: int | None
    little: float | None
    warm_up_s: float | None
    queue: str | None
    growth: float | None
    most_growth: float | None
    growth_p_value: float | None
    latency: str | None
    thirds_ns: tuple[float, float, float] | None


def plate_rates(contract: Contract, found: Boundary, operate_at: int | None) -> PlateRates | None:
    """Return the rates of a shape's boundary; None in a study of concurrency."""
    if contract.rate is None:
        return None
    levels = RateLevels(contract.rate)

    def rate(level: int | None) -> float | None:
        return None if level is None else levels.value(level)

    return PlateRates(
        rated_per_s=rate(found.rated),
        operate_at_per_s=rate(operate_at),
        pass_per_s=rate(found.pass_level),
        fail_per_s=rate(found.fail_level),
        noisy_per_s=tuple(levels.value(level) for level in found.noisy),
    )


def plate_open(result: TrialResult) -> PlateOpen | None:
    """Return a trial's open loop; None for a closed one."""
    arrivals, measured, facts = result.plan.arrivals, result.measurement, result.facts.queue
    if arrivals is None:
        return None
    latencies, sustained, queueing = measured.latencies.whole, measured.sustained, measured.queueing
    grown = queueing.outstanding if queueing is not None else None
    thirds = queueing.thirds if queueing is not None else None
    e2e = latencies.e2e_from_schedule
    return PlateOpen(
        asked_per_s=arrivals.rate,
        delivered_per_s=measured.delivered.rate if measured.delivered is not None else None,
        ttft_from_schedule=quantiles(latencies.ttft_from_schedule),
        e2e_from_schedule=None if e2e is None else quantiles(e2e),
        met=sustained.met if sustained is not None else None,
        goodput_per_s=sustained.goodput if sustained is not None else None,
        outstanding_mean=sustained.outstanding_mean if sustained is not None else None,
        outstanding_max=sustained.outstanding_max if sustained is not None else None,
        little=sustained.little if sustained is not None else None,
        warm_up_s=queueing.warm_up_s if queueing is not None else None,
        queue=None if grown is None else grown.conclusion,
        growth=None if grown is None else grown.growth,
        most_growth=None if grown is None else grown.most_growth,
        growth_p_value=None if grown is None else grown.p_value,
        latency=None if facts is None else facts.latency,
        thirds_ns=None if thirds is None else thirds.sizes,
    )
