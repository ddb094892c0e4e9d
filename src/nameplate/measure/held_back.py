"""What held requests back while they waited, as far as the server's own samples show it."""

from __future__ import annotations

from msgspec import Struct

from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.windows import whole_run

# A pool that is this full has no room worth speaking of: what engines keep free for running requests to grow into.
FULL_SHARE = 0.95


class HeldBack(Struct, frozen=True, kw_only=True):
    """Hold the server's samples of the measured part, and of these the ones in which requests waited.

    `waited` of the `samples` showed waiting requests. In `at_limit` of these as many ran as the server runs at once
    (`running_limit`), in `kv_full` fewer did and the KV pool had no room for another prompt (`kv_full_share` of it in
    use or more), in `neither` fewer did and there was room. Null is unknown.
    """

    samples: int
    waited: int
    running_limit: int | None = None
    kv_full_share: float | None = None
    at_limit: int | None = None
    kv_full: int | None = None
    neither: int | None = None


def held_back(evidence: TrialEvidence) -> HeldBack | None:
    """Count what the samples of a trial's measured part show; None where none tells what waits."""
    window = whole_run(evidence.measured)
    inside = [
        sample
        for sample in evidence.samples
        if window is not None
        and window.begin_ns <= sample.t_ns <= window.end_ns
        and sample.error is None
        and sample.waiting is not None
    ]
    if not inside:
        return None
    waited = [sample for sample in inside if sample.waiting and sample.running is not None]
    limit = evidence.identity_before.integer("running_limit_effective")
    full = full_share(evidence.identity_before.integer("kv_tokens"), evidence.plan.shape.input_tokens)
    if limit is None:
        return HeldBack(samples=len(inside), waited=len(waited), kv_full_share=full)
    below = [sample for sample in waited if (sample.running or 0) < limit]
    told = [sample for sample in below if sample.kv_usage_max is not None]
    kv_full = sum((sample.kv_usage_max or 0.0) >= full for sample in told)
    known = len(told) == len(below)
    return HeldBack(
        samples=len(inside),
        waited=len(waited),
        running_limit=limit,
        kv_full_share=full,
        at_limit=len(waited) - len(below),
        kv_full=kv_full if known else None,
        neither=len(below) - kv_full if known else None,
    )


def full_share(kv_tokens: int | None, input_tokens: int) -> float:
    """Return from which use on a KV pool has no room for another prompt of this length."""
    if not kv_tokens:
        return FULL_SHARE
    return max(0.0, min(FULL_SHARE, 1.0 - input_tokens / kv_tokens))
