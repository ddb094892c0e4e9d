"""The runner: drives any study with any executor. Sealed trials are replayed before new ones are run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from typing import TypeVar

from msgspec import structs

from nameplate.contract.errors import CallerError, NameplateError
from nameplate.contract.plan import TrialPlan

R = TypeVar("R")
T = TypeVar("T")


def run(
    study: Generator[TrialPlan, R, T],
    execute: Callable[[TrialPlan], R],
    *,
    sealed: Mapping[str, R] | None = None,
    spoiled: Collection[str] = (),
    on_trial: Callable[[TrialPlan, R, bool], None] | None = None,
) -> T:
    """Drive a study to its end and return its verdict.

    What a trial's result is, study and executor know alone.
    `sealed` are the results of an interrupted study by plan key: they stand for their trials, and nothing is run for
    them. `spoiled` are keys whose prompts were used and whose trials do not count; a plan with such a key runs as
    its next attempt, with new prompts. `on_trial(plan, result, replayed)` is called after each trial, before the
    study decides on. Interruptions and faults of a trial go to the study, which ends with a status of its own;
    CallerError, and what the study does not handle, is raised.
    """
    known = {} if sealed is None else sealed
    try:
        plan = next(study)
        while True:
            actual = _unspoiled(plan, spoiled)
            result = known.get(actual.key)
            replayed = result is not None
            try:
                if result is None:
                    result = execute(actual)
            except CallerError:
                study.close()
                raise
            except (KeyboardInterrupt, NameplateError) as error:
                plan = study.throw(error)
                continue
            if on_trial is not None:
                on_trial(actual, result, replayed)
            plan = study.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


def _unspoiled(plan: TrialPlan, spoiled: Collection[str]) -> TrialPlan:
    while plan.key in spoiled:
        plan = structs.replace(plan, attempt=plan.attempt + 1)
    return plan
