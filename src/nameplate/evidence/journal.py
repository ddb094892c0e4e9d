"""What happened when, in a trial or study: `journal.jsonl`."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from nameplate.evidence.manifest import disk_fault


class JournalEntry(Struct, frozen=True):
    """Note one event: probe, calibration, flush, health, warm-up, window, drain, signal, clock pair, disk."""

    t_ns: int
    what: str
    detail: dict[str, Any] = field(default_factory=dict)


class Journal:
    """Append entries to a file that several processes may share; an entry is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def note(self, t_ns: int, what: str, **detail: Any) -> None:
        """Append one entry; `detail` must be plain JSON values. ClientError when the disk is full."""
        line = msgspec.json.encode(JournalEntry(t_ns, what, detail)) + b"\n"
        # Locked, because half a line on a full disk must be cut away before anybody else appends.
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            before = os.fstat(self._fd).st_size
            try:
                written = 0
                while written < len(line):
                    written += os.write(self._fd, line[written:])
            except OSError as error:
                os.ftruncate(self._fd, before)
                raise disk_fault(self._path, error) from None
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def size(self) -> int:
        """Return how many bytes the file holds now."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            try:
                os.fsync(self._fd)
            except OSError:
                pass  # A full disk has been heard of where an entry was lost.
            os.close(self._fd)
            self._fd = -1
