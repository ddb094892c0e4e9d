"""One request in that tool's terms, from our evidence, and its summaries: zero where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.exchange.inference_bench.foreign import Stats
from nameplate.statistics.percentile import Distribution, percentile
from nameplate.wire.outcome import Outcome

NS = 1e9


class SampleOut(Struct, frozen=True, kw_only=True):
    """Hold an entry of `request_samples`; field names and order are that tool's."""

    ttft: float = 0.0
    time_to_second_token: float = 0.0
    latency: float = 0.0
    inter_token_latency_avg: float = 0.0
    chunk_inter_token_latency_avg: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    output_tps_per_user: float = 0.0
    e2e_output_tps_per_user: float = 0.0
    completed: bool = False


class Requests(Struct, frozen=True):
    """Hold what a cell's evidence tells of its requests: those with a token, and how many failed."""

    samples: tuple[SampleOut, ...] = ()
    failed: int = 0


def requests_of(rows: Iterable[RequestRow]) -> Requests:
    """Return the measured requests of a trial in that tool's terms; a request without a token is no sample there."""
    measured = [row for row in rows if row.measured]
    fine = (Outcome.ok, Outcome.cancelled, Outcome.unfinished)
    return Requests(
        tuple(_sample(row) for row in measured if row.ttft_ns is not None),
        sum(row.outcome not in fine for row in measured),
    )


def _sample(row: RequestRow) -> SampleOut:
    first, second, last = row.first_output_ns or 0, row.second_output_ns, row.last_output_ns or 0
    tokens = row.output_tokens or 0
    decoding = (last - first) / NS
    itl = decoding / (tokens - 1) if tokens > 1 else 0.0
    done = row.outcome == Outcome.ok
    latency = (row.e2e_ns or 0) / NS if done else 0.0
    return SampleOut(
        ttft=(row.ttft_ns or 0) / NS,
        time_to_second_token=(second - first) / NS if second is not None else 0.0,
        latency=latency,
        inter_token_latency_avg=itl,
        chunk_inter_token_latency_avg=decoding / (row.output_events - 1) if row.output_events > 1 else 0.0,
        input_tokens=row.prompt_tokens or 0,
        output_tokens=tokens,
        output_tps_per_user=1 / itl if itl else 0.0,
        e2e_output_tps_per_user=tokens / latency if latency else 0.0,
        completed=done,
    )


def stats_of(samples: Iterable[SampleOut], of: Callable[[SampleOut], float]) -> Stats:
    """Summarise as that tool does: values of zero and below are dropped, percentiles linear."""
    values = sorted(value for value in map(of, samples) if value > 0)
    if not values:
        return Stats()
    return Stats(sum(values) / len(values), *(percentile(values, p) for p in (50.0, 90.0, 99.0)))


def stats_from(distribution: Distribution | None, scale: float = 1.0) -> Stats:
    """Return a summary of ours; what it does not know is absent there."""
    if distribution is None:
        return Stats()
    mean = distribution.mean if distribution.mean is not None else None
    values = (mean, distribution.p50, distribution.p90, distribution.p99)
    return Stats(*(None if value is None else value / scale for value in values))
