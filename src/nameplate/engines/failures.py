"""Why no HTTP answer came, worded for the person who has to do something about it."""

from __future__ import annotations

from typing import Literal

from nameplate.contract.errors import ServerError
from nameplate.contract.target import Target

FailureKind = Literal["refused", "unreachable", "dns", "timeout", "tls", "reset", "too_large", "not_http"]


class TransportError(ServerError):
    """Say that no whole HTTP answer came, and by which kind of failure."""

    def __init__(self, kind: FailureKind, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what, why=why, hint=hint)
        self.kind = kind


def failure(kind: FailureKind, target: Target, detail: str = "") -> TransportError:
    """Word one failure for a person: what happened, why it matters, what to try."""
    where = target.url
    said = f" ({detail})" if detail else ""
    if kind == "refused":
        return TransportError(
            kind,
            f"Nothing listens at {where}: the connection was refused.",
            hint="Is the server started, has it finished loading, and are host and port right?",
        )
    if kind == "unreachable":
        return TransportError(
            kind, f"{where} cannot be reached{said}.", hint="Check the network, the host and the port."
        )
    if kind == "dns":
        return TransportError(
            kind,
            f"The name {target.host} cannot be resolved{said}.",
            hint="Check its spelling, or give an address.",
        )
    if kind == "timeout":
        return TransportError(
            kind,
            f"{where} gave no whole answer in time{said}.",
            why="A server that hangs cannot be measured.",
            hint="Is it still loading a model, overloaded, or is something else on this port?",
        )
    if kind == "tls":
        return TransportError(
            kind,
            f"TLS with {where} failed{said}.",
            why="Certificates are verified by default.",
            hint="Give the authority's certificate with --ca-file, or --insecure to skip the check, "
            "or http:// if the server speaks plain HTTP.",
        )
    if kind == "reset":
        tls = (
            " A server that speaks TLS does this to http://: try https://." if target.scheme == "http" else ""
        )
        return TransportError(
            kind,
            f"{where} closed the connection before its answer was whole{said}.",
            hint=f"See its log.{tls}",
        )
    if kind == "too_large":
        return TransportError(
            kind,
            f"{where} sent more than can be read safely{said}.",
            hint="Is this an OpenAI-compatible server?",
        )
    return TransportError(
        kind,
        f"{where} does not answer in HTTP{said}.",
        hint="Is this the port of an OpenAI-compatible server, and should the URL begin with https://?",
    )
