"""The smallest study: one trial, run once, whatever it shows."""

from __future__ import annotations

from collections.abc import Generator

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.result import TrialResult
from nameplate.schedule.stage import arrivals_planned


def single_plan(
    contract: Contract, shape: Shape, concurrency: int, requests: int | None = None, stagger_ns: int = 0
) -> TrialPlan:
    """Plan one trial; `requests` of None is the protocol's own count for the level."""
    rules = contract.rules
    n = requests if requests is not None else rules.measured_requests(concurrency, contract.slos)
    return TrialPlan(
        name=f"{shape.input_tokens}-{shape.output_tokens}.c{concurrency}",
        role="single",
        shape=shape,
        concurrency=concurrency,
        requests=n,
        warmup=rules.warmup,
        start=rules.start,
        stagger_ns=stagger_ns,
    )


def open_plan(
    contract: Contract, shape: Shape, arrivals: ArrivalPlan, requests: int | None = None
) -> TrialPlan:
    """Plan one trial of an open loop; `requests` of None is what the SLOs' percentiles ask for, 64 at least.

    A ramp, steps or a trace end by themselves, and `requests` only bounds them.
    """
    if arrivals.steady:
        n = requests if requests is not None else contract.rules.measured_requests(1, contract.slos)
        load = f"r{arrivals.rate:g}"
    else:
        n = arrivals_planned(arrivals)
        n = n if requests is None else min(n, requests)
        load = "trace" if arrivals.trace is not None else "ramp" if arrivals.ramp is not None else "steps"
    return TrialPlan(
        name=f"{shape.input_tokens}-{shape.output_tokens}.{load}",
        role="single",
        shape=shape,
        concurrency=arrivals.outstanding_limit,
        requests=n,
        warmup=contract.rules.warmup,
        arrivals=arrivals,
    )


def single(plan: TrialPlan) -> Generator[TrialPlan, TrialResult, TrialResult]:
    """Run one trial and return its result; an invalid one is not replaced."""
    result = yield plan
    return result
