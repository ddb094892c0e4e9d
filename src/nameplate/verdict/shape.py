"""The answer for one shape, and the decisions that led to it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.shape import Shape
from nameplate.verdict.boundary import Boundary
from nameplate.verdict.level import LevelVerdict
from nameplate.verdict.trial import TrialStatus

Step = Literal["baseline", "locate", "confirm", "replace", "judge", "settle", "stop"]


class Decision(Struct, frozen=True):
    """Hold one decision of a study and its reason; `trial` is the key of the trial that it asked for or judged."""

    shape: Shape
    step: Step
    what: str
    reason: str
    level: int | None = None
    trial: str | None = None


class ShapeVerdict(Struct, frozen=True):
    """Hold one shape's boundary with its levels, lowest first.

    `operate_at` is the operating policy, `rated` less the contract's step below, and never stands in its place.
    `trials` names every trial that was run for the shape with its status, in order. `spent_s` is the time that they
    took with their quiet intervals.
    """

    shape: Shape
    boundary: Boundary
    levels: tuple[LevelVerdict, ...]
    operate_at: int | None
    reason: str
    trials: tuple[tuple[str, TrialStatus], ...] = ()
    spent_s: float = 0.0
