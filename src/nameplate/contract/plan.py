"""The plan of one trial: what a study asks for and an executor carries out."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.matrix import PrefillRule
from nameplate.contract.rates import RateLevel
from nameplate.contract.rules import StartPolicy
from nameplate.contract.shape import Shape
from nameplate.contract.soak import Soak
from nameplate.contract.trace import TraceRows

Role = Literal[
    "baseline",
    "locator",
    "confirmation",
    "single",
    "warmup",
    "prefill",
    "decode",
    "burst",
    "mixed",
    "soak",
    "level",
]


class Arrival(Struct, frozen=True):
    """Let one further request of another shape arrive while the streams are held.

    It is sent `before_ns` after the window began, and the window ends `after_ns` after its first output, at the
    latest `deadline_ns` after it was sent.
    """

    shape: Shape
    before_ns: int
    after_ns: int
    deadline_ns: int


class Hold(Struct, frozen=True, kw_only=True):
    """Hold the trial's streams instead of counting requests: each starts again, with its own prompt, when it ends.

    Once the streams are ready, for `stable_ns` on end, a window of `window_ns` begins; the load is cancelled when it
    is over. Not ready `ready_ns` after the start, the load is cancelled without one. With `warm_streams` every
    stream's own prompt is sent once before, with one output token. `loop_limit` is the share of streams that may repeat
    themselves.
    """

    window_ns: int
    stable_ns: int
    ready_ns: int
    warm_streams: bool = False
    loop_limit: float = 0.05
    arrival: Arrival | None = None


class TrialPlan(Struct, frozen=True):
    """Ask for one trial.

    `name` is unique in its study and part of every prompt's key; `attempt` counts replacements of an invalid
    trial from 0. `requests` are measured, after `warmup` at concurrency one. `stagger_ns` is the distance
    between the first starts of neighbouring slots under the `staggered` policy. `stop_when_failed` lets the
    load stop once failure is certain. `quiet_s` is waited before the trial begins. `outputs_must_differ` is set
    where the baseline's outputs were unique, so that a repeated answer breaks the contract, and
    `outputs_must_not_loop` where none of the baseline's that could be judged ended in a loop. With `hold` the load is
    bounded by time and `requests` is how many streams there are; with `until` by what was seen, and `requests` is
    the most. `shared_tokens` of each prompt are a prefix that all prompts of this length share,
    beside the contract's. With `arrivals` the loop is open: `requests` arrive in their own time, and `concurrency` is
    how many may be outstanding; `rate_level` says which level of a rate study that is, and each attempt has arrivals
    of its own. With `soak` time ends the load, and `requests` is a cap that is never reached. `alone_ttft_ns` are the
    lowest, median and highest TTFT of the baseline's requests: what a request takes that waits for none.
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
    outputs_must_not_loop: bool = False
    hold: Hold | None = None
    until: PrefillRule | None = None
    shared_tokens: int = 0
    arrivals: ArrivalPlan | None = None
    soak: Soak | None = None
    rate_level: RateLevel | None = None
    alone_ttft_ns: tuple[float, float, float] | None = None

    @property
    def key(self) -> str:
        """Name the trial and its attempt: the directory's name and the prompts' key."""
        return self.name if self.attempt == 0 else f"{self.name}.retry{self.attempt}"

    @property
    def level(self) -> int:
        """Return which level of its study the trial is of: its concurrency, or the level of its rate."""
        return self.concurrency if self.rate_level is None else self.rate_level.level

    @property
    def as_written(self) -> TrialPlan:
        """Return the plan as files hold it: a trace's requests stand in a file of their own."""
        arrivals = self.arrivals
        if arrivals is None or arrivals.trace is None or arrivals.trace.rows is None:
            return self
        return self.with_rows(None)

    def with_rows(self, rows: TraceRows | None) -> TrialPlan:
        """Return the plan with the requests of its trace, or without them."""
        arrivals = self.arrivals
        if arrivals is None or arrivals.trace is None:
            return self
        trace = structs.replace(arrivals.trace, rows=rows)
        return structs.replace(self, arrivals=structs.replace(arrivals, trace=trace))

    @property
    def cut(self) -> bool:
        """Say whether the load is cut as planned, so that requests without an end are no fault."""
        return self.hold is not None or self.until is not None or self.soak is not None
