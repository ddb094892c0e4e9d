"""The numbers of one imported cell, in our units."""

from __future__ import annotations

from collections.abc import Callable

from nameplate.exchange.inference_bench.claims import claim_of
from nameplate.exchange.inference_bench.foreign import Cell, Sample, Setup, Stats
from nameplate.measure.cell import CounterView
from nameplate.measure.kv_claim import KvClaim
from nameplate.measure.server_side import Gauge
from nameplate.measure.speed_result import CellValues
from nameplate.statistics.percentile import SHOWN, Distribution, supported
from nameplate.verdict.facts import PromptRange

NS = 10**9
# That tool's metrics are scraped once a second.
_SAMPLES_PER_S = 1.0


def values_of(cell: Cell, setup: Setup) -> CellValues | None:
    """Return what a cell measured; None for one that did not run."""
    if cell.rate is None or cell.rate < 0:
        return None
    window = cell.wall_s or cell.measured_s
    return CellValues(
        tokens_per_s=cell.rate or None,
        estimated=cell.source not in ("", "openai_continuous_usage", "openai_completed_usage"),
        window_s=window,
        output_tokens=float(cell.client_tokens) if cell.client_tokens is not None else None,
        requests=cell.requests,
        completed=cell.completed,
        ttft=times(cell, cell.ttft, lambda sample: sample.ttft_s),
        warmth="unknown",
        second_output=times(cell, cell.second_gap, lambda sample: sample.second_gap_s),
        itl=times(cell, cell.itl, lambda sample: sample.itl_s),
        chunk_gaps=times(cell, cell.chunk_gap, lambda sample: sample.chunk_gap_s),
        per_user=rates(cell, cell.per_user, lambda sample: sample.per_user),
        e2e=times(cell, cell.latency, lambda sample: sample.latency_s),
        e2e_per_user=rates(cell, cell.e2e_per_user, lambda sample: sample.e2e_per_user),
        running=_gauge(cell.running_mean, cell.running_max, window) if cell.gauged else None,
        waiting=_gauge(cell.waiting_mean, cell.waiting_max, window) if cell.gauged else None,
        queue_share=cell.queue_share if cell.gauged else None,
        samples=round(window * _SAMPLES_PER_S) if window and cell.gauged else None,
        counter=_counter(cell),
        kv=_kv(cell, setup),
        judged_streams=cell.concurrency if cell.looped_streams else None,
        looped_streams=cell.looped_streams,
    )


def prompts_of(cell: Cell) -> PromptRange | None:
    """Return the range of the prompts' counted tokens, from the requests in the file."""
    known = [sample.input_tokens for sample in cell.samples if sample.input_tokens is not None]
    return PromptRange(min(known), max(known), len(known)) if known else None


def times(cell: Cell, stats: Stats, of: Callable[[Sample], float | None]) -> Distribution | None:
    """Return a summary of times in nanoseconds; None where the file has none."""
    return _distribution(cell, stats, of, "ns", NS)


def rates(cell: Cell, stats: Stats, of: Callable[[Sample], float | None]) -> Distribution | None:
    """Return a summary of rates; None where the file has none."""
    return _distribution(cell, stats, of, "1/s", 1)


def _distribution(
    cell: Cell, stats: Stats, of: Callable[[Sample], float | None], unit: str, scale: int
) -> Distribution | None:
    if not stats.known:
        return None
    # How many values carry the percentiles is in the file only request by request.
    n = sum(of(sample) is not None for sample in cell.samples) if cell.samples else (cell.requests or 0)
    return Distribution(
        unit=unit,
        n=n,
        mean=_scaled(stats.avg, scale),
        p50=_scaled(stats.p50, scale),
        p90=_scaled(stats.p90, scale),
        p99=_scaled(stats.p99, scale),
        unsupported=tuple(f"p{percent:g}" for percent in SHOWN if not supported(n, percent)),
    )


def _scaled(value: float | None, scale: int) -> float | None:
    return None if value is None else value * scale


def _gauge(mean: float | None, most: float | None, window: float | None) -> Gauge | None:
    if mean is None or most is None:
        return None
    return Gauge(max(1, round((window or 1.0) * _SAMPLES_PER_S)), mean, most)


def _counter(cell: Cell) -> CounterView | None:
    if cell.server_tokens is None or not cell.server_rate or cell.client_tokens is None:
        return None
    length = round(cell.server_tokens / cell.server_rate * NS)
    return CounterView(0, length, cell.server_tokens, float(cell.client_tokens))


def _kv(cell: Cell, setup: Setup) -> KvClaim | None:
    claim = claim_of(cell, setup)
    if claim is None:
        return None
    outputs = cell.concurrency * (setup.max_tokens or 0)
    held = cell.utilisation * claim.pool if cell.utilisation is not None else None
    return KvClaim(claim.pool, claim.tokens - outputs, claim.tokens, held, cell.utilisation)
