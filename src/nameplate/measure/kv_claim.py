"""What a cell's requests should hold of the KV pool, and what the server says that it held."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.measure.server_side import gauge_of
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.windows import Window


class KvClaim(Struct, frozen=True):
    """Hold what a cell's requests should hold of the KV pool in the window, and what it really held.

    `prompt_tokens` is the shared part once and the unique parts of all streams, `claim_tokens` that and what the
    streams had produced in the middle of the window; `held_tokens` is the mean use times the pool.
    """

    pool_tokens: int | None
    prompt_tokens: int
    claim_tokens: int
    held_tokens: float | None
    held_share_max: float | None

    @property
    def ratio(self) -> float | None:
        """Return held / claim; None where the server does not tell."""
        return (
            self.held_tokens / self.claim_tokens
            if self.held_tokens is not None and self.claim_tokens
            else None
        )


def kv_prompt_tokens(prompt_tokens: int, shared_tokens: int, streams: int, block_tokens: int | None) -> int:
    """Return what the prompts of C streams hold of a KV pool: the shared part once, unique parts in whole blocks."""
    block = block_tokens or 1
    shared = shared_tokens // block * block
    unique = -(-max(0, prompt_tokens - shared) // block) * block
    return shared + streams * unique


def claim_of(
    evidence: TrialEvidence,
    rows: Sequence[RequestRow],
    window: Window | None,
    samples: Sequence[ServerSample],
) -> KvClaim:
    """Work out what the streams should hold and what the server's samples say that it held."""
    identity, plan = evidence.identity_before, evidence.plan
    pool, block = identity.integer("kv_tokens"), identity.integer("block_size_tokens")
    counted = [row.prompt_tokens for row in rows if row.prompt_tokens is not None]
    prompt = max(counted) if counted else plan.shape.input_tokens
    shared = evidence.shared_prefix_tokens or 0
    prompts = kv_prompt_tokens(prompt, shared, plan.concurrency, block)
    produced = 0.0
    if window is not None:
        middle = (window.begin_ns + window.end_ns) // 2
        produced = sum(_produced_at(row, middle) for row in rows)
    usage = gauge_of(sample.kv_usage_mean for sample in samples)
    fullest = gauge_of(sample.kv_usage_max for sample in evidence.samples if sample.error is None)
    return KvClaim(
        pool,
        prompts,
        prompts + round(produced),
        usage.mean * pool if usage and pool else None,
        fullest.max if fullest else None,
    )


def _produced_at(row: RequestRow, t_ns: int) -> float:
    """Return roughly how many tokens a request that was running at a moment had produced by then."""
    first, last = row.first_output_ns, row.last_output_ns
    if first is None or last is None or not row.output_tokens or not first <= t_ns <= last or last == first:
        return 0.0
    return row.output_tokens * (t_ns - first) / (last - first)
