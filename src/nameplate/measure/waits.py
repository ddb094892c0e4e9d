"""Queue and prefill apart: what TTFT is made of, from the server's own histograms, reconciled with what we saw.

The histograms are read while the server is idle, before a trial and after its drain, so their growth is that of this
trial's requests and of no part of them: vLLM and TensorRT-LLM observe a request when it finishes, SGLang its queue
when it leaves it and its prefill when that ends. Sums and counts give exact means; buckets give intervals in which a
quantile lies. What the parts leave of our TTFT is the network's and the client's, and the server's own front: HTTP,
tokenising, and up to a step of the engine, since a request that comes during one is queued when it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from nameplate.engines.state import Histogram, Histograms, ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.measure.held_back import HeldBack, held_back
from nameplate.measure.server_side import time_delta
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.statistics.buckets import Counts, Interval, counts_of, quantile_interval, without
from nameplate.statistics.percentile import supported
from nameplate.wire.outcome import Outcome

S = 1e9
_SHOWN = (50.0, 95.0, 99.0)

Source = Literal["server", "estimated", "none"]
Rows = Sequence[RequestRow]
Time = tuple[float, int]


class Part(Struct, frozen=True, kw_only=True):
    """Hold one part of n requests' time: its exact mean, and the intervals in nanoseconds that hold its quantiles.

    The quantiles are those of the measured requests, `quantiles_n` of them, and null where no buckets were kept;
    `unsupported` names those that this many do not carry.
    """

    n: int
    mean_ns: int
    quantiles_n: int = 0
    p50: Interval | None = None
    p95: Interval | None = None
    p99: Interval | None = None
    unsupported: tuple[str, ...] = ()


class Estimate(Struct, frozen=True, kw_only=True):
    """Hold the mean TTFT beyond that of one request alone, which is `alone_*`: lowest, median and highest of several.

    It is the queue's where the prefill takes as long as alone; a slower prefill is in it as well.
    """

    alone_low_ns: float
    alone_ns: float
    alone_high_ns: float
    mean_ns: float
    low_ns: float
    high_ns: float


class Waits(Struct, frozen=True, kw_only=True):
    """Hold what the TTFT of a drained trial is made of, in nanoseconds; what is not known is null, with `reason`.

    Means are over `n` requests. `unmeasured` of these are the warm-up (and the ramp of a handover): in where no sample
    of the server fell between them and the measured requests. `unobserved` of our requests the server did not time, as
    they did not finish. `ttft_mean_ns` and `e2e_mean_ns` are ours of the same requests, and TTFT = queue + prefill +
    `rest_mean_ns`, which differences of clocks can make negative. `server_ttft` is the server's own. `send_lag_mean_ns`
    is what TTFT from schedule has on top in an open loop. `estimate` stands in where `source` is `estimated`.
    """

    source: Source
    reason: str = ""
    n: int
    unmeasured: int = 0
    unobserved: int = 0
    queue: Part | None = None
    prefill: Part | None = None
    decode: Part | None = None
    server_ttft: Part | None = None
    ttft_mean_ns: int | None = None
    e2e_mean_ns: int | None = None
    rest_mean_ns: int | None = None
    send_lag_mean_ns: int | None = None
    estimate: Estimate | None = None
    held_back: HeldBack | None = None


def measure_waits(evidence: TrialEvidence) -> Waits | None:
    """Take the TTFT of a trial's requests apart; None where the load was cut as planned or nothing was sent."""
    sent = [row for row in evidence.rows if row.sent_ns is not None]
    if evidence.plan.cut or not sent:
        return None
    looks = held_back(evidence)
    ok = [row for row in sent if row.outcome == Outcome.ok]
    queue = time_delta(evidence.idle_before, evidence.idle_after, "queue_s")
    prefill = time_delta(evidence.idle_before, evidence.idle_after, "prefill_s")
    reason = _unusable(evidence, (queue, prefill), len(ok), len(sent))
    if reason or queue is None or prefill is None:
        return _estimated(evidence, reason, looks)
    same = _same_requests(queue[1], prefill[1], ok, sent)
    if same is None:
        return Waits(
            source="server",
            reason="the requests that the server timed are not exactly those that ended well",
            n=queue[1],
            unmeasured=sum(not row.measured for row in ok),
            unobserved=len(sent) - min(queue[1], prefill[1]),
            queue=Part(n=queue[1], mean_ns=_mean_ns(queue)),
            prefill=Part(n=prefill[1], mean_ns=_mean_ns(prefill)),
            held_back=looks,
        )
    return _reconciled(evidence, same, len(sent), looks)


