"""Wait until a server has nothing to do: a closed connection does not stop every engine."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.engines.adapter import Adapter

SECOND_NS = 1_000_000_000
INTERVAL_NS = 100_000_000
# One idle reading can fall between two requests; two in a row, an interval apart, hold.
HOLD_READINGS = 2
PATIENT_AFTER_NS, PATIENT_INTERVAL_NS = 5 * SECOND_NS, SECOND_NS
# Failed scrapes in a row after which the server counts as not telling.
GIVE_UP_READINGS = 5


class IdleReport(Struct, frozen=True):
    """Hold how a wait ended: `idle`, still `busy` at the deadline, or `unknown` because the server does not tell."""

    status: Literal["idle", "busy", "unknown"]
    running: int | None
    waiting: int | None
    waited_ns: int
    readings: int
    failed_readings: int
    detail: str = ""


def wait_idle(
    adapter: Adapter,
    *,
    limit_ns: int = 60 * SECOND_NS,
    interval_ns: int = INTERVAL_NS,
    hold_readings: int = HOLD_READINGS,
) -> IdleReport:
    """Return once running = waiting = 0 held for some readings, or `limit_ns` is over, or nothing can be read.

    All waiting is the adapter's clock's, so it takes no time in virtual time.
    """
    clock = adapter.clock
    start_ns = clock.now_ns()
    readings = failed = failed_in_row = idle_in_row = 0
    while True:
        state = adapter.state()
        readings += 1
        idle = state.idle
        waited_ns = clock.now_ns() - start_ns
        if idle is None:
            failed += 1
            failed_in_row += 1
            idle_in_row = 0
        else:
            failed_in_row = 0
            idle_in_row = idle_in_row + 1 if idle else 0
        found = (state.running, state.waiting, waited_ns, readings, failed)
        if idle_in_row >= hold_readings:
            return IdleReport("idle", *found)
        why = state.error or "the page does not tell what runs"
        if failed_in_row >= GIVE_UP_READINGS or (failed_in_row and adapter.table is None):
            return IdleReport("unknown", *found, why)
        if waited_ns >= limit_ns:
            if idle is None:
                return IdleReport("unknown", *found, why)
            return IdleReport(
                "busy", *found, f"{state.running} running, {state.waiting} waiting when the time was up"
            )
        # Somebody else's long requests end no sooner for being asked about ten times a second.
        clock.sleep_ns(interval_ns if waited_ns < PATIENT_AFTER_NS else max(interval_ns, PATIENT_INTERVAL_NS))
