"""The stages of one trial's load: warm-up, the ramp of a handover, and the measured part."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.plan import TrialPlan
from nameplate.schedule.closed_loop import ClosedLoop

StageName = Literal["warmup", "ramp", "measured"]

# A ramp ends when each slot has started a second request; the fastest slot may meanwhile have started many.
RAMP_REQUESTS_PER_SLOT = 16


class Stage(Struct, frozen=True):
    """Hold one stage: requests `first_index` to `first_index + schedule.requests - 1`.

    A `ramp` ends early, as soon as every slot has started its second request.
    """

    name: StageName
    first_index: int
    schedule: ClosedLoop


def stages_of(plan: TrialPlan) -> tuple[Stage, ...]:
    """Lay out a trial's stages; indices are 0.. for the warm-up, then the measured, then a ramp's."""
    stages = []
    if plan.warmup:
        stages.append(Stage("warmup", 0, ClosedLoop(1, plan.warmup)))
    if plan.start == "handover":
        ramp = ClosedLoop(plan.concurrency, RAMP_REQUESTS_PER_SLOT * plan.concurrency)
        stages.append(Stage("ramp", plan.warmup + plan.requests, ramp))
        measured = ClosedLoop(plan.concurrency, plan.requests, continues=True)
    else:
        stagger = plan.stagger_ns if plan.start == "staggered" else 0
        measured = ClosedLoop(plan.concurrency, plan.requests, stagger)
    stages.append(Stage("measured", plan.warmup, measured))
    return tuple(stages)


def prompts_needed(plan: TrialPlan) -> int:
    """Count the prompts that a trial can use at most."""
    return sum(stage.schedule.requests for stage in stages_of(plan))
