"""What a probe reports: one capability a line, and every request that it sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from nameplate.contract.identity import Identity
from nameplate.contract.target import Target
from nameplate.engines.flush import FlushProof

Status = Literal["yes", "no", "unknown", "refused"]


# Where the engine has no switch of its own for it.
HINTS: Mapping[str, str] = {
    "streaming": "TTFT and gaps cannot be measured without it; a proxy in between may hold streams back.",
    "streaming usage": "Token counts are then estimated by events; a gateway may drop `stream_options`.",
    "continuous usage": "Token times are then spread evenly over the events, and marked estimated.",
    "ignore_eos": "Output lengths then vary; measure with natural stops.",
    "context limit": "Give --fact context_limit_tokens=N; otherwise the baseline at full shape decides.",
    "KV tokens": "Give --kv-tokens N or --server-log FILE.",
    "running limit": "Give --server-log FILE or --fact running_limit_effective=N.",
    "portability": "Give --server-log FILE or --fact name=value.",
}


class Capability(Struct, frozen=True):
    """Hold whether one thing works, what was seen, and how to turn it on for this engine ("" if it is not known)."""

    name: str
    status: Status
    detail: str = ""
    how_to_enable: str = ""


class ProbeRequest(Struct, frozen=True):
    """Hold one request of the probe for the study's journal: its purpose, its body's SHA-256, what came back.

    `prompt` is the user text, so that later prompts can be shown to be disjoint from it.
    """

    purpose: str
    body_sha256: str
    prompt: str
    status: int | None
    outcome: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    error: str | None = None


class ProbeReport(Struct, frozen=True):
    """Hold what a server is, what works, and what measurements should send it.

    `target` names the model and the `stream_options` that were accepted. `dropped` are the request fields that the
    server refused. `floor_tokens`: cached tokens that any two prompts share; None is unknown. `limit_field` is the name
    of the output limit that it honours. `conflicts` are sources that contradict each other.
    """

    engine: str
    detected_by: str
    target: Target
    identity: Identity
    capabilities: tuple[Capability, ...]
    requests: tuple[ProbeRequest, ...]
    dropped: tuple[str, ...] = ()
    floor_tokens: int | None = None
    flush: FlushProof | None = None
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    reports_cached_tokens: bool | None = None
    conflicts: tuple[str, ...] = ()

    def capability(self, name: str) -> Capability | None:
        return next((one for one in self.capabilities if one.name == name), None)

    def works(self, name: str) -> bool:
        """Say whether this is known to work."""
        found = self.capability(name)
        return found is not None and found.status == "yes"

    @property
    def missing(self) -> tuple[Capability, ...]:
        """Return what does not work or is not known."""
        return tuple(one for one in self.capabilities if one.status != "yes")
