"""What was asked and what came of it: counts that must add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.verdict.facts import LoopCount, PromptRange
from nameplate.wire.outcome import Outcome


class Correctness(Struct, frozen=True, kw_only=True):
    """Hold a trial's totals over measured requests; sent = ok + failed + cancelled + unfinished.

    `streams` are requests with at least one output event. `output_tokens` are those of ok requests,
    `partial_tokens` those that requests got before they failed or were cut. `tokens_estimated` says that the
    server did not count them all. `loops` are of ok requests; None in results from before they were counted.
    """

    sent: int
    ok: int
    failed: int
    cancelled: int
    unfinished: int
    outcomes: dict[str, int]
    http_statuses: dict[str, int]
    finish_reasons: dict[str, int]
    streams: int
    output_events: int
    output_tokens: int
    partial_tokens: int
    tokens_estimated: bool
    output_bytes: int
    unique_outputs: int
    unique_prompts: int
    prompt_tokens: PromptRange | None
    cached_tokens: PromptRange | None
    silent_tails: int
    loops: LoopCount | None = None

    @property
    def outputs_unique(self) -> bool:
        """Tell whether every ok answer differs from every other."""
        return self.unique_outputs == self.ok


# A last output this share of the decode time before the finish event leaves tokens unseen (definitions).
SILENT_TAIL_SHARE = 0.05


def count(measured: Sequence[RequestRow]) -> Correctness:
    """Count the measured rows."""
    outcomes = Counter(row.outcome for row in measured)
    ok = [row for row in measured if row.outcome == Outcome.ok]
    cancelled, unfinished = outcomes[Outcome.cancelled], outcomes[Outcome.unfinished]
    return Correctness(
        sent=len(measured),
        ok=len(ok),
        failed=len(measured) - len(ok) - cancelled - unfinished,
        cancelled=cancelled,
        unfinished=unfinished,
        outcomes=_plain(outcomes),
        http_statuses=_plain(Counter(str(r.http_status) for r in measured if r.http_status is not None)),
        finish_reasons=_plain(Counter(r.finish_reason for r in measured if r.finish_reason is not None)),
        streams=sum(row.output_events > 0 for row in measured),
        output_events=sum(row.output_events for row in measured),
        output_tokens=sum(row.output_tokens or 0 for row in ok),
        partial_tokens=sum(row.output_tokens or 0 for row in measured if row.outcome != Outcome.ok),
        tokens_estimated=any(row.output_tokens_source != "usage" for row in ok),
        output_bytes=sum(row.output_bytes for row in measured),
        unique_outputs=len({row.output_sha256 for row in ok if row.output_sha256 is not None}),
        unique_prompts=len({row.prompt_sha256 for row in measured}),
        prompt_tokens=range_of(row.prompt_tokens for row in measured),
        cached_tokens=range_of(row.cached_tokens for row in measured),
        silent_tails=sum(map(silent_tail, ok)),
        loops=loops_of(ok),
    )


def range_of(counts: Iterable[int | None]) -> PromptRange | None:
    """Return the range of the counts that are known; None where none is."""
    known = [value for value in counts if value is not None]
    return PromptRange(min(known), max(known), len(known)) if known else None


def loops_of(ok: Sequence[RequestRow]) -> LoopCount:
    """Count the answers that loop among those long enough to be judged."""
    judged = [row for row in ok if row.long_enough_to_loop]
    unknown = sum(row.long_enough_to_loop is None for row in ok)
    return LoopCount(len(judged), sum(row.loop is not None for row in judged), unknown)


def silent_tail(row: RequestRow) -> bool:
    """Tell whether the last output came more than 5% of the decode time before the finish event."""
    if row.finish_ns is None or row.first_output_ns is None or row.last_output_ns is None:
        return False
    if row.last_output_ns == row.first_output_ns:
        return False
    return row.finish_ns - row.last_output_ns > SILENT_TAIL_SHARE * (row.finish_ns - row.first_output_ns)


def _plain(counts: Counter[str]) -> dict[str, int]:
    return {str(key): counts[key] for key in sorted(counts)}
