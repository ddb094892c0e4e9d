"""One cell of ours as a row of `results` or `burst_results`: that tool's names, units and signs for absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from nameplate.exchange.inference_bench.foreign import LOOPED, OVER_CAPACITY, SKIPPED, Stats
from nameplate.exchange.inference_bench.samples import NS, Requests, SampleOut, stats_from, stats_of
from nameplate.measure.server_side import Gauge
from nameplate.measure.speed_result import CellRow, CellValues
from nameplate.verdict.cell import CellStatus

# What stands in the place of a rate. Where our own machine was too slow there is no measurement of the server either.
SIGNS = {
    CellStatus.over_capacity: OVER_CAPACITY,
    CellStatus.over_limit: OVER_CAPACITY,
    CellStatus.skipped: SKIPPED,
    CellStatus.interrupted: SKIPPED,
    CellStatus.client_limited: SKIPPED,
    CellStatus.looped: LOOPED,
}


class RowOut(Struct, frozen=True, kw_only=True):
    """Hold a row; field names and order are those of version 0.4.30."""

    concurrency: int
    context_tokens: int
    benchmark_mode: str
    request_count_target: int
    warmup_request_count: int
    measurement_seconds: float
    measurement_wall_seconds: float
    client_output_tokens: int
    server_output_tokens: int
    aggregate_source: str
    aggregate_tps: float
    per_request_avg_tps: float
    ttft_avg: float
    ttft_p50: float
    ttft_p90: float
    ttft_p99: float
    time_to_second_token_avg: float
    time_to_second_token_p50: float
    time_to_second_token_p90: float
    time_to_second_token_p99: float
    request_latency_avg: float
    request_latency_p50: float
    request_latency_p90: float
    request_latency_p99: float
    inter_token_latency_avg: float
    inter_token_latency_p50: float
    inter_token_latency_p90: float
    inter_token_latency_p99: float
    output_tps_per_user_avg: float
    output_tps_per_user_p50: float
    output_tps_per_user_p90: float
    output_tps_per_user_p99: float
    e2e_output_tps_per_user_avg: float
    e2e_output_tps_per_user_p50: float
    e2e_output_tps_per_user_p90: float
    e2e_output_tps_per_user_p99: float
    chunk_inter_token_latency_avg: float
    chunk_inter_token_latency_p50: float
    chunk_inter_token_latency_p90: float
    chunk_inter_token_latency_p99: float
    input_seq_len_avg: float
    output_seq_len_avg: float
    output_seq_len_p50: float
    output_seq_len_p90: float
    output_seq_len_p99: float
    request_count: int
    completed_request_count: int
    request_samples: tuple[SampleOut, ...]
    total_tokens: int
    wall_time: float
    num_completed: int
    num_errors: int
    server_gen_throughput: float
    server_utilization: float
    server_spec_accept_rate: float
    server_spec_accept_length: float
    avg_running_reqs: float
    max_running_reqs: int
    effective_concurrency: float
    avg_queue_reqs: float
    max_queue_reqs: int
    queue_fraction: float
    underfilled: bool
    warmup_timed_out: bool
    warmup_duration: float
    ready_reason: str
    timeout_reason: str
    capacity_limited: bool
    hardware_summary: dict[str, int] = {}

    @property
    def has_rate(self) -> bool:
        return self.aggregate_tps > 0


class ErrorRowOut(RowOut, frozen=True, kw_only=True):
    """Hold a row of a cell that failed, as versions from 0.6.1 on mark it."""

    failure_reason: str


class LoopRowOut(RowOut, frozen=True, kw_only=True):
    """Hold a row of a looped cell, as versions from 0.6.0 on mark it."""

    loop_detected: bool = True


def row_out(row: CellRow, requests: Requests, stable_s: float) -> RowOut:
    """Return a row; `requests` come from the cell's evidence, empty where there is none."""
    values = row.values or row.discarded or CellValues()
    kind: type[RowOut] = RowOut
    more: dict[str, Any] = {}
    if row.status is CellStatus.looped:
        kind = LoopRowOut
    elif row.status is CellStatus.server_error:
        kind, more = ErrorRowOut, {"failure_reason": row.reason}
    return kind(
        **_head(row, values), **_latencies(values, requests), **_tail(row, values, requests, stable_s), **more
    )


def rate_out(row: CellRow) -> float:
    """Return what stands in the place of the rate: 0.0 for a cell that failed, as that tool writes it."""
    values = row.values or row.discarded
    if (sign := SIGNS.get(row.status)) is not None:
        return sign
    if row.status is CellStatus.server_error or values is None:
        return 0.0
    return values.tokens_per_s or 0.0


def _head(row: CellRow, values: CellValues) -> dict[str, Any]:
    rate, tokens, burst = rate_out(row), values.output_tokens, row.kind == "burst"
    window = values.window_s or 0.0
    source = "openai_completed_usage" if burst else "openai_continuous_usage"
    if values.estimated:
        source = "openai_stream_chunks_fallback"
    return {
        "concurrency": row.concurrency,
        "context_tokens": row.context_tokens,
        "benchmark_mode": "request-count" if burst else "duration",
        "request_count_target": (values.requests or 0) if burst else 0,
        "warmup_request_count": 0,
        # There it is the denominator of the rate; for a rate of ours that is the window.
        "measurement_seconds": round(tokens / rate, 6) if tokens and rate > 0 else window,
        "measurement_wall_seconds": window,
        "client_output_tokens": round(tokens or 0),
        "server_output_tokens": values.counter.server_tokens if values.counter else 0,
        "aggregate_source": source if rate > 0 else "none",
        "aggregate_tps": rate,
        "per_request_avg_tps": rate / row.concurrency if rate > 0 else 0.0,
    }


