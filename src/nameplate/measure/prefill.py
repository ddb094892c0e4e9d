"""Prefill at one context: cold requests one after the other, (prompt - cached tokens) / TTFT of each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct

from nameplate.contract.matrix import PrefillRule
from nameplate.evidence.rows import RequestRow
from nameplate.measure.server_side import ServerSide
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.wire.outcome import Outcome

_CUT = (Outcome.cancelled, Outcome.unfinished)


class PrefillSample(Struct, frozen=True):
    """Hold one cold request: its tokens and its TTFT; `nominal` tokens are those asked for, where none are counted."""

    prompt_tokens: int
    cached_tokens: int | None
    ttft_ns: int
    nominal: bool = False

    @property
    def rate(self) -> float:
        """Return computed prompt tokens a second; cached ones are taken as none where the server does not tell."""
        return (self.prompt_tokens - (self.cached_tokens or 0)) * 1e9 / self.ttft_ns


class Prefill(Struct, frozen=True, kw_only=True):
    """Hold the prefill rate at one context, in tokens a second, with its range and n.

    `spread` is (max - min) / median. `server_s` is the server's own mean prefill time of a request where it has one,
    `server_rate` the computed tokens by that time, `server_difference` (ours - server) / server of the times: what
    lies between them is queueing, the first decode step, network and us. `computed_tokens` and `counted_tokens` are
    the computed prompt tokens by the server's counters from idle to idle, and by usage, without a last request that was
    cut before its first output; null where either is unknown.
    """

    samples: tuple[PrefillSample, ...]
    n: int
    median: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None
    ttft_median_ns: float | None = None
    server_s: float | None = None
    server_rate: float | None = None
    server_difference: float | None = None
    computed_tokens: int | None = None
    counted_tokens: int | None = None


def measure_prefill(evidence: TrialEvidence, server: ServerSide) -> Prefill:
    """Measure the prefill of a trial at concurrency one; requests that failed or were cut are no samples."""
    samples = samples_of(evidence.measured, evidence.plan.shape.input_tokens)
    if not samples:
        return Prefill(samples=(), n=0)
    rates = [sample.rate for sample in samples]
    ttft = float(statistics.median(sample.ttft_ns for sample in samples))
    computed = statistics.median(s.prompt_tokens - (s.cached_tokens or 0) for s in samples)
    server_s = server.prefill_mean_s
    return Prefill(
        samples=samples,
        n=len(samples),
        median=statistics.median(rates),
        low=min(rates),
        high=max(rates),
        spread=spread_of(rates),
        ttft_median_ns=ttft,
        server_s=server_s,
        server_rate=computed / server_s if server_s else None,
        server_difference=(statistics.fmean(s.ttft_ns for s in samples) / 1e9 - server_s) / server_s
        if server_s
        else None,
        computed_tokens=_computed(server),
        counted_tokens=_counted(evidence.rows),
    )


def samples_of(rows: Iterable[RequestRow], asked_tokens: int) -> tuple[PrefillSample, ...]:
    """Return the samples that rows give; `asked_tokens` stands for what a server does not count."""
    return tuple(
        PrefillSample(
            asked_tokens if row.prompt_tokens is None else row.prompt_tokens,
            row.cached_tokens,
            row.ttft_ns,
            row.prompt_tokens is None,
        )
        for row in rows
        if row.measured and row.outcome == Outcome.ok and row.ttft_ns
    )


def spread_of(rates: Sequence[float]) -> float | None:
    """Return (max - min) / median; None below two rates, or where nothing was computed."""
    median = statistics.median(rates) if len(rates) > 1 else 0.0
    return (max(rates) - min(rates)) / median if median > 0 else None


def enough(samples: Sequence[PrefillSample], rule: PrefillRule, spent_ns: int) -> bool:
    """Say whether sampling may end: the spread is small, or a bound is reached."""
    if len(samples) >= rule.most or (samples and spent_ns >= rule.budget_ns):
        return True
    spread = spread_of([sample.rate for sample in samples])
    return len(samples) >= rule.least and spread is not None and spread <= rule.spread


def _computed(server: ServerSide) -> int | None:
    if server.prompt_tokens is None or server.cached_tokens is None:
        return None
    return server.prompt_tokens - server.cached_tokens


def _counted(rows: Iterable[RequestRow]) -> int | None:
    """Return the computed prompt tokens of all requests by usage; None where any is unknown.

    A request that we cut before its first output is left out: servers count a prompt when its first token is there, or
    when the request ends.
    """
    total = 0
    for row in rows:
        if row.outcome in _CUT and row.first_output_ns is None:
            continue
        if row.prompt_tokens is None or row.cached_tokens is None:
            return None
        total += row.prompt_tokens - row.cached_tokens
    return total
