"""What a server says that it can hold: the numbers that decide which cells of a matrix can be run at all."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.identity import Identity


class ServerLimits(Struct, frozen=True, kw_only=True):
    """Hold a server's limits in tokens and requests; None is unknown."""

    context_tokens: int | None = None
    running: int | None = None
    kv_tokens: int | None = None
    block_tokens: int | None = None
    prefix_caching: bool | None = None

    @classmethod
    def of(cls, identity: Identity) -> ServerLimits:
        """Take the limits from a server's identity; the effective running limit before the requested one."""
        running = identity.integer("running_limit_effective")
        return cls(
            context_tokens=identity.integer("context_limit_tokens"),
            running=running if running is not None else identity.integer("running_limit_requested"),
            kv_tokens=identity.integer("kv_tokens"),
            block_tokens=identity.integer("block_size_tokens"),
            prefix_caching=caching if isinstance(caching := identity.value("prefix_caching"), bool) else None,
        )
