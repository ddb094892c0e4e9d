"""What was rated, from the facts that are known of it."""

from __future__ import annotations

from nameplate.contract.identity import Identity
from nameplate.engines.builtin import ENGINE as SIMULATED_ENGINE
from nameplate.hosts.description import HostDescription
from nameplate.hosts.gpu import Gpu
from nameplate.ratingplate.model import Field, Provenance
from nameplate.report import numbers
from nameplate.report.safe import safe

SIMULATED = "SIMULATED"
_MODEL_LIMIT = 400
_GIB = 1 << 30


def machine_of(
    identity: Identity, model: str = "", hosts: tuple[HostDescription, ...] = ()
) -> tuple[Field, ...]:
    """Return the lines of a plate that say what was rated; a fact that is not known is None.

    `hosts` describe machines that were looked at; only the server's own tells of its hardware.
    """
    engine = " ".join(part for name in ("engine", "version") if (part := _text(identity, name)) is not None)
    return (
        Field("Model", safe(model or None, _MODEL_LIMIT) if model else _text(identity, "model")),
        Field("Hardware", _text(identity, "hardware") or _gpus(hosts)),
        Field("Engine", engine or None),
        Field("Quantisation", _text(identity, "quantisation")),
        Field("Context limit", _tokens(identity, "context_limit_tokens")),
        Field("KV cache", _tokens(identity, "kv_tokens")),
    )


def stamps_of(identity: Identity, provenance: Provenance) -> tuple[str, ...]:
    """Return the stamp of what no real machine did: simulated time, or the built-in engine."""
    simulated = provenance.virtual or identity.text("engine") == SIMULATED_ENGINE
    return (SIMULATED,) if simulated else ()


def _text(identity: Identity, name: str) -> str | None:
    told = identity.text(name)
    return safe(told, _MODEL_LIMIT) if told and told.strip() else None


def _tokens(identity: Identity, name: str) -> str | None:
    known = identity.integer(name)
    return None if known is None else numbers.count(known, "token")


def _memory(gpu: Gpu) -> str:
    return "" if gpu.memory_total_bytes is None else f" {gpu.memory_total_bytes / _GIB:,.0f} GiB"


def _gpus(hosts: tuple[HostDescription, ...]) -> str | None:
    names = [
        safe(gpu.name or f"GPU of {gpu.vendor}", 120) + _memory(gpu)
        for host in hosts
        if host.which == "server"
        for gpu in host.gpus
    ]
    kinds = dict.fromkeys(names)
    return ", ".join(f"{names.count(kind)} x {kind}" for kind in kinds) or None
