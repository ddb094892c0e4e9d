"""What a capacity result means, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.contract.contract import Contract
from nameplate.contract.slo import Slo
from nameplate.measure.plate import PlateShape
from nameplate.report import numbers
from nameplate.verdict.boundary import Status


def promise(slos: Sequence[Slo]) -> str:
    """Say all SLOs as one promise."""
    said = [numbers.promise(slo) for slo in slos]
    if len(said) < 2:
        return "".join(said) or "no SLO"
    return f"{', '.join(said[:-1])} and {said[-1]}"


def answer(shape: PlateShape, contract: Contract) -> str:
    """Say the answer for one shape in one sentence."""
    held, what, trials = promise(contract.slos), f"{shape.shape} requests", contract.rules.confirmations
    rated, status = shape.rated, shape.status
    if status is Status.confirmed and rated == 0:
        return f"Not one: a single {shape.shape} request at a time already breaks {held}, in all {trials} trials."
    if status is Status.confirmed:
        return (
            f"{rated} concurrent {what} hold {held}; {shape.fail_level} do not "
            f"({trials} of {trials} independent trials each)."
        )
    if status is Status.noisy and rated is not None:
        noise = f"at {_levels(shape.noisy)} the trials disagree, and noise is not rounded upwards"
        if rated == 0:
            return f"Not one {what[:-1]} is certain to hold {held}: {noise}."
        return f"{rated} concurrent {what} hold {held}; {noise}."
    if status is Status.open_above:
        return f"At least {rated} concurrent {what} hold {held}; no more was tried, so the limit lies above."
    if status is Status.open_below:
        return (
            f"No number: even {shape.fail_level} concurrent {what}, the fewest allowed, do not hold {held}."
        )
    if status is Status.budget and rated is not None:
        return f"At least {rated} concurrent {what} hold {held}; the budget ended before the limit was found."
    why = {
        Status.budget: "the budget ended before any level was confirmed",
        Status.invalid: "the evidence does not support one",
        Status.interrupted: "the study was interrupted",
    }.get(status, "nothing was confirmed")
    return f"No number for {what} under {held}: {why}."


def _levels(levels: Sequence[int]) -> str:
    return " and ".join(f"C={level}" for level in levels) or "the next level"


def meaning(shape: PlateShape, contract: Contract) -> str:
    """Say what the status means and what can be done about it."""
    trials, rules = contract.rules.confirmations, contract.rules
    match shape.status:
        case Status.confirmed if shape.rated == 0:
            return "Level 1 failed in every confirmation. Loosen the limit, shorten the shape, or use a faster server."
        case Status.confirmed:
            return (
                f"C={shape.pass_level} passed and C={shape.fail_level} failed in all {trials} trials, each with a "
                "load process, prompts and evidence of its own."
            )
        case Status.noisy:
            return (
                "Trials of the same level disagree. --extra-confirmations or more --requests may settle it; "
                "until then the level below the noise is the number."
            )
        case Status.open_above:
            return f"C={rules.max_concurrency}, the highest level allowed, passed. Raise --max to find the limit."
        case Status.open_below:
            return (
                f"C={rules.min_concurrency}, the lowest level allowed, failed. Lower --min to find the limit."
            )
        case Status.budget:
            return (
                "Trials or time ran out before a pass and a fail stood side by side. Raise --max-trials, and go on "
                "with --resume."
            )
        case Status.invalid:
            return "Trials broke the contract, so they say nothing about capacity. Mend what is named and run again."
        case Status.interrupted:
            return "What was sealed until then stands. Go on with --resume."


def operating(shape: PlateShape, contract: Contract) -> str:
    """Say the operating number, which is a policy and never stands for the rated one."""
    below = contract.rules.operate_below
    if shape.operate_at is None:
        return "- (no rated number)"
    if below == 0:
        return f"{shape.operate_at} concurrent (policy: at the rated number)"
    step = "one step" if below == 1 else f"{below} steps"
    return f"{shape.operate_at} concurrent (policy: {step} below the rated number)"
