"""What a matrix was measured on: hardware, engine and run as three cards, "not stated" where nobody told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import htpy as h

from nameplate.hosts.description import HostDescription
from nameplate.hosts.gpu import Gpu
from nameplate.measure.speed_result import SpeedResult
from nameplate.pages.values import Raw, value
from nameplate.pages.words import facts
from nameplate.report import numbers
from nameplate.report.identity import value_of
from nameplate.report.ran_on import gpus_at_work
from nameplate.report.safe import safe

_GIB = 1 << 30
Entry = tuple[h.Node, h.Node]


def hardware_line(result: SpeedResult) -> str | None:
    """Return the server's GPUs in a few words, looked at or as told; None where nothing is known."""
    for host in result.hosts:
        if host.which == "server" and host.gpus:
            return " and ".join(_kinds(host.gpus))
    told = result.identity.text("hardware")
    # A model of an engine says "none" of its hardware.
    return None if told is None or told.startswith("none") else safe(told, 120)


def _kinds(gpus: Sequence[Gpu]) -> list[str]:
    kinds = Counter(safe(gpu.name or f"{gpu.vendor} GPU without a name", 80) for gpu in gpus)
    return [name if count == 1 else f"{count:,} x {name}" for name, count in kinds.items()]


def unstated(said: h.Node) -> h.Node:
    """Return what is said, or that nobody said it."""
    return h.span(".soft")["not stated"] if said is None or said == "" else said


def hardware_card(result: SpeedResult) -> h.Element:
    """Return the hardware of the server, or whose else it is."""
    entries: list[Entry | None] = []
    for position, host in enumerate(result.hosts):
        entries += _host(host, f"hosts.{position}")
    if not any(host.which == "server" for host in result.hosts):
        told = result.identity.text("hardware")
        entries.insert(
            0,
            (
                "Server's hardware",
                unstated(None if told is None else f"{safe(told, 200)} (as told, not looked at)"),
            ),
        )
    entries += [(label, str(said)) for label, said in gpus_at_work(result)]
    return h.div(".card")[h.h2["Hardware"], facts(entries)]


def _host(host: HostDescription, path: str) -> list[Entry | None]:
    server = host.which == "server"
    whose = safe(host.place.how, 300) + ("" if server else "; its hardware says nothing of the server")
    entries: list[Entry | None] = [("Server's host" if server else "Client's host", whose)]
    if not server:
        return [*entries, *_client(host)]
    kinds: dict[str, list[int]] = {}
    for index, gpu in enumerate(host.gpus):
        kinds.setdefault(f"{gpu.vendor} {gpu.name} {gpu.memory_total_bytes}", []).append(index)
    for held in kinds.values():
        entries += _gpu(host.gpus[held[0]], len(held), f"{path}.gpus.{held[0]}")
    if not host.gpus:
        entries.append(("GPU", f"none seen{f': {safe(host.gpus_note, 200)}' if host.gpus_note else ''}"))
    cpu, memory, system = host.cpu, host.memory, host.system
    cores = "" if cpu.cores is None else f", {cpu.cores:,} cores"
    if cpu.model is not None:
        entries.append(("CPU", f"{safe(cpu.model, 120)}{cores}"))
    if memory.total_bytes is not None:
        entries.append(
            ("Memory", value(_gib(memory.total_bytes), memory.total_bytes, f"{path}.memory.total_bytes"))
        )
    known = [safe(part, 80) for part in (system.name, system.kernel) if part is not None]
    entries.append(("OS", unstated(", kernel ".join(known))))
    entries += [("Fault", safe(fault, 300)) for fault in host.faults[:5]]
    return entries


def _client(host: HostDescription) -> list[Entry | None]:
    """Say in short what the machine is that sent the requests, under labels that cannot be taken for the server's."""
    known = (
        ("Client's GPU", " and ".join(_kinds(host.gpus))),
        ("Client's CPU", safe(host.cpu.model or "", 120)),
        ("Client's OS", safe(host.system.name or "", 80)),
    )
    return [(label, said) for label, said in known if said]


def _gpu(gpu: Gpu, count: int, path: str) -> list[Entry | None]:
    name = safe(gpu.name or "without a name", 120)
    entries: list[Entry | None] = [
        ("Type", f"{gpu.vendor.upper() if gpu.vendor == 'amd' else gpu.vendor.capitalize()} GPU"),
        ("GPU", name if count == 1 else f"{count:,} x {name}"),
    ]
    if gpu.memory_total_bytes is not None:
        each = "" if count == 1 else " each"
        entries.append(
            (
                "GPU memory",
                [
                    value(_gib(gpu.memory_total_bytes), gpu.memory_total_bytes, f"{path}.memory_total_bytes"),
                    each,
                ],
            )
        )
    if gpu.driver_version is not None:
        entries.append(("Driver", safe(gpu.driver_version, 40)))
    if gpu.power_limit_w is not None:
        entries.append(
            ("Power limit", value(f"{gpu.power_limit_w:,.0f} W", gpu.power_limit_w, f"{path}.power_limit_w"))
        )
    generation, width = gpu.pcie_generation_max or gpu.pcie_generation, gpu.pcie_width_max or gpu.pcie_width
    if generation is not None and width is not None:
        entries.append(("PCIe", f"gen {generation} x{width}"))
    return entries


