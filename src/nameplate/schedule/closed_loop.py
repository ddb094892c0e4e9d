"""The closed loop: a fixed number of slots, each of which starts its next request when the last one ended."""

from __future__ import annotations

from msgspec import Struct

from nameplate.schedule.schedule import Part


class ClosedLoop(Struct, frozen=True, tag=True):
    """Keep `slots` requests in flight until `requests` have started.

    The first request of slot i starts at i x `stagger_ns` after the stage's start: 0 is a burst. All others start
    when a slot comes free. With `continues`, the slots are taken over as they come free from the stage before
    (a handover), so not even the first requests have a time of their own. Nothing starts `duration_ns` after the
    stage's start, and a slot whose request failed pauses for `fault_pause_ns`.
    """

    slots: int
    requests: int
    stagger_ns: int = 0
    continues: bool = False
    duration_ns: int | None = None
    fault_pause_ns: int = 0

    @property
    def prompts(self) -> int:
        return self.requests

    def has(self, offset: int) -> bool:
        return 0 <= offset < self.requests

    def due_ns(self, offset: int) -> int | None:
        """Return when request `offset` (counted from 0 in this stage) is due, or None: when a slot comes free."""
        if self.continues or offset >= self.slots:
            return None
        return offset * self.stagger_ns

    def part(self, offset: int) -> Part:
        return "steady" if self.due_ns(offset) is None else "opening"

    def prompt(self, offset: int) -> int:
        return offset
