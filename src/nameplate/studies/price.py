"""What a confidence costs: told before anything is sent, and again, with the time, when confirming begins."""

from __future__ import annotations

from collections.abc import Iterable

from nameplate.contract.contract import Contract
from nameplate.contract.levels import levels_of
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.measure.result import TrialResult
from nameplate.studies.plans import Planner
from nameplate.verdict.certainty import Demand, allowed, claim, demand

# A baseline, some seven probes, and the two or three levels on the far side of the boundary.
_BESIDE_TRIALS = 8
_FAR_LEVELS = 2


def expected_trials(contract: Contract) -> int:
    """Return roughly how many trials a shape takes, for the time left and for a budget; not a bound."""
    # Without a confidence the far side is one level: a fail beside the pass.
    far = 1 if contract.rules.confidence is None else _FAR_LEVELS
    return _BESIDE_TRIALS + passing_trials(contract) + far * contract.rules.confirmations


def passing_trials(contract: Contract) -> int:
    """Return how many trials the level that is rated must pass, if it is the first candidate or above it."""
    return contract.rules.confirmations if contract.rules.confidence is None else _needs(contract).trials


def usual_budget(contract: Contract) -> int:
    """Return how many trials a shape may use where nobody said: the protocol's, and what a confidence adds.

    Six times what it adds to one level: those that are tried before and above, and neither fail nor are certified,
    take all of their trials too.
    """
    usual = Rules().max_trials
    if contract.rules.confidence is None:
        return usual
    return usual + 6 * (_needs(contract).trials - contract.rules.confirmations)


def asked(contract: Contract) -> str | None:
    """Say what the contract's confidence asks of a level and costs in requests; None where there is none."""
    rules = contract.rules
    if rules.confidence is None:
        return None
    n, needs = _requests(contract), _needs(contract)
    strictest = min(contract.slos, key=claim)
    few = allowed(n * needs.trials, claim(strictest), needs.confidence)
    passing, usual = (trials * (n + rules.warmup) for trials in (needs.trials, rules.confirmations))
    return (
        f"a confidence of {rules.confidence * 100:.8g}% takes {needs.trials} trials of {n:,} requests for the level "
        f"that is rated, warm-ups included {passing:,} requests instead of {usual:,}: all must pass, and either "
        f"at most {few:,} of {needs.trials * n:,} requests are over {strictest}, or the trials lie so close together "
        f"that a further one would pass too; a level with a failing trial costs {rules.confirmations} as ever"
    )


def forecast(contract: Contract, plan: TrialPlan, results: Iterable[TrialResult]) -> str | None:
    """Say how long certifying the first candidate takes, from the probe of its level; None without a confidence."""
    rules = contract.rules
    if rules.confidence is None:
        return None
    own = [result for result in results if result.plan.shape == plan.shape]
    probes = [result for result in own if result.plan.role == "locator" and result.plan.requests]
    if not probes:
        return None
    probe = next((one for one in probes if one.plan.level == plan.level), probes[-1])
    needs = demand(rules, [(slo, plan.requests) for slo in contract.slos])
    alone = next(
        (one.measurement.latencies.whole.e2e.p50 for one in own if one.plan.role == "baseline"), None
    )
    warmup_s = (plan.warmup - probe.plan.warmup) * (alone or 0.0) / 1e9
    trial_s = probe.elapsed_s * plan.requests / probe.plan.requests + warmup_s + plan.quiet_s
    whole_s = needs.trials * trial_s
    time = f"{whole_s:.0f} s" if whole_s < 100 else f"{whole_s / 60:,.0f} min"
    return (
        f"certifying {levels_of(contract).name(plan.level)} takes {needs.trials} trials, "
        f"{needs.trials * plan.requests:,} measured requests, about {time} with warm-ups and quiet intervals"
    )


def _requests(contract: Contract) -> int:
    """Return the requests of a trial at the lowest level; higher ones have as many or more."""
    planner = Planner(contract, contract.shapes[0])
    return planner.confirmation(levels_of(contract).lowest, 1).requests


def _needs(contract: Contract) -> Demand:
    n = _requests(contract)
    return demand(contract.rules, [(slo, n) for slo in contract.slos])
