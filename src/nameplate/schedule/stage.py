"""The stages of one trial's load: warm-up, the ramp of a handover, and the measured part."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.schedule.arrival import Constant, Gamma, Poisson, Process
from nameplate.schedule.closed_loop import ClosedLoop
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.streams import Streams

StageName = Literal["warmup", "ramp", "measured"]
Phase = Literal["warmup", "ramp", "opening", "steady", "arrival"]

# A ramp ends when each slot has started a second request; the fastest slot may meanwhile have started many.
RAMP_REQUESTS_PER_SLOT = 16


class Stage(Struct, frozen=True):
    """Hold one stage: its requests have the indices from `first_index` on.

    A `ramp` ends early, as soon as every slot has started its second request; a stage of `Streams` when it is cut.
    """

    name: StageName
    first_index: int
    schedule: ClosedLoop | Streams | OpenLoop

    def has(self, index: int) -> bool:
        return self.schedule.has(index - self.first_index)

    def phase(self, index: int) -> Phase:
        """Return the phase of one of this stage's requests."""
        return self.name if self.name != "measured" else self.schedule.part(index - self.first_index)

    def prompt(self, index: int) -> int:
        """Return the index under which the request's prompt is stored."""
        return self.first_index + self.schedule.prompt(index - self.first_index)


def stages_of(plan: TrialPlan) -> tuple[Stage, ...]:
    """Lay out a trial's stages; indices are 0.. for the warm-up, then the measured, then a ramp's."""
    stages = []
    if plan.warmup:
        stages.append(Stage("warmup", 0, ClosedLoop(1, plan.warmup)))
    measured: ClosedLoop | Streams | OpenLoop
    duration_ns = plan.soak.duration_ns if plan.soak else None
    pause_ns = plan.soak.fault_pause_ns if plan.soak else 0
    if plan.arrivals is not None:
        measured = OpenLoop(
            process=process_of(plan.arrivals),
            seed=plan.arrivals.seed + plan.attempt,
            requests=plan.requests,
            duration_ns=duration_ns,
        )
    elif plan.hold is not None:
        measured = Streams(plan.concurrency, plan.hold.arrival is not None)
    elif plan.start == "handover":
        ramp = ClosedLoop(plan.concurrency, RAMP_REQUESTS_PER_SLOT * plan.concurrency)
        stages.append(Stage("ramp", plan.warmup + plan.requests, ramp))
        measured = ClosedLoop(
            plan.concurrency,
            plan.requests,
            continues=True,
            duration_ns=duration_ns,
            fault_pause_ns=pause_ns,
        )
    else:
        stagger = plan.stagger_ns if plan.start == "staggered" else 0
        measured = ClosedLoop(
            plan.concurrency, plan.requests, stagger, duration_ns=duration_ns, fault_pause_ns=pause_ns
        )
    stages.append(Stage("measured", plan.warmup, measured))
    return tuple(stages)


def process_of(arrivals: ArrivalPlan) -> Process:
    """Return the process that an open loop's arrivals follow."""
    if arrivals.kind == "constant":
        return Constant(arrivals.rate)
    return Poisson(arrivals.rate) if arrivals.kind == "poisson" else Gamma(arrivals.rate, arrivals.burstiness)


def prompts_needed(plan: TrialPlan) -> int:
    """Count the prompts that a trial can use at most."""
    return sum(stage.schedule.prompts for stage in stages_of(plan))


class Requests:
    """Answer what the request with an index is: a function of the plan alone."""

    def __init__(self, plan: TrialPlan) -> None:
        self._plan = plan
        # A stage without end comes last in the listing of indices.
        self._stages = stages_of(plan)

    def stage(self, index: int) -> Stage:
        """Return the stage of a request; KeyError for an index that the plan does not have."""
        for stage in self._stages:
            if stage.has(index):
                return stage
        raise KeyError(index)

    def phase(self, index: int) -> Phase:
        return self.stage(index).phase(index)

    def prompt(self, index: int) -> int:
        """Return the index under which the request's prompt is stored."""
        return self.stage(index).prompt(index)

    def warms(self, index: int) -> int | None:
        """Return the request whose own prompt a warm-up request sends ahead of it; None where it has its own."""
        hold = self._plan.hold
        if hold is None or not hold.warm_streams or self.phase(index) != "warmup":
            return None
        return self._plan.warmup + index

    def repeats(self, index: int) -> bool:
        """Say whether a request sends, as planned, a prompt that is another one's; False for one not of the plan."""
        try:
            return self.prompt(index) != index or self.warms(index) is not None
        except KeyError:
            return False

    def shape(self, index: int) -> Shape:
        """Return the lengths that a request asks for."""
        hold = self._plan.hold
        if hold is not None and hold.arrival is not None and self.phase(index) == "arrival":
            return hold.arrival.shape
        if self.warms(index) is not None:
            return Shape(self._plan.shape.input_tokens, 1)
        return self._plan.shape

    def measured(self, index: int) -> bool:
        """Say whether the request belongs to the measured sample; False for one that the plan does not have."""
        try:
            return self.phase(index) in ("opening", "steady")
        except KeyError:
            return False
