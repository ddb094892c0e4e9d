"""Processors, memory and system of a machine, read from the kernel's own files; what cannot be read is None."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from nameplate.hosts import cpuinfo

# A line of /proc/cpuinfo's entries is about 1.5 KB a thread: enough for a machine of 2,500 threads.
_FILE_LIMIT_BYTES = 4 << 20


class Cpu(Struct, frozen=True, kw_only=True):
    """Hold the processors: as the machine has them, and `usable_threads` and `quota_cores` as we may use them.

    `quota_cores` is the control group's limit in cores; None where there is none.
    """

    model: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    numa_nodes: int | None = None
    usable_threads: int | None = None
    quota_cores: float | None = None


class Memory(Struct, frozen=True, kw_only=True):
    """Hold main memory in bytes; `limit_bytes` is the control group's limit, None where there is none."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    limit_bytes: int | None = None


class System(Struct, frozen=True, kw_only=True):
    """Hold the operating system; `container` says by what sign this looks like a container, None if by none."""

    hostname: str | None = None
    name: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    container: str | None = None


def read_text(path: Path, limit_bytes: int = _FILE_LIMIT_BYTES) -> str | None:
    """Read a small file of the kernel's, bounded and without waiting; None where it cannot be read."""
    try:
        # Without waiting: what stands in the place of a file may be a pipe that nobody writes to.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        parts: list[bytes] = []
        left = limit_bytes
        while left > 0 and (part := os.read(handle, min(left, 1 << 16))):
            parts.append(part)
            left -= len(part)
    except OSError:
        return None
    finally:
        os.close(handle)
    return b"".join(parts).decode("utf-8", "replace")


def read_cpu(root: Path = Path("/"), lscpu: str | None = None) -> Cpu:
    """Read the processors; `lscpu` is the output of `lscpu -J`, which fills what /proc/cpuinfo leaves open."""
    known = cpuinfo.of_cpuinfo(read_text(root / "proc/cpuinfo") or "")
    known = known.filled_by(cpuinfo.of_lscpu(lscpu or ""))
    return Cpu(
        model=known.model,
        sockets=known.sockets,
        cores=known.cores,
        threads=known.threads or os.cpu_count(),
        numa_nodes=known.numa_nodes or _numa_nodes(root),
        usable_threads=_usable_threads(),
        quota_cores=_quota_cores(root),
    )


def read_memory(root: Path = Path("/")) -> Memory:
    """Read main memory and the limit that a control group sets, if any."""
    sizes = cpuinfo.of_meminfo(read_text(root / "proc/meminfo") or "")
    total = sizes.get("MemTotal")
    limits = (
        cpuinfo.whole(read_text(root / "sys/fs/cgroup" / name) or "")
        for name in ("memory.max", "memory/memory.limit_in_bytes")
    )
    limit = next((value for value in limits if value is not None), None)
    # The older control groups write "no limit" as a number near 2^63.
    if limit is not None and (limit <= 0 or limit >= (total if total is not None else 1 << 60)):
        limit = None
    return Memory(total_bytes=total, available_bytes=sizes.get("MemAvailable"), limit_bytes=limit)


def read_system(root: Path = Path("/")) -> System:
    """Read the operating system's name and kernel, and by what sign this looks like a container."""
    release = cpuinfo.of_os_release(
        read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release") or ""
    )
    return System(
        hostname=_told(socket.gethostname),
        name=release or _told(platform.system),
        kernel=_told(platform.release),
        architecture=_told(platform.machine),
        container=_container(root),
    )


def local_addresses(root: Path = Path("/")) -> frozenset[str]:
    """Return this machine's own addresses and its name, without asking any name server."""
    found = set(cpuinfo.of_fib_trie(read_text(root / "proc/net/fib_trie") or ""))
    found |= set(cpuinfo.of_if_inet6(read_text(root / "proc/net/if_inet6") or ""))
    hostname = _told(socket.gethostname)
    return frozenset(found | ({hostname} if hostname else set()))


def _told(ask: Callable[[], str]) -> str | None:
    try:
        return cpuinfo.clean(ask()) or None
    except (OSError, ValueError):
        return None


def _usable_threads() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on every system
        return None


def _numa_nodes(root: Path) -> int | None:
    try:
        names = [path.name for path in (root / "sys/devices/system/node").iterdir()]
    except OSError:
        return None
    return sum(name.startswith("node") and name[4:].isdecimal() for name in names) or None


def _quota_cores(root: Path) -> float | None:
    group = root / "sys/fs/cgroup"
    unified = (read_text(group / "cpu.max") or "").split()
    if len(unified) == 2:
        quota, period = cpuinfo.whole(unified[0]), cpuinfo.whole(unified[1])
    else:
        quota = cpuinfo.whole(read_text(group / "cpu/cpu.cfs_quota_us") or "")
        period = cpuinfo.whole(read_text(group / "cpu/cpu.cfs_period_us") or "")
    return quota / period if quota is not None and period and quota > 0 and period > 0 else None


def _container(root: Path) -> str | None:
    for name, said in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        try:
            if (root / name).exists():
                return f"{said} (/{name} exists)"
        except OSError:
            continue
    control = read_text(root / "proc/1/cgroup", 1 << 16) or ""
    for sign in ("kubepods", "docker", "containerd", "libpod", "lxc"):
        if sign in control:
            return f"{sign} (/proc/1/cgroup)"
    return None
