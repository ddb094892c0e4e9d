"""The protocol's tolerances, each a pure function; sources are the protocol's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from nameplate.contract.slo import Slo

PROMPT_TOLERANCE_TOKENS = 8
PROMPT_TOLERANCE_PERMILLE = 5
PROMPT_INVALID_PERCENT = 2

# Used where a server reports cached tokens and not its block size: the largest page size in common use.
UNKNOWN_BLOCK_TOKENS = 64

LATENESS_FLOOR_NS = 2_000_000
LATENESS_WITHOUT_SLO_NS = 5_000_000
# What late sends may take of held streams' time: no more than rates may be wrong.
SEND_LAG_SHARE = 0.005

# Rebuilt concurrency may be below the plan for this share of the time at most.
UNDERFILLED_SHARE = 0.01


def prompt_length(asked: int, counted: int) -> Literal["ok", "warned", "wrong"]:
    """Judge one prompt's length: within max(8, 0.5%) is ok, beyond 2% wrong, between them warned.

    For short prompts 2% is less than 8 tokens; there the wider of the two decides.
    """
    off = abs(counted - asked)
    if off <= PROMPT_TOLERANCE_TOKENS or off * 1000 <= asked * PROMPT_TOLERANCE_PERMILLE:
        return "ok"
    return "wrong" if off * 100 > asked * PROMPT_INVALID_PERCENT else "warned"


def cached_range(shared_prefix: int, floor: int | None, block: int | None) -> tuple[int, int]:
    """Return the fewest and the most cached tokens that the cache policy allows a request.

    Cold: at most the template's floor and one block. With a shared prefix of S tokens: S +- one block; the
    template's head stands before the prefix and may be counted with it.
    """
    size = block or UNKNOWN_BLOCK_TOKENS
    high = shared_prefix + (floor or 0) + size
    return (max(0, shared_prefix - size) if shared_prefix else 0), high


def cached_most(shared: int, floor: int | None, block: int | None) -> int:
    """Return the most cached tokens of a prompt that shares its first `shared` tokens with earlier ones.

    As with a shared prefix: the template's head and one block may be counted with it. Its length was calibrated, so
    that it may be off as far as a prompt may.
    """
    return cached_range(shared, floor, block)[1] + -(-shared * PROMPT_INVALID_PERCENT // 100)


def lateness_budget_ns(slos: Iterable[Slo]) -> int:
    """Return how late the client may be at p99: max(2 ms, 1% of the tightest time limit), 5 ms without one."""
    limits = [slo.limit_ns for slo in slos if slo.limit_ns is not None]
    return max(LATENESS_FLOOR_NS, min(limits) // 100) if limits else LATENESS_WITHOUT_SLO_NS
