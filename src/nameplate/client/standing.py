"""The load process's standing with its own machine: run at once, stay in memory, and know what it takes.

A client that shares its machine with anything busy is late by whole time slices: beside a server that kept both of two
CPUs busy, reads were noticed 60 ms late at p99 and requests sent 130 ms late; with real-time scheduling 0.3 ms. The
load uses little CPU and sleeps between polls, so it takes from others only what it needs, and the kernel keeps 5% from
real-time processes in any case.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Literal

Scheduling = Literal["realtime", "raised", "normal"]

# The lowest real-time priority is above every ordinary process, and that is all that is wanted.
_PRIORITY = 1
_NICE = -10
# Linux (asm-generic/mman.h): what is mapped now, but only the pages that are really in use.
_MCL_CURRENT, _MCL_ONFAULT = 1, 4


def raise_scheduling() -> Scheduling:
    """Ask for real-time scheduling, else for a higher priority; return what was granted. Threads made later inherit it.

    A machine with one CPU keeps ordinary scheduling: the server under test may need that CPU.
    """
    if (os.cpu_count() or 1) < 2:
        return "normal"
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))
        return "realtime"
    except (OSError, AttributeError):
        pass
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        return "raised"
    except (OSError, AttributeError):
        return "normal"


def lock_memory() -> bool:
    """Keep this process's code and data in memory; say whether the system allowed it.

    A system short of memory takes the pages of idle programs, and gives them back from a disk that our own evidence
    keeps busy.
    """
    try:
        import ctypes

        return bool(ctypes.CDLL(None).mlockall(_MCL_CURRENT | _MCL_ONFAULT) == 0)
    except (OSError, AttributeError):
        return False


def peak_memory_bytes() -> int:
    """Return the most memory that this process has held.

    Linux hands `ru_maxrss` on over fork and exec, so a small process started by a large one reports the large one's:
    its own high-water mark is in /proc.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
