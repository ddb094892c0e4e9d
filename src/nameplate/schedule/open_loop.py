"""The open loop: requests arrive when the plan says so, whatever became of those before."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.schedule.arrival import Process, Steps, Trace
from nameplate.schedule.counter import MAXIMUM_INDEX, key_of
from nameplate.schedule.schedule import Part
from nameplate.schedule.times import Times


class OpenLoop(Struct, frozen=True, tag=True, kw_only=True, dict=True):
    """Start requests at the times of a process, each at its own, never waiting for an answer.

    The plan ends before `requests` are exceeded and before `duration_ns`, whichever comes first; steps and traces
    also end by themselves, the other processes need one of the two. When a request is due is a pure function of
    (process, seed, offset), the same on every machine, so a longer plan begins like a shorter one, and worker w of
    W, which takes the offsets w, w + W, ..., needs to know nothing of the others. Times are in ns from the start of
    the stage; each is the nanosecond in which the exact time lies, so that rounding cannot add up.

    What was computed once is remembered in the value itself, which is therefore for one thread.
    """

    process: Process
    seed: int = 0
    requests: int | None = None
    duration_ns: int | None = None

    def __post_init__(self) -> None:
        if self.requests is None and self.duration_ns is None and not isinstance(self.process, Steps | Trace):
            raise CallerError(
                "The arrivals have no end.", hint="Give a duration, or a number of requests, or both."
            )
        if self.requests is not None and not 0 <= self.requests <= MAXIMUM_INDEX:
            raise CallerError(
                f"{self.requests} requests cannot be planned.", hint=f"At most {MAXIMUM_INDEX}."
            )
        if self.duration_ns is not None and self.duration_ns < 0:
            raise CallerError(f"A duration of {self.duration_ns} ns cannot be planned.")

    @property
    def slots(self) -> None:
        return None

    @property
    def prompts(self) -> int:
        """Count the plan's requests; once computed, known. Costs a walk over them where only a duration bounds it."""
        return self._times.count

    def has(self, offset: int) -> bool:
        return self._times.has(offset)

    def due_ns(self, offset: int) -> int | None:
        """Return when request `offset` is due; None for one that the plan does not have.

        Asked in order, a request costs the draw of its own gap; after a jump backwards at most 255 more, after one
        forwards all between, once.
        """
        return self._times.at(offset)

    def part(self, offset: int) -> Part:  # noqa: ARG002 - of an open loop every part is alike
        return "steady"

    def prompt(self, offset: int) -> int:
        return offset

    def arrivals(self, worker: int = 0, workers: int = 1) -> Iterator[tuple[int, int]]:
        """Yield (offset, due_ns) of one worker's share of the plan, in order."""
        return self._times.walk(worker, workers)

    @property
    def end_ns(self) -> int | None:
        """Return when the plan is over, though nothing may arrive just before; None if only `requests` bounds it."""
        own = (
            sum(step.duration_ns for step in self.process.steps) if isinstance(self.process, Steps) else None
        )
        ends = [end for end in (self.duration_ns, own) if end is not None]
        return min(ends, default=None)

    def expected(self, t_ns: int) -> Fraction | None:
        """Return how many arrivals the rates alone make one expect before a time; None for a trace, which has none.

        Delivered times read through this function are a process of unit rate: what a test of the delivered gaps
        needs, for ramps and steps as for a constant rate.
        """
        return None if isinstance(self.process, Trace) else self.process.profile.expected(t_ns)

    @cached_property
    def _times(self) -> Times:
        return Times(self.process, key_of(self.seed, "arrivals"), self.requests, self.duration_ns)
