"""The due times of a process, by prefix sums of its gaps: walked in order, or looked up from checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nameplate.schedule.arrival import Process, Trace
from nameplate.schedule.counter import MAXIMUM_INDEX
from nameplate.schedule.gaps import UNIT, Even

CHECKPOINT_EVERY: Final = 256
"""A look-up draws at most one gap less than this, about a millisecond; 10 million arrivals keep 40,000 sums."""


class Times:
    """Answer when an arrival of a bounded process is due, and remember what that needs."""

    def __init__(self, process: Process, key: int, requests: int | None, duration_ns: int | None) -> None:
        self._key = key
        self._duration_ns = duration_ns
        self._trace = process if isinstance(process, Trace) else None
        if not isinstance(process, Trace):
            self._gaps, self._profile = process.gaps, process.profile
        # No arrival from this offset on.
        self._end = MAXIMUM_INDEX if requests is None else requests
        if self._trace is not None:
            self._end = min(self._end, len(self._trace))
        # All arrivals up to this offset are known to come. Where only a number bounds them, that is all of them.
        self._known = -1
        if duration_ns is None and (self._trace is not None or self._profile.endless):
            self._known = self._end - 1
        # What was asked for last.
        self._asked = -1
        self._due: int | None = None
        # Sums up to an offset: where the last look-up ended, and the farthest one. With both, a look back between two
        # arrivals that are asked in order costs only itself.
        self._last, self._last_sum = 0, 0
        self._farthest, self._farthest_sum = 0, 0
        self._checkpoints: list[int] = []

    def at(self, offset: int) -> int | None:
        """Return when an arrival is due, in ns; None if there is none."""
        if offset == self._asked:
            return self._due
        if not 0 <= offset < self._end:
            return None
        due = self._seek(offset) if self._trace is None else self._trace.time_ns(offset)
        if due is None or (self._duration_ns is not None and due >= self._duration_ns):
            self._end = offset
            return None
        self._asked, self._due = offset, due
        self._known = max(self._known, offset)
        return due

    def has(self, offset: int) -> bool:
        """Say whether an arrival comes; nothing is drawn for those before one that was asked for."""
        return 0 <= offset < self._end and (offset <= self._known or self.at(offset) is not None)

    def _seek(self, offset: int) -> int | None:
        """Go to an offset from the nearest known sum before it."""
        if isinstance(self._gaps, Even):
            return self._profile.time_ns(offset * UNIT)
        gap, key, checkpoints = self._gaps.gap, self._key, self._checkpoints
        if not checkpoints:
            checkpoints.append(self._gaps.first(key))
        block = min(offset // CHECKPOINT_EVERY, len(checkpoints) - 1)
        at, total = block * CHECKPOINT_EVERY, checkpoints[block]
        if at < self._last <= offset:
            at, total = self._last, self._last_sum
        if at < self._farthest <= offset:
            at, total = self._farthest, self._farthest_sum
        while at < offset:
            at += 1
            total += gap(key, at)
            if at == len(checkpoints) * CHECKPOINT_EVERY:
                checkpoints.append(total)
                # An offset far behind the end is not walked to.
                if self._past(total):
                    break
        self._last, self._last_sum = at, total
        if at > self._farthest:
            self._farthest, self._farthest_sum = at, total
        return self._profile.time_ns(total)

    def _past(self, total: int) -> bool:
        due = self._profile.time_ns(total)
        return due is None or (self._duration_ns is not None and due >= self._duration_ns)

    @property
    def count(self) -> int:
        """Count all arrivals."""
        # Double until an offset is past the end, then halve. The sums of the walk are kept, so that this costs one
        # walk and a few look-ups, once. Times do not fall, so what was found past stays past.
        ahead = self._known + 1
        while ahead < self._end and self.at(ahead) is not None:
            ahead = 2 * ahead + 1
        while self._end - self._known > 1:
            self.at((self._known + self._end) // 2)
        return self._end

    def walk(self, first: int, step: int) -> Iterator[tuple[int, int]]:
        """Yield (offset, due in ns) of every `step`th arrival from the `first` on, apart from all look-ups."""
        if not 0 <= first < step:
            raise ValueError(f"there is no worker {first} of {step}")
        if self._trace is not None:
            offset = first
            while (due := self.at(offset)) is not None:
                yield offset, due
                offset += step
            return
        gap, key = self._gaps.gap, self._key
        offset, total = 0, self._gaps.first(key)
        while offset < self._end:
            due = self._profile.time_ns(total)
            if due is None or (self._duration_ns is not None and due >= self._duration_ns):
                return
            if offset % step == first:
                yield offset, due
            offset += 1
            total += gap(key, offset)
