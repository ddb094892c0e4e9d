"""Time as this room sees it: passed in, so that waiting is tested without waiting and works in virtual time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tell a monotonic time in nanoseconds and wait; the virtual executor supplies its own."""

    def now_ns(self) -> int: ...

    def sleep_ns(self, duration_ns: int) -> None: ...


class SystemClock:
    """Tell the operating system's CLOCK_MONOTONIC, the same that the client stamps its reads with."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def sleep_ns(self, duration_ns: int) -> None:
        time.sleep(max(0, duration_ns) / 1e9)
