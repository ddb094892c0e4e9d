"""The plan of one trial: what a study asks for and an executor carries out."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.rules import StartPolicy
from nameplate.contract.shape import Shape

Role = Literal["baseline", "locator", "confirmation", "single"]


class TrialPlan(Struct, frozen=True):
    """Ask for one trial.

    `name` is unique in its study and part of every prompt's key; `attempt` counts replacements of an invalid
    trial from 0. `requests` are measured, after `warmup` at concurrency one. `stagger_ns` is the distance
    between the first starts of neighbouring slots under the `staggered` policy. `stop_when_failed` lets the
    load stop once failure is certain. `quiet_s` is waited before the trial begins. `outputs_must_differ` is set
    where the baseline's outputs were unique, so that a repeated answer breaks the contract.
    """

    name: str
    role: Role
    shape: Shape
    concurrency: int
    requests: int
    warmup: int
    attempt: int = 0
    start: StartPolicy = "burst"
    stagger_ns: int = 0
    stop_when_failed: bool = False
    quiet_s: float = 0.0
    outputs_must_differ: bool = False

    @property
    def key(self) -> str:
        """Name the trial and its attempt: the directory's name and the prompts' key."""
        return self.name if self.attempt == 0 else f"{self.name}.retry{self.attempt}"
