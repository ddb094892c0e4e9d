"""Flush the prefix cache and prove it: P, P, flush, P, by the cached tokens of each."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.engines.adapter import Adapter, FlushReply
from nameplate.engines.ask import Asked, ask
from nameplate.engines.idle import SECOND_NS, IdleReport, wait_idle

FlushStatus = Literal["proven", "accepted_unproven", "refused", "unsupported", "unknown"]
Evidence = Literal["usage", "counters", "none"]

# vLLM refuses while blocks are still held, which can outlast the last answer by a step or a transfer.
TRIES = 5
TRY_INTERVAL_NS = SECOND_NS // 4


class CacheReading(Struct, frozen=True):
    """Hold one request and how many of its prompt tokens came from the cache; None is unknown.

    `usage_tokens` from its own usage, `counter_tokens` from the server's counter, idle before and after.
    """

    asked: Asked
    usage_tokens: int | None
    counter_tokens: int | None


class FlushProof(Struct, frozen=True):
    """Hold a flush and what stands behind it.

    `proven`: the second P hit the cache and the one after the flush did not. `accepted_unproven`: the server said
    yes and nothing shows it. `floor_tokens` is what any two prompts share through the chat template.
    """

    status: FlushStatus
    evidence: Evidence
    detail: str
    reply: FlushReply | None = None
    floor_tokens: int = 0
    warm_tokens: int | None = None
    flushed_tokens: int | None = None
    readings: tuple[CacheReading, ...] = ()


def flush_when_idle(adapter: Adapter, *, limit_ns: int = 60 * SECOND_NS) -> tuple[FlushReply, IdleReport]:
    """Wait for an idle server, then flush; a refusal is tried again a few times, for it may be the last step's."""
    idle = wait_idle(adapter, limit_ns=limit_ns)
    reply = adapter.flush()
    for _ in range(TRIES - 1):
        if reply.accepted is not False or not reply.supported:
            break
        adapter.clock.sleep_ns(TRY_INTERVAL_NS)
        reply = adapter.flush()
    return reply, idle


def read_cache(
    adapter: Adapter, body: bytes, *, counters: bool = True, limit_ns: int = 60 * SECOND_NS
) -> CacheReading:
    """Ask once and tell how many prompt tokens were cached; the counter is read only from idle to idle."""
    before = _idle_hits(adapter, limit_ns) if counters else None
    asked = ask(adapter.transport, body, adapter.target.generate_path)
    after = _idle_hits(adapter, limit_ns) if before is not None else None
    delta = after - before if after is not None and before is not None and after >= before else None
    return CacheReading(asked, asked.cached_tokens, delta if asked.ok else None)


def prove_flush(
    adapter: Adapter,
    body: bytes,
    *,
    first: CacheReading | None = None,
    floor_tokens: int = 0,
    limit_ns: int = 60 * SECOND_NS,
) -> FlushProof:
    """Send P, P, flush, P and say what that shows; `body` must be longer than a few cache blocks.

    `first` is a reading of the same body just before, where there is one: then it is not sent again.
    """
    first = first or read_cache(adapter, body, counters=False, limit_ns=limit_ns)
    second = read_cache(adapter, body, limit_ns=limit_ns)
    readings: tuple[CacheReading, ...] = (first, second)
    if not (first.asked.ok and second.asked.ok):
        return _proof("unknown", "none", f"P failed: {first.asked.error or second.asked.error}", readings)
    reply, idle = flush_when_idle(adapter, limit_ns=limit_ns)
    if reply.supported is False:
        return _proof("unsupported", "none", reply.detail, readings, reply, floor_tokens)
    if reply.accepted is None:
        return _proof("unknown", "none", reply.detail, readings, reply, floor_tokens)
    if not reply.accepted:
        busy = f"; the server was {idle.status} before it" if idle.status != "idle" else ""
        return _proof("refused", "none", reply.detail + busy, readings, reply, floor_tokens)
    third = read_cache(adapter, body, limit_ns=limit_ns)
    readings = (*readings, third)
    if not third.asked.ok:
        return _proof(
            "accepted_unproven",
            "none",
            f"P failed after the flush: {third.asked.error}",
            readings,
            reply,
            floor_tokens,
        )
    return _judge(second, third, reply, floor_tokens, readings)


def _judge(
    second: CacheReading,
    third: CacheReading,
    reply: FlushReply,
    floor: int,
    readings: tuple[CacheReading, ...],
) -> FlushProof:
    pairs: tuple[tuple[Evidence, int | None, int | None], ...] = (
        ("usage", second.usage_tokens, third.usage_tokens),
        ("counters", second.counter_tokens, third.counter_tokens),
    )
    for evidence, warm, flushed in pairs:
        # A server may leave out a zero; absent is unknown all the same, so the counters are asked.
        if warm is None or flushed is None:
            continue
        found = (readings, reply, floor, warm, flushed)
        if warm <= floor:
            detail = f"the repeated prompt had {warm} cached tokens: the cache is off, or P is shorter than a block"
            return _proof("accepted_unproven", evidence, detail, *found)
        if flushed <= floor:
            return _proof(
                "proven", evidence, f"cached tokens {warm} before the flush, {flushed} after it", *found
            )
        detail = f"the server accepted the flush, but {flushed} tokens still came from the cache after it"
        return _proof("refused", evidence, detail, *found)
    detail = "the server accepted the flush, but reports no cached tokens and no counters that would show it"
    return _proof("accepted_unproven", "none", detail, readings, reply, floor)


def _proof(
    status: FlushStatus,
    evidence: Evidence,
    detail: str,
    readings: tuple[CacheReading, ...],
    reply: FlushReply | None = None,
    floor: int = 0,
    warm: int | None = None,
    flushed: int | None = None,
) -> FlushProof:
    return FlushProof(status, evidence, detail, reply, floor, warm, flushed, readings)


def _idle_hits(adapter: Adapter, limit_ns: int) -> int | None:
    """Return the hit counter of an idle server, or None: a counter under load belongs to anyone."""
    if adapter.table is None or wait_idle(adapter, limit_ns=limit_ns).status != "idle":
        return None
    return adapter.state().cache_hits
