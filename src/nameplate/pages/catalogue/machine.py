"""What a run says of its machine, as the facets of a catalogue: GPU by name and count, engine, model, quantisation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from nameplate.contract.identity import Identity
from nameplate.hosts.description import HostDescription
from nameplate.report.safe import safe

_LIMIT = 160
# `4 x B70` as hosts and people write it, `GPU 0: NVIDIA H200 GPU 1: ...` as vLLM lists them.
_COUNTED = re.compile(r"(\d{1,5})\s*[x×]\s*(.+)", re.IGNORECASE)
_LISTED = re.compile(r"\bGPU \d+:\s*")
_NO_GPU = ("no tool lists a gpu", "no gpu reported", "none: a model of an engine")


class Machine(Struct, frozen=True, kw_only=True):
    """Hold the facts by which people look for a machine; null is not stated."""

    hardware: str | None
    gpu: str | None
    gpus: int | None
    engine: str | None
    engine_version: str | None
    model: str | None
    quantisation: str | None
    context_limit_tokens: int | None


def machine(identity: Identity, model: str = "", hosts: Sequence[HostDescription] = ()) -> Machine:
    """Return what is known; `model` is what was asked for, where the server does not tell its own."""
    hardware = _text(identity, "hardware")
    names = [
        safe(gpu.name or f"{gpu.vendor} GPU", 80)
        for host in hosts
        if host.which == "server"
        for gpu in host.gpus
    ]
    gpu, count = _together(Counter(names)) if names else gpus_of(hardware)
    return Machine(
        hardware=hardware or (f"{count} x {gpu}" if gpu else None),
        gpu=gpu,
        gpus=count,
        engine=_text(identity, "engine"),
        engine_version=_text(identity, "version"),
        model=_text(identity, "model") or safe(model, _LIMIT) or None,
        quantisation=_text(identity, "quantisation"),
        context_limit_tokens=identity.integer("context_limit_tokens"),
    )


def gpus_of(hardware: str | None) -> tuple[str | None, int | None]:
    """Read name and count of GPUs from words such as `2 x NVIDIA H200`; a machine without any has neither.

    Words that count nothing are a name whose count is not known.
    """
    if not hardware or any(words in hardware.lower() for words in _NO_GPU):
        return None, None
    if _LISTED.search(hardware):
        listed = [name.strip(" ,;") for name in _LISTED.split(hardware)[1:]]
        return _together(Counter(re.sub(r"\s*\(UUID:.*?\)", "", name) for name in listed))
    parts = [_COUNTED.fullmatch(part.strip()) for part in hardware.split(",")]
    if any(part is None for part in parts):
        return hardware, None
    counted: Counter[str] = Counter()
    for part in parts:
        assert part is not None
        counted[part[2].strip()] += int(part[1])
    return _together(counted)


def _together(counts: Counter[str]) -> tuple[str, int]:
    return ", ".join(sorted(counts)), counts.total()


def _text(identity: Identity, name: str) -> str | None:
    value = identity.text(name)
    return safe(value, _LIMIT) if value else None
