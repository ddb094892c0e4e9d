"""The stages of one trial's load: warm-up, the ramp of a handover, and the measured part."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct, structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.trace import TracePlan, TraceRow, TraceRows
from nameplate.schedule.arrival import Constant, Gamma, Poisson, Process, Ramp, Step, Steps, Trace
from nameplate.schedule.closed_loop import ClosedLoop
from nameplate.schedule.gaps import Even, Exponential, GammaGaps, Gaps
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.streams import Streams

StageName = Literal["warmup", "ramp", "measured"]
Phase = Literal["warmup", "ramp", "opening", "steady", "arrival"]

# Of a plan that ends by itself: two kilobytes a prompt are then some gigabytes of bodies.
MOST_REQUESTS = 1_000_000

# The class of a trace's requests that have none.
UNNAMED_CLASS = "trace"

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
            process=process_of(plan.arrivals) if plan.rate_level is None else balanced(plan),
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
    """Return the process that an open loop's arrivals follow; EvidenceError for a trace without its rows."""
    if arrivals.trace is not None:
        return Trace(_rows_of(arrivals.trace).times)
    if arrivals.ramp is not None:
        ramp = arrivals.ramp
        return Ramp(ramp.from_rate, ramp.to_rate, ramp.over_ns, _gaps_of(arrivals))
    if arrivals.steps:
        steps = tuple(Step(part.to_rate, part.over_ns) for part in arrivals.steps)
        return Steps(steps, _gaps_of(arrivals))
    if arrivals.kind == "constant":
        return Constant(arrivals.rate)
    return Poisson(arrivals.rate) if arrivals.kind == "poisson" else Gamma(arrivals.rate, arrivals.burstiness)


def _gaps_of(arrivals: ArrivalPlan) -> Gaps:
    if arrivals.kind == "constant":
        return Even()
    return Exponential() if arrivals.kind == "poisson" else GammaGaps(arrivals.burstiness)


def _rows_of(trace: TracePlan) -> TraceRows:
    if trace.rows is None:
        raise EvidenceError(
            f"The requests of the trace {trace.name} are not there.",
            why="The plan names them by digest only.",
            hint="They are in the trial's trace.jsonl.",
        )
    return trace.rows


def arrivals_planned(arrivals: ArrivalPlan) -> int:
    """Count the requests of a plan that ends by itself: a ramp with its duration, steps and a trace with their last.

    CallerError where there is none, or so many that their prompts could not all be written before.
    """
    if arrivals.trace is not None:
        return arrivals.trace.requests
    expected = sum(part.expected for part in arrivals.parts)
    if expected > MOST_REQUESTS:
        raise CallerError(
            f"Some {expected:,.0f} requests would arrive, and a trial has at most {MOST_REQUESTS:,}.",
            why="All their prompts are written before the first of them is sent.",
            hint="Lower the rates, or shorten the time.",
        )
    duration_ns = sum(part.over_ns for part in arrivals.parts)
    count = OpenLoop(process=process_of(arrivals), seed=arrivals.seed, duration_ns=duration_ns).prompts
    if not count:
        raise CallerError(
            f"By chance nothing arrives: some {expected:.2g} requests are expected {arrivals.speed}.",
            hint="Raise the rates, lengthen the time, or take another --seed.",
        )
    return count


def balanced(plan: TrialPlan) -> Process:
    """Return the process of a rate study's arrivals: as many arrive as the rate says, in just that time.

    Chance alone changes the mean rate of n Poisson arrivals by a share of 1/sqrt(n), which would be taken for the
    server's; the process given its count has none of that, and is the same from gap to gap.
    """
    arrivals = plan.arrivals
    assert arrivals is not None
    rate = _balanced_rate(arrivals, arrivals.seed + plan.attempt, plan.requests)
    return process_of(structs.replace(arrivals, rate=rate))


@lru_cache(maxsize=64)
def _balanced_rate(arrivals: ArrivalPlan, seed: int, requests: int) -> float:
    """Return the rate under which the arrival after the last one is due at requests / rate."""
    loop = OpenLoop(process=process_of(arrivals), seed=seed, requests=requests + 1)
    due_ns = loop.due_ns(requests)
    return arrivals.rate if not due_ns else arrivals.rate * due_ns * arrivals.rate / (requests * 1e9)


def prompts_needed(plan: TrialPlan) -> int:
    """Count the prompts that a trial can use at most."""
    return sum(stage.schedule.prompts for stage in stages_of(plan))


class Requests:
    """Answer what the request with an index is: a function of the plan alone."""

    def __init__(self, plan: TrialPlan) -> None:
        self._plan = plan
        # A stage without end comes last in the listing of indices.
        self._stages = stages_of(plan)
        trace = plan.arrivals.trace if plan.arrivals is not None else None
        self._rows = None if trace is None else _rows_of(trace)

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
            if self.prompt(index) != index or self.warms(index) is not None:
                return True
            number = self.number(index)
        except KeyError:
            return False
        return self._rows is not None and number is not None and number in self._rows.repeated

    def number(self, index: int) -> int | None:
        """Return which of a trace's rows a request repeats, from 0; None where it is none of a trace."""
        stage = self.stage(index)
        return index - stage.first_index if self._rows is not None and stage.name == "measured" else None

    def row(self, index: int) -> TraceRow | None:
        """Return the row of a trace that a request repeats; None where it is none of a trace."""
        number = self.number(index)
        return None if self._rows is None or number is None else self._rows.row(number)

    def shared_tokens(self, index: int) -> int:
        """Return how many of its first tokens a request shares, as its trace has it, with an earlier one."""
        number = self.number(index)
        return 0 if self._rows is None or number is None else self._rows.shared_tokens[number]

    def shareable_tokens(self, index: int) -> int:
        """Return how many of its first tokens a request shares, as its trace has it, with any other."""
        number = self.number(index)
        return 0 if self._rows is None or number is None else self._rows.shareable_tokens[number]

    def class_name(self, index: int) -> str:
        """Return the workload class of a request: its trace's own, else its shape."""
        row = self.row(index)
        return str(self.shape(index)) if row is None else row.class_name or UNNAMED_CLASS

    def shape(self, index: int) -> Shape:
        """Return the lengths that a request asks for."""
        hold = self._plan.hold
        if hold is not None and hold.arrival is not None and self.phase(index) == "arrival":
            return hold.arrival.shape
        if self.warms(index) is not None:
            return Shape(self._plan.shape.input_tokens, 1)
        row = self.row(index)
        return self._plan.shape if row is None else Shape(row.input_tokens, row.output_tokens)

    def measured(self, index: int) -> bool:
        """Say whether the request belongs to the measured sample; False for one that the plan does not have."""
        try:
            return self.phase(index) in ("opening", "steady")
        except KeyError:
            return False
