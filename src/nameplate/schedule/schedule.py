"""What every kind of load plan answers: when is request `offset` due, what is it, and which prompt has it?"""

from __future__ import annotations

from typing import Literal, Protocol

Part = Literal["opening", "steady", "arrival"]


class Schedule(Protocol):
    """Say when requests start; a pure function of the plan and the index, so that any re-run is identical.

    Offsets count a stage's requests from 0. `slots` is how many may be in flight in a closed loop, or None for an
    open loop, whose arrivals never wait. `prompts` is how many different prompts the stage needs. `due_ns(offset)` is
    the time from the start of the stage, or None where the request starts as soon as a slot comes free.
    """

    @property
    def slots(self) -> int | None: ...

    @property
    def prompts(self) -> int: ...

    def has(self, offset: int) -> bool: ...

    def due_ns(self, offset: int) -> int | None: ...

    def part(self, offset: int) -> Part: ...

    def prompt(self, offset: int) -> int: ...
