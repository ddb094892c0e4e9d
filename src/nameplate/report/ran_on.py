"""What a speed result was measured on: the server's own account, and hosts that each say whose they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.limits import ServerLimits
from nameplate.hosts.description import HostDescription
from nameplate.hosts.gpu import Gpu
from nameplate.hosts.summary import GpuSummary
from nameplate.measure.speed_result import SpeedResult
from nameplate.report import numbers
from nameplate.report.cells import name_of, values_of
from nameplate.report.layout import facts, heading
from nameplate.report.safe import safe, safe_text

_GIB = 1 << 30
# What a diagnostic says of a tool that is not there, behind the tool's name.
_NOT_INSTALLED = " is not installed"
# An honest command line or note is shorter; a hostile one is counted.
_TEXT_LIMIT = 2000


def ran_on(result: SpeedResult) -> RenderableType:
    """Return what the numbers were measured on, as far as it is known."""
    lines: list[tuple[str, RenderableType]] = [("Server", safe_text(_server(result), "", 1000))]
    for name, label in (
        ("quantisation", "Quantised"),
        ("parallel_degrees", "Parallel"),
        ("speculative", "Drafts"),
    ):
        value = result.identity.text(name)
        if value not in (None, "", "none"):
            lines.append((label, safe(value) + (_accepted(result) if name == "speculative" else "")))
    lines.append(("Limits", _limits(result.limits)))
    for host in result.hosts:
        lines += _host(host)
    if not result.hosts:
        lines.append(("Hardware", _told_hardware(result)))
    lines += gpus_at_work(result)
    if result.launch_command:
        lines.append(("Launched by", safe_text(result.launch_command, "", _TEXT_LIMIT)))
    if result.note:
        lines.append(("Note", safe_text(result.note, "", _TEXT_LIMIT)))
    return Group(heading("What it ran on"), facts(lines))


def _server(result: SpeedResult) -> str:
    identity = result.identity
    engine = " ".join(text for name in ("engine", "version") if (text := identity.text(name)) is not None)
    model = result.model or identity.text("model") or "a model that it does not name"
    said = f"{engine or 'an engine that does not name itself'}, serving {model}"
    return f"{said}, at {result.target}" if result.target else said


def _accepted(result: SpeedResult) -> str:
    """Say how many of the drafted tokens were accepted in the valid cells, and what a chunk held."""
    valid = [values for row in result.rows_of("decode") if (values := values_of(row)) is not None]
    shares = [v.speculation.acceptance for v in valid if v.speculation is not None]
    known = [share for share in shares if share is not None]
    chunks = [v.tokens_per_chunk for v in valid if v.tokens_per_chunk is not None]
    said = ""
    if known:
        said += (
            f", {numbers.between(f'{min(known):.0%}', f'{max(known):.0%}')} of the drafted tokens accepted"
        )
    if chunks:
        said += f", {numbers.between(f'{min(chunks):.2f}', f'{max(chunks):.2f}')} tokens a chunk"
    return said


def _limits(limits: ServerLimits) -> str:
    block = "" if limits.block_tokens is None else f" in blocks of {limits.block_tokens:,}"
    said = [
        f"context {numbers.count(limits.context_tokens)} tokens" if limits.context_tokens is not None else "",
        f"KV pool {limits.kv_tokens:,} tokens{block}" if limits.kv_tokens is not None else "",
        f"runs {limits.running:,} at once" if limits.running is not None else "",
    ]
    unknown = [
        name
        for name, value in (
            ("context", limits.context_tokens),
            ("KV pool", limits.kv_tokens),
            ("how many it runs at once", limits.running),
        )
        if value is None
    ]
    known = ", ".join(part for part in said if part)
    missing = f"not told: {', '.join(unknown)}" if unknown else ""
    return "; ".join(part for part in (known, missing) if part)


def _told_hardware(result: SpeedResult) -> str:
    told = result.identity.text("hardware")
    return "not described" if told is None else f"{safe(told)} (as it was told, not looked at)"


def _host(host: HostDescription) -> list[tuple[str, RenderableType]]:
    whose = "Server's host" if host.which == "server" else "Client's host"
    how = safe(host.place.how)
    if host.which == "client":
        how += "; its hardware says nothing of the server"
    lines: list[tuple[str, RenderableType]] = [
        (whose, Text(how, style="" if host.which == "server" else "yellow"))
    ]
    cpu, memory, system = host.cpu, host.memory, host.system
    cores = " ".join(
        part
        for part in (
            "" if cpu.sockets is None or cpu.sockets == 1 else f"{cpu.sockets} sockets,",
            "" if cpu.cores is None else f"{cpu.cores:,} cores,",
            "" if cpu.threads is None else numbers.count(cpu.threads, "thread"),
        )
        if part
    ).rstrip(",")
    machine = [
        safe(cpu.model, 120) if cpu.model is not None else "",
        cores,
        f"{memory.total_bytes / _GIB:,.0f} GiB of memory" if memory.total_bytes is not None else "",
        safe(system.name, 80) if system.name is not None else "",
        f"kernel {safe(system.kernel, 80)}" if system.kernel is not None else "",
        f"in a container ({safe(system.container, 80)})" if system.container is not None else "",
    ]
    told = ", ".join(part for part in machine if part)
    if told or not host.gpus:
        lines.append(("", told or "nothing of it could be read"))
    lines += [("", said) for said in _gpus(host.gpus)]
    if not host.gpus:
        lines.append(("", f"no GPU seen: {safe(host.gpus_note)}" if host.gpus_note else "no GPU seen"))
    silent = _silent(host)
    if silent:
        lines.append(("", Text(silent, style="dim")))
    lines += [("", safe_text(fault, "yellow")) for fault in host.faults[:5]]
    return lines


def _gpus(gpus: Sequence[Gpu]) -> list[str]:
    """Say each kind of GPU once, with how many there are."""
    kinds = Counter(_gpu(gpu) for gpu in gpus)
    return [f"{count:,} x {said}" for said, count in kinds.items()]


def _gpu(gpu: Gpu) -> str:
    said = [safe(gpu.name or f"a GPU of {gpu.vendor} without a name", 120)]
    if gpu.memory_total_bytes is not None:
        said.append(f"{gpu.memory_total_bytes / _GIB:,.0f} GiB")
    if gpu.driver_version is not None:
        said.append(f"driver {safe(gpu.driver_version, 40)}")
    if gpu.power_limit_w is not None:
        said.append(f"limit {gpu.power_limit_w:,.0f} W")
    generation = gpu.pcie_generation_max or gpu.pcie_generation
    width = gpu.pcie_width_max or gpu.pcie_width
    if generation is not None and width is not None:
        now = gpu.pcie_width is not None and gpu.pcie_width_max not in (None, gpu.pcie_width)
        narrow = f", now x{gpu.pcie_width}" if now else ""
        said.append(f"PCIe gen {generation} x{width}{narrow}")
    return ", ".join(said)


def _silent(host: HostDescription) -> str:
    """Say in one line which diagnostics gave no answer: tools that are not there once each, others with the reason."""
    absent: dict[str, None] = {}
    failed = []
    for one in host.diagnostics:
        if one.ok:
            continue
        reason = one.did_not_run or f"ended with {one.returncode}"
        tool, missing, _ = reason.partition(_NOT_INSTALLED)
        if missing:
            absent[safe(tool, 60)] = None
        else:
            failed.append(f"{safe(one.name, 60)} ({safe(reason, 80)})")
    said = [f"not installed: {', '.join(absent)}"] if absent else []
    if failed:
        said.append(f"did not run: {', '.join(failed)}")
    return "; ".join(said)


def gpus_at_work(result: SpeedResult) -> list[tuple[str, str]]:
    """Say what the GPUs did in the valid cells, and what a token took; nothing where nobody looked."""
    measured = [
        (row, values, values.gpu)
        for row in result.rows
        if (values := values_of(row)) is not None and values.gpu is not None
    ]
    if not measured:
        return []
    summaries = [summary for _, _, summary in measured]
    power = [one.all_gpus.power_mean_w for one in summaries if one.all_gpus.power_mean_w is not None]
    heat = [one.all_gpus.temperature_max_c for one in summaries if one.all_gpus.temperature_max_c is not None]
    use = [m for one in summaries if (m := one.all_gpus.utilisation_mean_percent) is not None]
    said = [
        f"use {numbers.between(f'{min(use):.0f}%', f'{max(use):.0f}%')}" if use else "",
        f"power {numbers.between(f'{min(power):,.0f} W', f'{max(power):,.0f} W')}" if power else "",
        f"up to {max(heat)} C" if heat else "",
        _throttled(summaries),
    ]
    shown = ", ".join(part for part in said if part) or numbers.ABSENT
    scope = f"means of the valid cells; {safe(summaries[0].scope)}"
    lines = [("GPUs at work", f"{shown} ({scope})")]
    energy = [(v.energy_per_token_j, row) for row, v, _ in measured if v.energy_per_token_j is not None]
    if energy:
        low, high = min(energy, key=lambda pair: pair[0]), max(energy, key=lambda pair: pair[0])
        said_energy = f"{_joules(low[0])} a token at {name_of(low[1])}"
        if high[1] is not low[1]:
            said_energy += f", {_joules(high[0])} at {name_of(high[1])}"
        lines.append(("Energy", said_energy))
    return lines


def _joules(value: float) -> str:
    return f"{value:.3g} J" if value < 1000 else f"{value:,.0f} J"


def _throttled(summaries: Iterable[GpuSummary]) -> str:
    worst: dict[str, float] = {}
    for summary in summaries:
        for one in summary.all_gpus.throttle:
            worst[one.reason] = max(worst.get(one.reason, 0.0), one.share)
    if not worst:
        return ""
    shown = sorted(worst.items(), key=lambda pair: (-pair[1], pair[0]))[:4]
    said = ", ".join(f"{safe(reason, 60)} in up to {share:.0%} of samples" for reason, share in shown)
    return f"clocks held back by {said}"
