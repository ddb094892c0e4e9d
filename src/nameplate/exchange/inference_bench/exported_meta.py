"""`metadata`, the arguments, the event log and `methodology` of an exported file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, structs

from nameplate.contract.matrix import BURST_REQUESTS_PER_STREAM, Matrix, label
from nameplate.exchange.inference_bench.exported_row import rate_out
from nameplate.exchange.redact import redact
from nameplate.measure.speed_result import SpeedResult


class MetadataOut(Struct, frozen=True, kw_only=True):
    """Hold `metadata`; field names and order are those of version 0.4.30, but for `generator`."""

    version: str
    generator: str
    engine: str
    model: str
    server: str
    timestamp: str
    decode_mode: str = "duration"
    primary_decode_layer: str = "sustained_decode"
    duration_per_test: float
    request_count: int = 0
    warmup_request_count: int = 0
    run_burst: bool
    prefill_mode: str
    standalone_prefill: bool
    prefill_only: bool
    skip_prefill: bool
    burst_e2e_status: str
    burst_request_count: int = 0
    burst_warmup_request_count: int = 0
    burst_requests_per_concurrency: int
    decode_warmup_seconds: float = 0.0
    decode_warmup_context: int
    decode_warmup_concurrency: int = 1
    cell_warmup_timeout_seconds: float
    cell_warmup_timeout_policy: str = (
        "per cell: concurrency x cold prefill of the unique tokens, with a margin"
    )
    show_capacity_limited_values: bool = False
    max_tokens: int
    temperature: float | None
    ignore_eos: bool
    max_total_tokens: int
    dcp_size: int = 0
    metrics_available: bool
    metrics_warning: str
    concurrency_levels: list[int]
    context_lengths: list[int]
    unique_context_percent: float
    shared_context_percent: float
    context_sharing_mode: str
    startup_diagnostics_available: bool
    nvidia_p2p_override_effective: bool
    p2pmark_status: str = "not_run"
    amd_fabric_status: str = "not_run"


def metadata_out(
    result: SpeedResult,
    matrix: Matrix,
    version: str,
    generator: str,
    written_at: str,
    *,
    p2p_effective: bool,
    has_host: bool,
) -> MetadataOut:
    """Return the metadata: the contract's, and where there is none what the rows themselves tell."""
    levels, contexts = _grid(result, matrix)
    prefills, bursts = result.rows_of("prefill"), result.rows_of("burst")
    sampling = result.contract.sampling if result.contract else None
    metrics = any(row.values and row.values.running for row in result.rows)
    unique = float(matrix.unique_percent)
    ours = MetadataOut(
        version=version,
        generator=generator,
        engine=result.identity.text("engine") or "",
        model=result.model,
        server=redact(result.target),
        timestamp=written_at,
        duration_per_test=matrix.window_ns / 1e9,
        run_burst=bool(bursts),
        prefill_mode="standalone_cold" if prefills else "skipped",
        standalone_prefill=bool(prefills),
        prefill_only=bool(prefills) and not result.rows_of("decode"),
        skip_prefill=not prefills,
        burst_e2e_status="enabled" if bursts else "not_run_use_--run-burst",
        burst_request_count=matrix.burst_requests or 0,
        burst_requests_per_concurrency=BURST_REQUESTS_PER_STREAM,
        decode_warmup_context=max(contexts, default=0),
        cell_warmup_timeout_seconds=(matrix.ready_timeout_ns or 0) / 1e9,
        max_tokens=matrix.output_tokens,
        temperature=sampling.temperature if sampling else None,
        ignore_eos=sampling.ignore_eos if sampling else True,
        max_total_tokens=result.limits.kv_tokens or 0,
        metrics_available=metrics,
        metrics_warning="" if metrics else "no cell has the server's gauges",
        concurrency_levels=levels,
        context_lengths=contexts,
        unique_context_percent=unique,
        shared_context_percent=100.0 - unique,
        context_sharing_mode="unique" if unique == 100.0 else "shared_prefix_unique_tail",
        startup_diagnostics_available=has_host,
        nvidia_p2p_override_effective=p2p_effective,
    )
    return structs.replace(ours, **_kept(result.origin.metadata)) if result.origin is not None else ours


