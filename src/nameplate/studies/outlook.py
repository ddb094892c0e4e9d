"""How long a rate study takes, told before anything is sent: a trial lasts as long as its requests take to arrive."""

from __future__ import annotations

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.plan import TrialPlan
from nameplate.studies.price import passing_trials

# Rates that are told where none is known yet, in requests a second.
_SHOWN = (10.0, 1.0, 0.1)


def arriving_s(plan: TrialPlan) -> float | None:
    """Return how long an open loop's requests take to arrive, in seconds; None for a closed loop."""
    return None if plan.arrivals is None else plan.requests / plan.arrivals.rate


def outlook(contract: Contract) -> tuple[str, ...]:
    """Say what a rate study costs before its rate is known; nothing of a capacity study."""
    rates, rules = contract.rate, contract.rules
    if rates is None:
        return ()
    requests = rates.measured_requests(
        rates.grid.at_least(rates.min_per_s), contract.slos, rules.requests, proves=True
    )
    known = [rate for rate in _SHOWN if rates.min_per_s <= rate <= rates.max_per_s]
    shown = [rates.guess_per_s] if rates.guess_per_s is not None else known or [rates.max_per_s]
    lasts = ", ".join(f"{_rough(requests / rate)} at {rate:g} req/s" for rate in shown)
    quiet = f", each after {rules.quiet_s:g} s of quiet" if rules.quiet_s else ""
    first = f"a trial of {requests:,} requests lasts as long as they take to arrive: {lasts}"
    whole = (
        f"the study is a baseline, a search that stops what is certain to fail, and "
        f"{passing_trials(contract) + rules.confirmations} "
        f"confirmations at the rate it finds{quiet}"
    )
    return f"note: {first}; more where ten answers take longer", f"note: {whole}"


def confirming(contract: Contract, plan: TrialPlan) -> str | None:
    """Say how long the confirmations take, when the first of them begins; None in a study of concurrency."""
    takes_s = arriving_s(plan)
    if contract.rate is None or takes_s is None:
        return None
    trials = passing_trials(contract) + contract.rules.confirmations
    whole_s = trials * (takes_s + plan.quiet_s)
    here = levels_of(contract).name(plan.level)
    return (
        f"note: {trials} confirmations of {plan.requests:,} requests, at {here} and the next rate, take about "
        f"{_rough(whole_s)}; more where trials disagree"
    )


def _rough(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
