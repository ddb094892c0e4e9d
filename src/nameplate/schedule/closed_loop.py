"""The closed loop: a fixed number of slots, each of which starts its next request when the last one ended."""

from __future__ import annotations

from msgspec import Struct


class ClosedLoop(Struct, frozen=True):
    """Keep `slots` requests in flight until `requests` have started.

    The first request of slot i starts at i x `stagger_ns` after the stage's start: 0 is a burst. All others start
    when a slot comes free. With `continues`, the slots are taken over as they come free from the stage before
    (a handover), so not even the first requests have a time of their own.
    """

    slots: int
    requests: int
    stagger_ns: int = 0
    continues: bool = False

    def due_ns(self, index: int) -> int | None:
        """Return when request `index` (counted from 0 in this stage) is due, or None: when a slot comes free."""
        if self.continues or index >= self.slots:
            return None
        return index * self.stagger_ns
