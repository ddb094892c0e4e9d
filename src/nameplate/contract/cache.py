"""Whether prompts may meet a warm prefix cache, and how the cold state is reached."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import parse_tokens

FlushMode = Literal["auto", "never", "require"]


class CachePolicy(Struct, frozen=True):
    """State the prefix cache's part in the contract.

    `shared_prefix_tokens` is 0 for a cold contract; above 0 every prompt begins with the same prefix of that
    many tokens, which is warmed first. `flush` says what happens before each trial: `auto` flushes where the
    server can and goes on where it cannot, `require` refuses to measure without a proven flush, `never` leaves
    the cache alone.
    """

    shared_prefix_tokens: int = 0
    flush: FlushMode = "auto"

    @property
    def cold(self) -> bool:
        return self.shared_prefix_tokens == 0

    @classmethod
    def parse(cls, text: str, flush: FlushMode = "auto") -> CachePolicy:
        """Read `cold` or `warm:PREFIX` (tokens, `2k` allowed); CallerError otherwise."""
        kind, colon, rest = text.strip().partition(":")
        if kind == "cold" and not colon:
            return cls(0, flush)
        if kind == "warm" and rest:
            tokens = parse_tokens(rest)
            if tokens > 0:
                return cls(tokens, flush)
        raise CallerError(
            f"{text!r} is not a cache policy.",
            hint="Write cold, or warm:PREFIX with the shared tokens, e.g. warm:2k.",
        )

    def __str__(self) -> str:
        return "cold" if self.cold else f"warm:{self.shared_prefix_tokens}"
