"""What a rated result means, in sentences: of concurrency or of rate."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.contract.contract import Contract
from nameplate.contract.errors import ServerError
from nameplate.contract.levels import Levels, levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.plate import Plate, PlateShape
from nameplate.report import numbers
from nameplate.report.certainty import carried_by, certified_means, doubt_at, doubt_means
from nameplate.verdict.boundary import Status
from nameplate.verdict.warnings import Code, Warned


def promise(slos: Sequence[Slo]) -> str:
    """Say all SLOs as one promise."""
    said = [numbers.promise(slo) for slo in slos]
    if len(said) < 2:
        return "".join(said) or "no SLO"
    return f"{', '.join(said[:-1])} and {said[-1]}"


def answer(shape: PlateShape, contract: Contract) -> str:
    """Say the answer for one shape in one sentence."""
    held, trials, levels = promise(contract.slos), contract.rules.confirmations, levels_of(contract)
    rated, status = shape.rated, shape.status
    load = "" if rated is None else levels.load(rated, shape.shape)
    if status is Status.confirmed and shape.pass_level is None:
        return f"Not one: a single {shape.shape} request at a time already breaks {held}, in all {trials} trials."
    if status is Status.confirmed and shape.fail_level is not None:
        return f"{load} hold {held}; {levels.told(shape.fail_level)} do not ({carried_by(contract.rules)})."
    if status is Status.noisy and rated is not None:
        noise = doubt_at(_named(shape.noisy, levels), contract.rules)
        if shape.pass_level is None:
            return f"Not one {shape.shape} request is certain to hold {held}: {noise}."
        return f"{load} hold {held}; {noise}."
    if status is Status.open_above:
        return f"At least {load} hold {held}; no more was tried, so the limit lies above."
    if status is Status.open_below and shape.fail_level is not None:
        fewest = levels.load(shape.fail_level, shape.shape)
        return f"No number: even {fewest}, the fewest allowed, do not hold {held}."
    if status is Status.budget and rated is not None:
        return f"At least {load} hold {held}; the budget ended before the limit was found."
    why = {
        Status.budget: "the budget ended before any level was confirmed",
        Status.invalid: "the evidence does not support one",
        Status.interrupted: "the server was lost" if lost(shape) else "the study was interrupted",
    }.get(status, "nothing was confirmed")
    return f"No number for {shape.shape} requests under {held}: {why}."


def lost(shape: PlateShape) -> bool:
    """Tell whether a lost server ended the search, and not a person."""
    return shape.status is Status.interrupted and shape.exit_code == ServerError.exit_code


def _named(judged: Sequence[int], levels: Levels) -> str:
    return " and ".join(map(levels.name, judged)) or "the next level"


def meaning(shape: PlateShape, contract: Contract) -> str:
    """Say what the status means and what can be done about it."""
    trials, levels = contract.rules.confirmations, levels_of(contract)
    passing, failing = (
        "nothing" if level is None else levels.name(level) for level in (shape.pass_level, shape.fail_level)
    )
    match shape.status:
        case Status.confirmed if shape.pass_level is None:
            return "Level 1 failed in every confirmation. Loosen the limit, shorten the shape, or use a faster server."
        case Status.confirmed if contract.rules.confidence is not None:
            return certified_means(passing, failing, contract.rules)
        case Status.confirmed:
            return (
                f"{passing} passed and {failing} failed in all {trials} trials, each with a "
                "load process, prompts and evidence of its own."
            )
        case Status.noisy:
            return doubt_means(contract.rules)
        case Status.open_above:
            return f"{levels.name(levels.highest)}, the highest level allowed, passed. Raise --max to find the limit."
        case Status.open_below:
            lowest = levels.name(levels.lowest)
            return f"{lowest}, the lowest level allowed, failed. Lower --min to find the limit."
        case Status.budget:
            return (
                "Trials or time ran out before a pass and a fail stood side by side. Raise --max-trials, and go on "
                "with --resume."
            )
        case Status.invalid:
            return "Trials broke the contract, so they say nothing about capacity. Mend what is named and run again."
        case Status.interrupted if lost(shape):
            return (
                "The server stopped answering, so the study could not go on. What was sealed until then stands. Find "
                "out why it was lost, and go on with --resume."
            )
        case Status.interrupted:
            return "What was sealed until then stands. Go on with --resume."


def warnings_of(shape: PlateShape) -> tuple[Warned, ...]:
    """Return a shape's warnings; without a rated number none that speaks of one."""
    return tuple(one for one in shape.warnings if shape.rated or one.code is not Code.e2e_without_gate)


def overall_warnings(plate: Plate) -> tuple[Warned, ...]:
    """Return a plate's warnings; numbers are no alternatives where there are not two."""
    rated = sum(shape.rated is not None for shape in plate.shapes)
    return tuple(one for one in plate.warnings if rated > 1 or one.code is not Code.alternatives)


def operating(shape: PlateShape, contract: Contract) -> str:
    """Say the operating number, which is a policy and never stands for the rated one."""
    below, levels = contract.rules.operate_below, levels_of(contract)
    if shape.operate_at is None:
        return "- (no rated number)"
    said = f"{levels.told(shape.operate_at)} {levels.noun}"
    if below == 0:
        return f"{said} (policy: at the rated number)"
    step = "one step" if below == 1 else f"{below} steps"
    return f"{said} (policy: {step} below the rated number)"
