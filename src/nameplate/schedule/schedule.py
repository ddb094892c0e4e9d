"""What every kind of load plan answers: when is request `index` due?"""

from __future__ import annotations

from typing import Protocol


class Schedule(Protocol):
    """Say when requests start; a pure function of the plan and the index, so that any re-run is identical.

    `requests` is how many start in all. `slots` is how many may be in flight in a closed loop, or None for an
    open loop, whose arrivals never wait. `due_ns(index)` is the offset from the start of the stage, or None
    where the request starts as soon as a slot comes free.
    """

    @property
    def requests(self) -> int: ...

    @property
    def slots(self) -> int | None: ...

    def due_ns(self, index: int) -> int | None: ...
