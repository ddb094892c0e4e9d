"""The load of a rate study's trial: a function of the contract, the trial's name and level, and what one request takes.

The study plans by it, and `verify` holds every trial's plan against it.
"""

from __future__ import annotations

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rates import RateLevel, arrival_seed


def at_rate(contract: Contract, plan: TrialPlan, level: int, alone_ns: float | None) -> TrialPlan:
    """Return a plan with the open loop of a level as its load; `alone_ns` is the baseline's median E2E latency.

    ValueError for a contract without rates.
    """
    rates = contract.rate
    if rates is None:
        raise ValueError("the levels of this contract are no rates")
    proves = plan.role == "confirmation"
    return structs.replace(
        plan,
        concurrency=rates.outstanding_limit,
        requests=rates.measured_requests(
            level, contract.slos, contract.rules.requests, alone_ns, proves=proves
        ),
        arrivals=rates.arrivals(level, arrival_seed(contract.seed, plan.name)),
        rate_level=RateLevel(level, rates.resolution, proves),
        stop_when_failed=not proves,
    )
