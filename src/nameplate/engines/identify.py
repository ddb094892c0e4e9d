"""Put together what is known of a server: what its API tells now, what its log told, what a person states."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from nameplate.contract.identity import COMPARED, Fact, Identity
from nameplate.engines.adapter import Adapter


class Identified(Struct, frozen=True):
    """Hold the identity and where its sources contradict each other."""

    identity: Identity
    conflicts: tuple[str, ...] = ()


def identify(
    adapter: Adapter, log: Mapping[str, Fact] | None = None, given: Mapping[str, Fact] | None = None
) -> Identified:
    """Return all facts: a person's win over the API's, and these over the log's, which may be of another start."""
    told = adapter.identity()
    return combine(told, log or {}, given or {})


def combine(told: Identity, log: Mapping[str, Fact], given: Mapping[str, Fact]) -> Identified:
    """Merge three sources; a log or a person that contradicts the API is named."""
    conflicts = []
    for name in COMPARED:
        live = told.facts.get(name)
        for other in (log.get(name), given.get(name)):
            if live is not None and other is not None and not _same(live, other):
                conflicts.append(
                    f"{name}: {other.source} says {other.value}, {live.source} says {live.value}"
                )
    return Identified(Identity({**log, **told.facts, **given}), tuple(conflicts))


def _same(one: Fact, other: Fact) -> bool:
    return one.value == other.value or str(one.value).lower() == str(other.value).lower()


def limit_warning(identity: Identity, concurrency: int) -> str | None:
    """Say that some of this many requests will wait in the server, or None. The limit never caps a level."""
    effective = identity.integer("running_limit_effective")
    requested = identity.integer("running_limit_requested")
    limit = effective if effective is not None else requested
    if limit is None or concurrency <= limit:
        return None
    reduced = f" (reduced from {requested})" if requested and effective and requested > effective else ""
    return f"The server runs at most {limit} requests at once{reduced}: of {concurrency}, {concurrency - limit} wait."