def _gib(size: int) -> str:
    return f"{size / _GIB:,.0f} GiB"


# What people call a fact, and the names under which it may be known; the first that is known is shown.
_ENGINE = (
    ("Engine", ("engine",)),
    ("Version", ("version",)),
    ("Backend", ("backend",)),
    ("Quantisation", ("quantisation",)),
    ("Build", ("build", "image_digest")),
    ("Repository", ("repository",)),
)
_MORE = (("Parallel", "parallel_degrees"), ("Drafts", "speculative"), ("Graphs", "graph_policy"))


def engine_card(result: SpeedResult) -> h.Element:
    """Return the engine: what it is, and what it says that it can hold."""
    known, limits = result.identity.facts, result.limits
    entries: list[Entry | None] = []
    for label, names in _ENGINE:
        fact = next((known[name] for name in names if name in known), None)
        if fact is not None or label != "Repository":
            entries.append((label, unstated(None if fact is None else value_of(fact))))
    entries += [
        (label, value_of(known[name]))
        for label, name in _MORE
        if name in known and known[name].value not in ("", "none")
    ]
    entries += [
        ("Context limit", _held(limits.context_tokens, "tokens", "limits.context_tokens")),
        ("KV pool", _held(limits.kv_tokens, "tokens", "limits.kv_tokens")),
        ("Runs at once", _held(limits.running, "requests", "limits.running")),
    ]
    entries.append(("Address", unstated(h.code[safe(result.target, 300)] if result.target else None)))
    return h.div(".card")[h.h2["Engine"], facts(entries)]


def _held(raw: int | None, unit: str, path: str) -> h.Node:
    return unstated(None if raw is None else value(f"{raw:,} {unit}", raw, path))


def run_card(result: SpeedResult) -> h.Element:
    """Return how the cells were measured."""
    identity = result.identity
    revision = next((said for name in ("model_snapshot", "revision") if (said := identity.text(name))), None)
    entries: list[Entry | None] = [
        ("Served model", unstated(safe(result.model, 200) if result.model else None)),
        ("Revision", unstated(None if revision is None else safe(revision, 120))),
        *(_ours(result) if result.origin is None else _theirs(result)),
        ("Latencies", "medians"),
    ]
    return h.div(".card")[h.h2["Run"], facts(entries)]


def _ours(result: SpeedResult) -> list[Entry | None]:
    entries: list[Entry | None] = [("Benchmark tool", safe(result.tool, 80))]
    matrix = None if result.contract is None else result.contract.speed
    if result.contract is None or matrix is None:
        return entries
    window = numbers.limit(matrix.window_ns)
    rule = matrix.prefill
    counted = matrix.requests is not None
    return [
        *entries,
        (
            "Decode test",
            f"{matrix.requests:,} requests a cell" if counted else "fixed duration",
        ),
        (
            "Prefill mode",
            f"cold, one at a time, {rule.least} to {rule.most} a context"
            if matrix.prefill_contexts
            else "not measured",
        ),
        None
        if counted
        else ("Time per measurement", value(window, matrix.window_ns, "contract.speed.window_ns")),
        (
            "Max output",
            value(f"{matrix.output_tokens:,} tokens", matrix.output_tokens, "contract.speed.output_tokens"),
        ),
        (
            "Prompts",
            f"{matrix.unique_percent:g}% of each its own"
            + (", sent once before" if matrix.warm_streams else ""),
        ),
        ("Profile", safe(matrix.profile, 40)),
    ]


# What another tool's file says of its run, by that file's names; shown as it stands there.
_THEIRS = (
    ("Decode test", "decode_mode", ""),
    ("Prefill mode", "prefill_mode", ""),
    ("Time per measurement", "duration_per_test", " s"),
    ("Max output", "max_tokens", " tokens"),
    ("Temperature", "temperature", ""),
    ("EOS ignored", "ignore_eos", ""),
    ("Prompts", "unique_context_percent", "% of each its own"),
    ("Warm-up given up after", "cell_warmup_timeout_seconds", " s"),
)


def _theirs(result: SpeedResult) -> list[Entry | None]:
    origin = result.origin
    assert origin is not None
    entries: list[Entry | None] = [("Benchmark tool", f"{safe(origin.tool, 80)} {safe(origin.version, 40)}")]
    for label, name, unit in _THEIRS:
        raw = origin.metadata.get(name)
        if name not in origin.metadata:
            continue
        entries.append((label, unstated(_told(raw, unit, f"origin.metadata.{name}"))))
    return entries


def _told(raw: object, unit: str, path: str) -> h.Node:
    if isinstance(raw, bool):
        return value("yes" if raw else "no", raw, path)
    held: Raw = raw if isinstance(raw, int | float | str) else None
    if held is None:
        return None
    said = (
        f"{held:,g}" if isinstance(held, float) else f"{held:,}" if isinstance(held, int) else safe(held, 120)
    )
    return value(f"{said}{unit}", held, path)
