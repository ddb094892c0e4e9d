"""Held streams: each slot starts again with its own prompt whenever its request ends, until the load is cut."""

from __future__ import annotations

from msgspec import Struct

from nameplate.schedule.schedule import Part


class Streams(Struct, frozen=True, tag=True):
    """Keep `slots` streams going without end; with `arrival`, one further request starts when it is released.

    The k-th request of stream s has the offset s + k x (all prompts), so it needs no counter that workers share, and
    has the prompt of the stream's first. The arrival has the offset `slots`.
    """

    slots: int
    arrival: bool = False

    @property
    def prompts(self) -> int:
        return self.slots + self.arrival

    def has(self, offset: int) -> bool:
        if self.arrival and self.prompt(offset) == self.slots:
            return offset == self.slots
        return offset >= 0

    def due_ns(self, offset: int) -> int | None:
        """Return 0 for the first request of a stream, None for those that wait for an end or a release."""
        return 0 if offset < self.slots else None

    def part(self, offset: int) -> Part:
        if offset < self.slots:
            return "opening"
        return "arrival" if self.prompt(offset) == self.slots else "steady"

    def prompt(self, offset: int) -> int:
        return offset % self.prompts

    def offset(self, stream: int, repetition: int) -> int:
        """Return the offset of a stream's request, counted from its first, 0."""
        return stream + repetition * self.prompts
