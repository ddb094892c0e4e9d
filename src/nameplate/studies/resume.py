"""What an interrupted study left behind, and how its decisions are made again from it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.studies.runner import run

T = TypeVar("T")


class Leftover(Struct, frozen=True):
    """Hold the sealed trials that count, by key, and the keys of those that do not: unsealed or interrupted."""

    sealed: Mapping[str, TrialResult]
    spoiled: frozenset[str]


def leftover(results: Iterable[TrialResult], unsealed: Iterable[str]) -> Leftover:
    """Sort what was found: `results` of sealed trials, `unsealed` the keys of directories without a manifest.

    EvidenceError where two results carry the same key.
    """
    sealed: dict[str, TrialResult] = {}
    spoiled = set(unsealed)
    for result in results:
        key = result.plan.key
        if key in sealed or key in spoiled:
            raise EvidenceError(f"Two trials of the study are called {key}.")
        if result.interrupted:
            spoiled.add(key)
        else:
            sealed[key] = result
    return Leftover(sealed, frozenset(spoiled))


class NotRun(Exception):  # noqa: N818 - it is an outcome, not a fault
    """A replay came to a trial that was never sealed."""

    def __init__(self, plan: TrialPlan) -> None:
        super().__init__(f"{plan.key} was not run")
        self.plan = plan


def replay(study: Generator[TrialPlan, TrialResult, T], left: Leftover) -> T:
    """Make a study's decisions again from sealed results alone; NotRun at the first trial that is missing."""

    def refuse(plan: TrialPlan) -> TrialResult:
        raise NotRun(plan)

    return run(study, refuse, sealed=left.sealed, spoiled=left.spoiled)