def _kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an imported file itself said of its run: we know nothing better of it."""
    kept = {}
    for field in structs.fields(MetadataOut):
        if field.name in metadata and field.name not in ("version", "generator"):
            try:
                kept[field.name] = msgspec.convert(metadata[field.name], field.type)
            except msgspec.ValidationError:
                continue
    return kept


def arguments_out(result: SpeedResult, matrix: Matrix) -> dict[str, Any]:
    """Return the arguments that would have asked that tool for the same matrix."""
    levels, contexts = _grid(result, matrix)
    prefills = result.rows_of("prefill")
    told = _kept(result.origin.metadata) if result.origin is not None else {}
    return {
        "concurrency": ",".join(map(str, levels)),
        "contexts": ",".join(map(str, contexts)),
        "max_tokens": told.get("max_tokens", matrix.output_tokens),
        "duration": told.get("duration_per_test", matrix.window_ns / 1e9),
        "request_count": 0,
        "run_burst": bool(result.rows_of("burst")),
        "standalone_prefill": bool(prefills),
        "prefill_only": bool(prefills) and not result.rows_of("decode"),
        "skip_prefill": not prefills,
        "prefill_contexts": ",".join(label(row.context_tokens).lower() for row in prefills),
        "prefill_metric": "client",
        "dcp_size": 0,
        "kv_budget": result.limits.kv_tokens or 0,
    }


def event_log(result: SpeedResult, generator: str, build: str) -> tuple[str, ...]:
    """Return what that tool would have logged; the times of day are not part of a result of ours."""
    lines = [
        f"startup written by {generator} in the shape of {build.partition('+')[0]}, not measured by that tool"
    ]
    version = result.identity.text("version")
    if version:
        lines.append(
            f"startup engine {result.identity.text('engine') or '?'} {version} models=['{result.model}']"
        )
    if result.limits.kv_tokens:
        lines.append(f"startup KV cache budget: {result.limits.kv_tokens:,} tokens")
    if result.limits.context_tokens:
        lines.append(f"startup model context length: {result.limits.context_tokens:,} tokens")
    for row in result.rows_of("decode"):
        name, rate = f"C={row.concurrency} ctx={label(row.context_tokens).lower()}", rate_out(row)
        said = f"{rate:.1f} tok/s" if rate > 0 else f"no rate: {row.status}, {row.reason}"
        lines.append(f"cell done {name} {said}")
    return tuple(f"--:--:-- {line}" for line in lines)


def methodology(prefill: bool, decode: bool, burst: bool, mixed: bool, generator: str) -> dict[str, Any]:
    """Return how each phase was measured: by this program, where it differs from that tool."""
    return {
        "prefill": {
            "name": "Prefill",
            "present": prefill,
            "mode": "standalone_cold" if prefill else "skipped",
            "formula": "(prompt_tokens - cached tokens) / TTFT, median",
            "notes": f"Measured by {generator}: several cold requests, one after the other.",
        },
        "sustained_decode": {
            "name": "Sustained Decode",
            "present": decode,
            "formula": "output tokens within the window / the fixed length of the window",
            "notes": f"Measured by {generator}: the window begins when all streams produce and nothing waits; a cell "
            "that is not valid is marked capacity_limited, and its status is under nameplate.cells.",
        },
        "burst_e2e_decode": {
            "name": "Burst / E2E Decode",
            "present": burst,
            "status": "present" if burst else "not run; use --burst",
            "formula": "output tokens / first sent to last output",
            "notes": f"Measured by {generator}: one wave, admission, queueing and cache behaviour included.",
        },
        "mixed_prefill": {
            "name": "Mixed prefill + decode",
            "present": mixed,
            "formula": "TTFT of a long prompt beside decoding streams / alone",
            "notes": f"Measured by {generator}.",
        },
    }


def _grid(result: SpeedResult, matrix: Matrix) -> tuple[list[int], list[int]]:
    cells = [row for row in result.rows if row.kind in ("decode", "burst")]
    levels = {row.concurrency for row in cells} | set(matrix.concurrencies)
    contexts = {row.context_tokens for row in cells} | set(matrix.decode_contexts)
    return sorted(levels), sorted(contexts)