def _latencies(values: CellValues, requests: Requests) -> dict[str, Any]:
    """Return all summaries: by its definitions where there is evidence, else ours (see `docs/exchange.md`)."""
    samples = requests.samples

    def of(field: Callable[[SampleOut], float]) -> Stats | None:
        return stats_of(samples, field) if samples else None

    named = {
        "ttft": of(lambda s: s.ttft) or stats_from(values.ttft, NS),
        "time_to_second_token": of(lambda s: s.time_to_second_token) or stats_from(values.second_output, NS),
        "request_latency": of(lambda s: s.latency) or stats_from(values.e2e, NS),
        "inter_token_latency": of(lambda s: s.inter_token_latency_avg) or stats_from(values.itl, NS),
        "output_tps_per_user": of(lambda s: s.output_tps_per_user) or stats_from(values.per_user),
        "e2e_output_tps_per_user": of(lambda s: s.e2e_output_tps_per_user) or stats_from(values.e2e_per_user),
        "chunk_inter_token_latency": of(lambda s: s.chunk_inter_token_latency_avg)
        or stats_from(values.chunk_gaps, NS),
        "output_seq_len": of(lambda s: s.output_tokens) or Stats(),
    }
    parts = ("avg", "p50", "p90", "p99")
    return {f"{name}_{part}": getattr(stats, part) or 0.0 for name, stats in named.items() for part in parts}


def _tail(row: CellRow, values: CellValues, requests: Requests, stable_s: float) -> dict[str, Any]:
    samples, counter, drafts = requests.samples, values.counter, values.speculation
    inputs = [sample.input_tokens for sample in samples if sample.input_tokens]
    window, waited = values.window_s or 0.0, row.ready_s or row.ready_deadline_s or 0.0
    failed = requests.failed or (1 if row.status is CellStatus.server_error else 0)
    timed_out = row.status is CellStatus.not_ready
    hottest = values.gpu.all_gpus.temperature_max_c if values.gpu else None
    length_s = (counter.end_ns - counter.begin_ns) / NS if counter else 0.0
    return {
        "input_seq_len_avg": sum(inputs) / len(inputs) if inputs else _middle(row),
        "request_count": len(samples) if samples else (values.requests or 0),
        "completed_request_count": sum(s.completed for s in samples) if samples else (values.completed or 0),
        "request_samples": samples,
        "total_tokens": round(values.output_tokens or 0),
        "wall_time": waited + window,
        "num_completed": max(0, row.concurrency - failed) if values.window_s else 0,
        "num_errors": failed,
        "server_gen_throughput": counter.server_tokens / length_s if counter and length_s else 0.0,
        "server_utilization": _utilisation(values),
        "server_spec_accept_rate": (drafts.acceptance or 0.0) if drafts else 0.0,
        "server_spec_accept_length": 1 + drafts.accepted_tokens / drafts.drafts
        if drafts and drafts.drafts
        else 0.0,
        "avg_running_reqs": _mean(values.running),
        "max_running_reqs": _most(values.running),
        "effective_concurrency": _mean(values.running),
        "avg_queue_reqs": _mean(values.waiting),
        "max_queue_reqs": _most(values.waiting),
        "queue_fraction": round(values.queue_share or 0.0, 3),
        "underfilled": row.status is CellStatus.underfilled,
        "warmup_timed_out": timed_out,
        "warmup_duration": round(waited, 3),
        "ready_reason": "warmup_timeout" if timed_out else _ready(row, values, stable_s),
        "timeout_reason": row.reason if timed_out else "",
        # Its programs hide the rate of such a cell unless they are told to show it.
        "capacity_limited": row.status
        in (CellStatus.not_ready, CellStatus.underfilled, CellStatus.extra_traffic),
        "hardware_summary": {} if hottest is None else {"temp_max_c": hottest},
    }


def _ready(row: CellRow, values: CellValues, stable_s: float) -> str:
    """Say readiness in that tool's words; only of a cell that was ready."""
    if row.ready_s is None:
        return ""
    n = row.concurrency
    server = f"running_reqs={n}/{n}, queue_reqs=0" if values.running else "metrics_unavailable"
    return f"{server}, active_streams={n}/{n}, stable={stable_s:.1f}s"


def _middle(row: CellRow) -> float:
    return (row.prompt_tokens.low + row.prompt_tokens.high) / 2 if row.prompt_tokens else 0.0


def _utilisation(values: CellValues) -> float:
    if values.kv_usage is not None:
        return values.kv_usage.mean
    return (values.kv.held_share_max or 0.0) if values.kv is not None else 0.0


def _mean(gauge: Gauge | None) -> float:
    return round(gauge.mean, 1) if gauge else 0.0


def _most(gauge: Gauge | None) -> int:
    return round(gauge.max) if gauge else 0
