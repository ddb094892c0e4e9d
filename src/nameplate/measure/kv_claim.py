"""What a cell's requests should hold of the KV pool, and what the server says that it held."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.server_side import gauge_of
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.windows import Window
from nameplate.verdict.cell_plan import in_blocks


class KvClaim(Struct, frozen=True):
    """Hold what a cell's requests should hold of the KV pool in the window, and what it really held.

    `prompt_tokens` is the shared part once and the unique parts of all streams, `claim_tokens` what
    they and the output so far come to in whole blocks, as a mean over the moments of the server's samples in the window
    (its middle where it does not tell); `held_tokens` is the mean use at these moments times the pool.
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
    shared, unique = in_blocks(prompt_tokens, shared_tokens, block_tokens)
    return shared + streams * unique


def claim_of(
    evidence: TrialEvidence,
    rows: Sequence[RequestRow],
    timelines: Iterable[Timeline],
    window: Window | None,
    samples: Sequence[ServerSample],
) -> KvClaim:
    """Work out what the streams should hold at the moments of the server's samples, and what it says that it held."""
    identity, plan = evidence.identity_before, evidence.plan
    pool, block = identity.integer("kv_tokens"), identity.integer("block_size_tokens")
    counted = [row.prompt_tokens for row in rows if row.prompt_tokens is not None]
    prompt = max(counted) if counted else plan.shape.input_tokens
    shared = evidence.shared_prefix_tokens or 0
    prompts = kv_prompt_tokens(prompt, shared, plan.concurrency, block)
    telling = [sample for sample in samples if sample.kv_usage_mean is not None]
    claim = float(prompts)
    if window is not None:
        moments = [sample.t_ns for sample in telling] or [(window.begin_ns + window.end_ns) // 2]
        events = {timeline.index: timeline for timeline in timelines}
        holders = [
            _Holder(row.sent_ns, row, events.get(row.index), prompt, evidence.ended_ns)
            for row in rows
            if row.sent_ns is not None
        ]
        claim = statistics.fmean(_held(holders, moment, shared, block or 1) for moment in moments)
    usage = gauge_of(sample.kv_usage_mean for sample in telling)
    fullest = gauge_of(sample.kv_usage_max for sample in evidence.samples if sample.error is None)
    return KvClaim(
        pool,
        prompts,
        round(claim),
        usage.mean * pool if usage and pool else None,
        fullest.max if fullest else None,
    )


class _Holder:
    """Know what one request holds at a moment: its prompt from its send on, and what it has produced."""

    def __init__(
        self, sent_ns: int, row: RequestRow, timeline: Timeline | None, prompt_tokens: int, until_ns: int
    ) -> None:
        self.begin_ns = sent_ns
        self.end_ns = row.end_ns if row.end_ns is not None else until_ns
        self._prompt = row.prompt_tokens if row.prompt_tokens is not None else prompt_tokens
        self._times = timeline.times_ns if timeline is not None else ()
        counts = timeline.tokens if timeline is not None else None
        self._totals = None if counts is None else list(accumulate(counts))
        self._each = (row.output_tokens or 0) / len(self._times) if self._times else 0.0

    def tokens(self, t_ns: int) -> float:
        events = bisect_right(self._times, t_ns)
        if self._totals is None:
            return self._prompt + events * self._each
        return self._prompt + (self._totals[events - 1] if events else 0)


def _held(holders: Sequence[_Holder], t_ns: int, shared: int, block: int) -> int:
    """Return what all requests hold at a moment: the shared part once, what each has of its own in whole blocks."""
    common = shared // block * block
    own = [one.tokens(t_ns) - common for one in holders if one.begin_ns <= t_ns < one.end_ns]
    return common + sum(math.ceil(max(0.0, tokens) / block) * block for tokens in own)
