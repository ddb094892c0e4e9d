"""What the workers of one load count together: requests taken, slots restarted, gates reached."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from enum import IntEnum
from pathlib import Path
from typing import Protocol

# A trial has three stages at most; the stage before the first has the number -1.
STAGES = 8
_CELL = struct.Struct("=q")


class Count(IntEnum):
    """Name what is counted in each stage.

    TAKEN: requests started beyond the opening ones. RESTARTED: slots of a ramp that started a second request.
    LEFT and READY: workers that have nothing left in the stage, and then have their connections for the next.
    BEGAN is no count: when the stage began, as they agreed.
    """

    TAKEN = 0
    RESTARTED = 1
    LEFT = 2
    READY = 3
    BEGAN = 4


class Counter(Protocol):
    """Count for one worker or for several."""

    def take(self, stage: int, limit: int) -> int | None:
        """Return the next number of a stage below `limit`, or None when all are taken."""

    def add(self, count: Count, stage: int) -> None:
        """Add one."""

    def value(self, count: Count, stage: int) -> int:
        """Return what all workers together have counted."""

    def agree(self, count: Count, stage: int, value: int) -> int:
        """Return the value above 0 that the first of the workers proposed."""


class LocalCounter:
    """Count for a single worker."""

    def __init__(self) -> None:
        self._values: dict[tuple[Count, int], int] = {}

    def take(self, stage: int, limit: int) -> int | None:
        value = self.value(Count.TAKEN, stage)
        if value >= limit:
            return None
        self.add(Count.TAKEN, stage)
        return value

    def add(self, count: Count, stage: int) -> None:
        self._values[count, stage] = self.value(count, stage) + 1

    def value(self, count: Count, stage: int) -> int:
        return self._values.get((count, stage), 0)

    def agree(self, count: Count, stage: int, value: int) -> int:
        return self._values.setdefault((count, stage), value)


class SharedCounter:
    """Count over all processes that map the same file."""

    def __init__(self, path: Path) -> None:
        size = len(Count) * (STAGES + 1) * _CELL.size
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._fd).st_size < size:
            os.ftruncate(self._fd, size)
        self._map = mmap.mmap(self._fd, size)

    def take(self, stage: int, limit: int) -> int | None:
        return self._increase(Count.TAKEN, stage, limit)

    def add(self, count: Count, stage: int) -> None:
        self._increase(count, stage, None)

    def value(self, count: Count, stage: int) -> int:
        (value,) = _CELL.unpack_from(self._map, _at(count, stage))
        return int(value)

    def agree(self, count: Count, stage: int, value: int) -> int:
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            agreed = self.value(count, stage)
            if not agreed:
                _CELL.pack_into(self._map, _at(count, stage), value)
            return agreed or value
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def _increase(self, count: Count, stage: int, limit: int | None) -> int | None:
        # A lock costs some 3 us and is taken once a request, not once a chunk.
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            value = self.value(count, stage)
            if limit is not None and value >= limit:
                return None
            _CELL.pack_into(self._map, _at(count, stage), value + 1)
            return value
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        self._map.close()
        os.close(self._fd)


def _at(count: Count, stage: int) -> int:
    return (int(count) * (STAGES + 1) + stage + 1) * _CELL.size
