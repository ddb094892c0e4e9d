"""What this process takes of its machine: memory, descriptors, processor time."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from msgspec import Struct


class SelfSample(Struct, frozen=True):
    """Hold one look at this process; None where the system does not tell."""

    rss_bytes: int | None
    descriptors: int | None
    cpu_s: float


def self_sample() -> SelfSample:
    """Look at this process; some 50 us, and never at a disk."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return SelfSample(_rss_bytes(), _descriptors(), usage.ru_utime + usage.ru_stime)


def _rss_bytes() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _descriptors() -> int | None:
    for path in ("/proc/self/fd", "/dev/fd"):
        try:
            # One is the listing's own.
            return sum(1 for _ in Path(path).iterdir()) - 1
        except OSError:
            continue
    return None