def _unusable(evidence: TrialEvidence, times: Sequence[Time | None], ended: int, sent: int) -> str:
    """Say why the growth of the histograms tells nothing of our requests; empty where it does."""
    if evidence.idle_before is None or evidence.idle_after is None:
        return "the server was not seen idle before the trial and after it"
    if any(time is None for time in times):
        return "the server has no histograms of its queue and prefill times"
    counts = [time[1] for time in times if time is not None]
    if max(counts) > sent:
        return f"the server timed {max(counts)} requests and we sent {sent}: not all of that is ours"
    if min(counts) < max(1, ended):
        return (
            f"the server timed {min(counts)} requests, of ours {ended} ended well: the trial was not drained"
        )
    return ""


def _same_requests(queue: int, prefill: int, ok: Rows, sent: Rows) -> Rows | None:
    """Return the rows of exactly the requests that were timed; None where it cannot be told which these are."""
    if queue == prefill == len(ok):
        return ok
    if queue == prefill == len(sent) and all(row.ttft_ns is not None for row in sent):
        return sent
    return None


def _reconciled(evidence: TrialEvidence, same: Rows, sent: int, looks: HeldBack | None) -> Waits:
    others = [row for row in same if not row.measured]
    before, after = evidence.idle_before, evidence.idle_after
    apart = _between(evidence, others, "queue", "prefill") is not None
    members = [row for row in same if row.measured] if apart else same

    def part(name: str, bound: Callable[[RequestRow], float | None]) -> Part | None:
        grown = time_delta(_between(evidence, others, name) if apart else before, after, f"{name}_s")
        # Of a load that was cut before any measured request ended, only the warm-up was timed.
        if grown is None or grown[1] != len(members) or not members:
            return None
        counts = _counts(evidence.histograms_before, evidence.histograms_after, name, len(same))
        return _part(grown, counts, [bound(row) for row in others])

    def ttft_of(row: RequestRow) -> float | None:
        return row.ttft_ns

    queue, prefill = part("queue", ttft_of), part("prefill", ttft_of)
    ttft = _mean_of(row.ttft_ns for row in members)
    rest = None
    if queue is not None and prefill is not None and ttft is not None:
        rest = ttft - queue.mean_ns - prefill.mean_ns
    return Waits(
        source="server",
        n=len(members),
        unmeasured=sum(not row.measured for row in members),
        unobserved=sent - len(same),
        queue=queue,
        prefill=prefill,
        decode=part("decode", lambda row: row.e2e_ns),
        server_ttft=part("ttft", ttft_of),
        ttft_mean_ns=ttft,
        e2e_mean_ns=_mean_of(row.e2e_ns for row in members),
        rest_mean_ns=rest,
        send_lag_mean_ns=_send_lag(evidence, members),
        held_back=looks,
    )


def _between(evidence: TrialEvidence, others: Rows, *names: str) -> ServerSample | None:
    """Return a sample of the server in which these histograms hold the warm-up and no measured request.

    The warm-up is serial and comes first, so where a histogram has counted just as many these were they.
    """
    if not others:
        return evidence.idle_before
    if any(row.phase != "warmup" for row in others):
        return None
    for sample in evidence.samples:
        counts = [time_delta(evidence.idle_before, sample, f"{name}_s") for name in names]
        if sample.error is None and all(grown is not None and grown[1] == len(others) for grown in counts):
            return sample
    return None


