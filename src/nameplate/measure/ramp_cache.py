"""What of a ramp's prompts came from the cache, by the server's counter: for servers that tell it of no request."""

from __future__ import annotations

from msgspec import Struct

from nameplate.measure.trial_evidence import TrialEvidence


class RampCache(Struct, frozen=True):
    """Hold the growth of the server's counter of cached prompt tokens while `requests` prompts were taken in."""

    cached_tokens: int
    requests: int

    @property
    def mean(self) -> float:
        return self.cached_tokens / self.requests


def ramp_cache(evidence: TrialEvidence) -> RampCache | None:
    """Return what the counter says of the streams' first requests; None where nothing tells those apart from others.

    It is read between the idle server before the load, and the first sample after every stream's first output; a
    stream that had started again by then met its own prompt, and the counter cannot say whose tokens it counted.
    """
    before = evidence.idle_before
    if before is None:
        return None
    opening = [row for row in evidence.rows if row.phase == "opening"]
    # What was sent to warm the streams came to its end, so usage tells what of it was cached.
    warming = [row.cached_tokens for row in evidence.rows if row.phase == "warmup"]
    known = [cached for cached in warming if cached is not None]
    if len(known) < len(warming):
        return None
    firsts = [row.first_output_ns for row in opening if row.first_output_ns is not None]
    if not firsts or len(firsts) < len(opening):
        return None
    again = min(
        (r.sent_ns for r in evidence.rows if r.phase in ("steady", "arrival") and r.sent_ns is not None),
        default=None,
    )
    for sample in evidence.samples:
        if sample.error is not None or sample.t_ns < max(firsts):
            continue
        if again is not None and sample.t_ns >= again:
            return None
        for name in ("cached_tokens_total", "cache_hit_tokens_total"):
            first, last = getattr(before, name), getattr(sample, name)
            if first is not None and last is not None and last >= first:
                return RampCache(max(0, last - first - sum(known)), len(opening))
    return None
