"""What the journal says of a held load: when it was ready, which window followed, why there was none."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from nameplate.evidence.journal import JournalEntry
from nameplate.measure.readiness import Look

# Journal entries of a held load.
HELD = "held"


class Held(Struct, frozen=True, kw_only=True):
    """Hold how the hold of streams went; times are monotonic nanoseconds.

    `begin_ns` and `end_ns` are the window that was decided on when the streams were ready; null where they never
    were, and `gave_up` says why the wait was ended. With an arrival the end is open when the window begins.
    `saw` is the last look before the decision, `server_tells` whether the server's gauges were part of it.
    """

    streams_began_ns: int
    decided_ns: int
    deadline_ns: int
    saw: Look
    server_tells: bool
    begin_ns: int | None = None
    end_ns: int | None = None
    gave_up: str | None = None

    @property
    def waited_ns(self) -> int:
        return self.decided_ns - self.streams_began_ns


def held_of(journal: Iterable[JournalEntry]) -> Held | None:
    """Return the journal's account of a hold; None where it has none."""
    for entry in journal:
        if entry.what == HELD:
            return msgspec.convert(entry.detail, Held)
    return None
