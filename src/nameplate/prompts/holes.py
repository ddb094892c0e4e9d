"""Room given back from inside a file that grows: what was there reads as zeros, and takes no space."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from functools import cache
from typing import Any

# linux/falloc.h: FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE.
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02


def punch(descriptor: int, begin: int, end: int) -> bool:
    """Give back the bytes from `begin` to `end`; False where the system or the file system cannot."""
    fallocate = _fallocate()
    if fallocate is None or end <= begin:
        return False
    mode = _KEEP_SIZE | _PUNCH_HOLE
    return bool(fallocate(descriptor, mode, ctypes.c_int64(begin), ctypes.c_int64(end - begin)) == 0)


@cache
def _fallocate() -> Any:
    if os.name != "posix":
        return None
    # `fallocate64` takes 64-bit offsets everywhere; where off_t has 64 bits anyway it may have the one name only.
    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
