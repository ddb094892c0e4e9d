"""The soak as it is asked for: one recipe for hours, how it ends, and how much of it is kept."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

SECOND_NS: Final = 10**9

SOAK_REQUESTS: Final = 1 << 30
"""The cap on a soak's requests: never reached, since time ends it; indices of records have 32 bits."""


class Soak(Struct, frozen=True, kw_only=True):
    """Bound a load by time instead of a number of requests.

    Requests are submitted for `duration_ns`, counted from the first one's due time. Then nothing more is started;
    what is in flight has `drain_ns` to end, and what is left after that is cancelled and named. What is read off a
    window of time is read off windows of `window_ns`.

    Of `raw_budget_bytes`, the compressed bytes of raw reads, the first half holds all requests whole, the second a
    sample, and what comes then keeps times and sizes alone; None is no bound. It is one budget for the whole soak: a
    segment that goes on has what those before it left. The server is scraped each `scrape_ns`,
    the client samples itself each `client_sample_ns`. A slot of a closed loop whose request failed waits
    `fault_pause_ns` before its next one, so that a server that is away is not asked thousands of times a second.
    """

    duration_ns: int
    window_ns: int = 300 * SECOND_NS
    drain_ns: int = 1800 * SECOND_NS
    raw_budget_bytes: int | None = None
    scrape_ns: int = SECOND_NS
    client_sample_ns: int = 10 * SECOND_NS
    fault_pause_ns: int = SECOND_NS