def _counts(before: Histograms | None, after: Histograms | None, name: str, n: int) -> Counts | None:
    """Return how the buckets of one histogram grew, edges in nanoseconds; None where that is not known."""
    first: Histogram | None = getattr(before, name, None)
    last: Histogram | None = getattr(after, name, None)
    if first is None or last is None or not last.buckets or last.count - first.count != n:
        return None
    if [edge for edge, _ in first.buckets] != [edge for edge, _ in last.buckets]:
        return None
    grown = [
        (edge * S, late - early) for (edge, late), (_, early) in zip(last.buckets, first.buckets, strict=True)
    ]
    steps = [0, *(count for _, count in grown), n]
    return counts_of(grown, n) if steps == sorted(steps) else None


def _part(grown: Time, counts: Counts | None, bounds: Sequence[float | None]) -> Part:
    mean_ns = _mean_ns(grown)
    if counts is None or any(bound is None for bound in bounds) or counts.n <= len(bounds):
        return Part(n=grown[1], mean_ns=mean_ns)
    left = without(counts, [bound for bound in bounds if bound is not None])
    p50, p95, p99 = (quantile_interval(left, percent) for percent in _SHOWN)
    unsupported = tuple(f"p{percent:g}" for percent in _SHOWN if not supported(left.n, percent))
    return Part(
        n=grown[1], mean_ns=mean_ns, quantiles_n=left.n, p50=p50, p95=p95, p99=p99, unsupported=unsupported
    )


def _mean_ns(grown: Time) -> int:
    # Sums of seconds since the server's start: their difference can be a rounding below zero.
    return max(0, round(grown[0] * S / grown[1]))


def _mean_of(values: Iterable[int | None]) -> int | None:
    """Return the mean, rounded to a nanosecond; None where there is nothing, or where any is unknown."""
    given = list(values)
    known = [value for value in given if value is not None]
    return round(sum(known) / len(known)) if known and len(known) == len(given) else None


def _send_lag(evidence: TrialEvidence, members: Rows) -> int | None:
    if evidence.plan.arrivals is None:
        return None
    return _mean_of(row.sent_ns - row.scheduled_ns for row in members if row.measured and row.sent_ns)


def _estimated(evidence: TrialEvidence, reason: str, looks: HeldBack | None) -> Waits:
    """Estimate the queue from the TTFT of one request alone, where the plan tells it."""
    members = [row for row in evidence.measured if row.ttft_ns is not None]
    ttft, alone = _mean_of(row.ttft_ns for row in members), evidence.plan.alone_ttft_ns
    known = ttft is not None and alone is not None
    return Waits(
        source="estimated" if known else "none",
        reason=reason,
        n=len(members),
        unobserved=sum(row.sent_ns is not None for row in evidence.measured) - len(members),
        ttft_mean_ns=ttft,
        e2e_mean_ns=_mean_of(row.e2e_ns for row in members if row.outcome == Outcome.ok),
        send_lag_mean_ns=_send_lag(evidence, members),
        estimate=estimate(ttft, alone) if ttft is not None and alone is not None else None,
        held_back=looks,
    )


def estimate(ttft_mean_ns: float, alone_ttft_ns: tuple[float, float, float]) -> Estimate:
    """Estimate the mean wait from the mean TTFT and the lowest, median and highest TTFT of requests alone."""
    low, median, high = alone_ttft_ns
    return Estimate(
        alone_low_ns=low,
        alone_ns=median,
        alone_high_ns=high,
        mean_ns=max(0.0, ttft_mean_ns - median),
        low_ns=max(0.0, ttft_mean_ns - high),
        high_ns=max(0.0, ttft_mean_ns - low),
    )
