"""One counter for several load processes: which request comes next."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path

STAGES = 8
_CELL = struct.Struct("=q")


class SharedCounter:
    """Hand out the indices of each stage once over all processes that map the same file."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._fd).st_size < STAGES * _CELL.size:
            os.ftruncate(self._fd, STAGES * _CELL.size)
        self._map = mmap.mmap(self._fd, STAGES * _CELL.size)

    def take(self, stage: int, limit: int) -> int | None:
        """Return the next number below `limit`, or None when all are taken."""
        # A lock costs some 3 us and is taken once a request, not once a chunk.
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        try:
            (value,) = _CELL.unpack_from(self._map, stage * _CELL.size)
            if value >= limit:
                return None
            _CELL.pack_into(self._map, stage * _CELL.size, value + 1)
            return int(value)
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        self._map.close()
        os.close(self._fd)
