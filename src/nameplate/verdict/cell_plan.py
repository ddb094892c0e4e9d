"""What is known of a cell before it runs: that it cannot, may be preempted, how long it may take to be ready."""

from __future__ import annotations

from msgspec import Struct, structs

from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import READY_MARGIN_FACTOR, READY_MARGIN_NS, CellPlan, Matrix
from nameplate.verdict.cell import CellStatus, CellVerdict


class KvNeed(Struct, frozen=True):
    """Hold a cell's arithmetic against the KV pool, in tokens; a pool of None is unknown."""

    streams: int
    shared_tokens: int
    unique_tokens: int
    output_tokens: int
    pool_tokens: int | None

    @property
    def prompts(self) -> int:
        return self.shared_tokens + self.streams * self.unique_tokens

    @property
    def whole(self) -> int:
        return self.prompts + self.streams * self.output_tokens

    def __str__(self) -> str:
        pool = "unknown" if self.pool_tokens is None else f"{self.pool_tokens:,}"
        return (
            f"{self.shared_tokens:,} shared + {self.streams} x {self.unique_tokens:,} unique = {self.prompts:,} prompt "
            f"tokens, {self.whole:,} with outputs, KV pool {pool}"
        )


def in_blocks(prompt_tokens: int, shared_tokens: int, block_tokens: int | None) -> tuple[int, int]:
    """Return the shared part of a prompt and its own in whole blocks: the first from below, the second from above."""
    block = block_tokens or 1
    shared = shared_tokens // block * block
    return shared, -(-max(0, prompt_tokens - shared) // block) * block


def kv_need(matrix: Matrix, cell: CellPlan, limits: ServerLimits) -> KvNeed:
    """Work out what a cell needs of the KV pool; whole blocks where the block size is known."""
    # Without a prefix cache nothing is shared, whatever the prompts have in common.
    stated = 0 if limits.prefix_caching is False else matrix.shared_tokens(cell.context_tokens)
    shared, unique = in_blocks(cell.context_tokens, stated, limits.block_tokens)
    output = matrix.output_for(cell.context_tokens, limits.context_tokens)
    return KvNeed(cell.concurrency, shared, unique, max(0, output), limits.kv_tokens)


def foregone(matrix: Matrix, cell: CellPlan, limits: ServerLimits) -> CellVerdict | None:
    """Return the verdict on a cell that cannot be run on this server, or None."""
    context, running, streams = limits.context_tokens, limits.running, cell.concurrency
    output = 1 if cell.kind in ("prefill", "mixed") else matrix.output_for(cell.context_tokens, context)
    if context is not None and (output < 1 or cell.context_tokens + output > context):
        return CellVerdict(
            CellStatus.over_limit,
            f"{cell.context_tokens:,} prompt tokens and an answer, and the server's context holds {context:,}",
        )
    at_once = streams + (cell.kind == "mixed")
    if cell.kind in ("decode", "mixed") and running is not None and at_once > running:
        what = f"{streams} streams" + (" and the long prompt" if cell.kind == "mixed" else "")
        return CellVerdict(CellStatus.over_limit, f"{what}, and the server runs at most {running} at once")
    if cell.kind in ("prefill", "mixed"):
        return None
    # A burst queues by nature, so there it is enough that one prompt fits.
    held = structs.replace(cell, concurrency=1) if cell.kind == "burst" else cell
    need = kv_need(matrix, held, limits)
    if need.pool_tokens is not None and need.prompts > need.pool_tokens:
        return CellVerdict(CellStatus.over_capacity, str(need))
    return None


def preemption_warning(matrix: Matrix, cell: CellPlan, limits: ServerLimits) -> str | None:
    """Say that a cell's prompts fit the pool and their outputs may not."""
    if cell.kind != "decode":
        return None
    need = kv_need(matrix, cell, limits)
    if need.pool_tokens is None or need.whole <= need.pool_tokens:
        return None
    return f"preemption is likely towards the end of long outputs: {need}"


def ready_deadline_ns(matrix: Matrix, cell: CellPlan, prefill_ns: float | None) -> int:
    """Return how long a cell may take to be ready.

    `prefill_ns` is the cold TTFT of one prompt of this context; C times its unique share with a margin is what the
    ramp takes. Without a measured one an hour: longer than any ramp that one would wait for.
    """
    if matrix.ready_timeout_ns is not None:
        return matrix.ready_timeout_ns
    if prefill_ns is None:
        return 3600 * 10**9
    return round(expected_ready_ns(matrix, cell, prefill_ns) * READY_MARGIN_FACTOR) + READY_MARGIN_NS


def expected_ready_ns(matrix: Matrix, cell: CellPlan, prefill_ns: float) -> int:
    """Return how long a ramp should take: every stream's unique part prefilled after the other, and the stable time."""
    unique = 1 - matrix.shared_tokens(cell.context_tokens) / cell.context_tokens
    return round(cell.concurrency * prefill_ns * unique) + matrix.stable_ns
