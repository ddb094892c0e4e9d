"""The due times of a process, by prefix sums of its gaps: walked in order, or looked up from checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nameplate.schedule.arrival import Process, Trace
from nameplate.schedule.counter import MAXIMUM_INDEX
from nameplate.schedule.gaps import UNIT, Even

CHECKPOINT_EVERY: Final = 256
"""A look-up draws at most one gap less than this, about half a millisecond; 10 million arrivals keep 40,000 sums."""


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
        # What was asked for last, and where the walk through the gaps stands: an offset and the sum up to it.
        self._asked = -1
        self._due: int | None = None
        self._reached, self._sum = 0, -1
        self._checkpoints: list[int] = []
        self._counted = False

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
        return due

    def _seek(self, offset: int) -> int | None:
        """Go to an offset from the nearest known sum before it."""
        if isinstance(self._gaps, Even):
            return self._profile.time_ns(offset * UNIT)
        gap, key, checkpoints = self._gaps.gap, self._key, self._checkpoints
        if not checkpoints:
            checkpoints.append(self._gaps.first(key))
            self._sum = checkpoints[0]
        block = min(offset // CHECKPOINT_EVERY, len(checkpoints) - 1)
        at, total = block * CHECKPOINT_EVERY, checkpoints[block]
        if at < self._reached <= offset:
            at, total = self._reached, self._sum
        while at < offset:
            at += 1
            total += gap(key, at)
            if at == len(checkpoints) * CHECKPOINT_EVERY:
                checkpoints.append(total)
                # An offset far behind the end is not walked to.
                if self._past(total):
                    break
        self._reached, self._sum = at, total
        return self._profile.time_ns(total)

    def _past(self, total: int) -> bool:
        due = self._profile.time_ns(total)
        return due is None or (self._duration_ns is not None and due >= self._duration_ns)

    @property
    def count(self) -> int:
        """Count all arrivals."""
        if not self._counted:
            self._count()
            self._counted = True
        return self._end

    def _count(self) -> None:
        """Find the first offset that does not come, which becomes the end."""
        if self._duration_ns is None and (self._trace is not None or self._profile.endless):
            return
        # Double until an offset is past the end, then halve. The sums of the walk are kept, so that this costs one
        # walk and a few look-ups. Times do not fall, so what was found past stays past.
        known, ahead = -1, 0
        while ahead < self._end and self.at(ahead) is not None:
            known, ahead = ahead, 2 * ahead + 1
        while self._end - known > 1:
            middle = (known + self._end) // 2
            if self.at(middle) is not None:
                known = middle

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
