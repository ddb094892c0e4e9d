"""Describe this machine: read the kernel's files, ask NVML and the vendors' tools, all within half a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate.hosts import nvml, tools
from nameplate.hosts.description import HostDescription
from nameplate.hosts.diagnostic import DEADLINE_S, Diagnostic, Probe, run_all
from nameplate.hosts.gpu import Gpu
from nameplate.hosts.machine import local_addresses, read_cpu, read_memory, read_system
from nameplate.hosts.p2p import read_p2p
from nameplate.hosts.place import Place, Which, locate

# For everything together; the commands run side by side, so that one deadline of theirs is what it takes at most.
TOTAL_S = 30.0

LSCPU = Probe("lscpu", ("lscpu", "-J"))


def nvml_probe() -> Probe:
    """Return the command that asks NVML from a process of its own."""
    return Probe("nvml", (sys.executable, "-m", "nameplate.hosts.nvml"))


def place_of(target_host: str, server_host_option: str | None = None) -> Place:
    """Decide whether this machine is the server's host, with this machine's own addresses."""
    return locate(target_host, server_host_option, local_addresses())


def describe(
    which: Which,
    how: str = "",
    *,
    root: Path = Path("/"),
    deadline_s: float = DEADLINE_S,
    probes: Sequence[Probe] = tools.PROBES,
) -> HostDescription:
    """Describe this machine as the host of the server or of the client; `how` keeps in words why it is that one.

    `deadline_s` bounds each command. It never raises for what a machine's files or tools say, and ends within
    `TOTAL_S` seconds.
    """
    deadline_s = min(deadline_s, TOTAL_S - 5)
    faults: list[str] = []
    asked = [LSCPU, *probes]
    nvml_there = nvml.installed()
    started_s = time.monotonic()
    answers = list(run_all([*asked, nvml_probe()] if nvml_there else asked, deadline_s))
    took_s = time.monotonic() - started_s
    if not nvml_there:
        absent = Diagnostic(name="nvml", command=nvml_probe().command, did_not_run=nvml.NOT_INSTALLED)
        answers.append(absent)
    if took_s > deadline_s:
        faults.append(f"asking the tools took {took_s:.0f} s, and what had not ended was left")
    lscpu, nvml_answer = answers[0], answers[-1]
    gpus, source, note = _gpus(nvml_answer, answers[1:-1])
    return HostDescription(
        place=Place(which, how),
        cpu=read_cpu(root, lscpu.stdout if lscpu.ok else None),
        memory=read_memory(root),
        system=read_system(root),
        gpus=gpus,
        gpus_source=source,
        gpus_note=note,
        p2p=read_p2p(root),
        diagnostics=tuple(answers),
        faults=tuple(faults),
    )


def _gpus(
    nvml_answer: Diagnostic, answers: Sequence[Diagnostic]
) -> tuple[tuple[Gpu, ...], str | None, str | None]:
    """Return the GPUs, what told of them, and what is to be said of it; NVML wins over nvidia-smi."""
    told, told_by = tools.gpus_told(answers)
    ours, why_not = _of_nvml(nvml_answer)
    if not ours:
        note = why_not
        if not told:
            note += "; no tool of a vendor lists a GPU"
        return told, told_by, note
    others = tuple(gpu for gpu in told if gpu.vendor != "nvidia")
    names = ["nvml", *(name for name in (told_by or "").split(" and ") if name not in ("", "nvidia-smi"))]
    return ours + others, " and ".join(names), None


def _of_nvml(answer: Diagnostic) -> tuple[tuple[Gpu, ...], str]:
    if answer.did_not_run is not None:
        return (), f"NVML did not run: {answer.did_not_run}"
    if answer.returncode != 0:
        return (), answer.stderr or f"NVML's process ended with {answer.returncode}"
    try:
        gpus = msgspec.json.decode(answer.stdout, type=tuple[Gpu, ...])
    except (msgspec.MsgspecError, RecursionError):
        return (), "NVML's answer cannot be read"
    return gpus, "NVML lists no GPU"


def without_output(description: HostDescription) -> HostDescription:
    """Return the same without the tools' outputs, for where only the facts are wanted."""
    short = tuple(structs.replace(entry, stdout="", stderr="") for entry in description.diagnostics)
    return structs.replace(description, diagnostics=short)
