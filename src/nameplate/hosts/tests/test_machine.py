"""Processors, memory and system from the kernel's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.hosts import cpuinfo
from nameplate.hosts.cpuinfo import CpuFacts
from nameplate.hosts.machine import local_addresses, read_cpu, read_memory, read_system, read_text

THREAD = """processor	: {thread}
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R)  Gold 6430
physical id	: {package}
siblings	: 4
core id		: {core}
cpu cores	: 2

"""
TWO_SOCKETS = "".join(
    THREAD.format(thread=thread, package=thread % 2, core=thread // 2 % 2) for thread in range(8)
)

LSCPU_NESTED = """{"lscpu": [
 {"field": "CPU(s):", "data": "128"},
 {"field": "Vendor ID:", "data": "ARM", "children": [
   {"field": "Model name:", "data": "Neoverse-V2", "children": [
     {"field": "Core(s) per socket:", "data": "64"}, {"field": "Socket(s):", "data": "2"}]}]},
 {"field": "NUMA:", "data": null, "children": [{"field": "NUMA node(s):", "data": "2"}]}]}"""

FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
Local:
  +-- 10.1.0.0/16 2 0 2
     +-- 10.1.2.0/24 2 0 2
        |-- 10.1.2.0
           /24 link UNICAST
        |-- 10.1.2.33
           /32 host LOCAL
        |-- 10.1.2.255
           /32 link BROADCAST
     |-- 127.0.0.1
        /32 host LOCAL
"""


def place(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_cpuinfo_counts_sockets_cores_and_threads() -> None:
    """A machine of two sockets, two cores each and two threads a core is counted so."""
    assert cpuinfo.of_cpuinfo(TWO_SOCKETS) == CpuFacts("Intel(R) Xeon(R) Gold 6430", 2, 4, 8)


def test_lscpu_fills_what_cpuinfo_leaves_open() -> None:
    """On a processor whose /proc/cpuinfo has no model and no package, lscpu tells them."""
    arm = cpuinfo.of_cpuinfo("processor\t: 0\nBogoMIPS\t: 2000\n\nprocessor\t: 1\n")
    assert arm == CpuFacts(threads=2)
    assert arm.filled_by(cpuinfo.of_lscpu(LSCPU_NESTED)) == CpuFacts("Neoverse-V2", 2, 128, 2, 2)


def test_machine_is_read_from_files(tmp_path: Path) -> None:
    """Processors, quota, memory, limit, system and container come from the kernel's own files."""
    root = place(
        tmp_path,
        {
            "proc/cpuinfo": TWO_SOCKETS,
            "proc/meminfo": "MemTotal:       64000000 kB\nMemFree: 1 kB\nMemAvailable:   48000000 kB\nOdd: x kB\n",
            "sys/fs/cgroup/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/memory.max": "17179869184\n",
            "sys/devices/system/node/node0/cpulist": "0-3",
            "sys/devices/system/node/node1/cpulist": "4-7",
            "etc/os-release": 'NAME="X"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
            "proc/1/cgroup": "0::/kubepods/besteffort/pod1\n",
        },
    )
    cpu = read_cpu(root)
    assert (cpu.sockets, cpu.cores, cpu.threads, cpu.numa_nodes, cpu.quota_cores) == (2, 4, 8, 2, 2.5)
    memory = read_memory(root)
    assert memory.total_bytes == 64000000 * 1024 and memory.available_bytes == 48000000 * 1024
    assert memory.limit_bytes == 16 << 30
    system = read_system(root)
    assert system.name == "Ubuntu 24.04.1 LTS"
    assert system.container == "kubepods (/proc/1/cgroup)"


def test_no_limit_is_null(tmp_path: Path) -> None:
    """A control group without a limit, in its newer and its older words, limits nothing."""
    new = place(tmp_path / "new", {"sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max"})
    old = place(
        tmp_path / "old",
        {
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    for root in (new, old):
        assert read_cpu(root).quota_cores is None
        assert read_memory(root).limit_bytes is None


def test_no_files_no_facts(tmp_path: Path) -> None:
    """A machine without /proc has no facts of it, not zeros, and no error."""
    cpu, memory = read_cpu(tmp_path), read_memory(tmp_path)
    assert (cpu.model, cpu.sockets, cpu.cores, cpu.numa_nodes) == (None, None, None, None)
    assert (memory.total_bytes, memory.available_bytes) == (None, None)
    assert read_system(tmp_path).container is None


def test_docker_is_told_by_its_file(tmp_path: Path) -> None:
    """The file that docker leaves in its containers is the sign."""
    assert read_system(place(tmp_path, {".dockerenv": ""})).container == "docker (/.dockerenv exists)"


def test_local_addresses_without_a_name_server(tmp_path: Path) -> None:
    """Own addresses are the kernel's local ones, of both families."""
    six = "fe800000000000000000000000000001 02 40 20 80 eth0\nodd\n"
    root = place(tmp_path, {"proc/net/fib_trie": FIB_TRIE, "proc/net/if_inet6": six})
    found = local_addresses(root)
    assert {"10.1.2.33", "127.0.0.1", "fe80::1"} <= found
    assert "10.1.2.255" not in found and "10.1.2.0" not in found


def test_reading_never_waits(tmp_path: Path) -> None:
    """A pipe that nobody writes to, a directory, no file and a name with a null are unreadable or empty at once."""
    os.mkfifo(tmp_path / "pipe")
    assert not read_text(tmp_path / "pipe")
    assert read_text(tmp_path) is None
    assert read_text(tmp_path / "none") is None
    assert read_text(Path("a\0b")) is None


def test_reading_is_bounded(tmp_path: Path) -> None:
    """No more than the limit is read of a file, and odd bytes are replaced."""
    (tmp_path / "big").write_bytes(b"\xff" * 5000)
    assert read_text(tmp_path / "big", 1000) == "�" * 1000


@given(
    st.text(alphabet=st.sampled_from(list(": \t\n0123456789abkBproces|-/LOCALhost{}[]\"'=")), max_size=200)
)
def test_parsers_never_raise(text: str) -> None:
    """Odd texts of the kernel or of lscpu give fewer facts, never an error."""
    cpuinfo.of_cpuinfo(text)
    cpuinfo.of_lscpu(text)
    cpuinfo.of_meminfo(text)
    cpuinfo.of_os_release(text)
    list(cpuinfo.of_fib_trie(text))
    list(cpuinfo.of_if_inet6(text))


@pytest.mark.parametrize("text", ['{"lscpu": 3}', "[]", '{"lscpu": [{"field": 3}, 4, null]}', "[" * 5000])
def test_odd_lscpu(text: str) -> None:
    """JSON of another shape tells nothing."""
    assert cpuinfo.of_lscpu(text) == CpuFacts()
