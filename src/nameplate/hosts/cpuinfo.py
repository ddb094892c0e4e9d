"""The kernel's own texts about processors, memory and addresses, parsed; odd text gives fewer facts, never an error."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import msgspec
from msgspec import Struct, structs

_TEXT_LIMIT = 200
# Longer digits than any count has; int() of a very long text is refused by Python itself.
_DIGITS = 19


class CpuFacts(Struct, frozen=True):
    """Hold what one source tells of the processors."""

    model: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    numa_nodes: int | None = None

    def filled_by(self, other: CpuFacts) -> CpuFacts:
        """Return the same with what was open filled from another source."""
        ours = structs.asdict(self)
        theirs = structs.asdict(other)
        return CpuFacts(**{name: theirs[name] if value is None else value for name, value in ours.items()})


def clean(text: str, limit: int = _TEXT_LIMIT) -> str:
    """Return printable text of one line, bounded."""
    kept = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * limit])
    return " ".join(kept.split())[:limit]


def whole(text: str) -> int | None:
    """Read a whole number; None for anything else."""
    text = text.strip()
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > _DIGITS:
        return None
    return int(text)


def of_cpuinfo(text: str) -> CpuFacts:
    """Read /proc/cpuinfo: one block a thread."""
    models: list[str] = []
    threads = 0
    packages: set[str] = set()
    cores: set[tuple[str, str]] = set()
    package = ""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon:
            continue
        if name == "processor" and whole(value) is not None:
            threads += 1
        elif name in ("model name", "Model", "cpu model") and value:
            models.append(value)
        elif name == "physical id":
            package = value
            packages.add(value)
        elif name == "core id":
            cores.add((package, value))
    return CpuFacts(
        clean(models[0]) if models else None, len(packages) or None, len(cores) or None, threads or None
    )


def of_lscpu(text: str) -> CpuFacts:
    """Read the output of `lscpu -J`; newer versions nest their fields."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return CpuFacts()
    facts: dict[str, str] = {}
    fields = document.get("lscpu") if isinstance(document, dict) else None
    for name, data in _lscpu_fields(fields):
        facts.setdefault(name.rstrip(":").strip(), data)
    sockets = whole(facts.get("Socket(s)", ""))
    each = whole(facts.get("Core(s) per socket", ""))
    model = facts.get("Model name", "")
    return CpuFacts(
        clean(model) if model.strip("- ") else None,
        sockets or None,
        (sockets or 0) * (each or 0) or None,
        whole(facts.get("CPU(s)", "")) or None,
        whole(facts.get("NUMA node(s)", "")) or None,
    )


def _lscpu_fields(fields: object, depth: int = 0) -> Iterator[tuple[str, str]]:
    if not isinstance(fields, list) or depth > 8:
        return
    for field in fields:
        if not isinstance(field, dict):
            continue
        name, data = field.get("field"), field.get("data")
        if isinstance(name, str) and isinstance(data, str):
            yield name, data
        yield from _lscpu_fields(field.get("children"), depth + 1)


def of_meminfo(text: str) -> dict[str, int]:
    """Read /proc/meminfo into bytes by name."""
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        value = whole(words[0]) if words else None
        # The kernel writes "kB" and means KiB.
        if value is not None and value >= 0 and words[1:] == ["kB"]:
            sizes[name.strip()] = value * 1024
    return sizes


def of_os_release(text: str) -> str | None:
    """Read the system's name from /etc/os-release."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "PRETTY_NAME":
            return clean(value.strip().strip("\"'")) or None
    return None


def of_fib_trie(text: str) -> Iterator[str]:
    """Yield the machine's IPv4 addresses from /proc/net/fib_trie: a leaf whose next line says `host LOCAL`."""
    address = ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["|--"] and len(words) == 2:
            address = words[1]
        elif words[-2:] == ["host", "LOCAL"] and address:
            yield address


def of_if_inet6(text: str) -> Iterator[str]:
    """Yield the machine's IPv6 addresses from /proc/net/if_inet6."""
    for line in text.splitlines():
        digits = line.partition(" ")[0]
        try:
            yield str(ipaddress.IPv6Address(bytes.fromhex(digits)))
        except ValueError:
            continue
