"""A soak of ours as AIPerf's summary: what its totals and sketches carry by AIPerf's definitions, and nothing else.

Completed requests alone, by first send to the last of their ends. Its ITL divides by n - 1 where ours does not, and
gaps between chunks are not kept apart in a soak: both are left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nameplate import __version__
from nameplate.exchange.peers.aiperf_out import SCHEMA_VERSION, config_of
from nameplate.measure.soak.assemble import OUTPUT_ALONE, REQUESTS_ALONE
from nameplate.measure.soak.result import Latency, SoakResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.statistics.percentile import supported

_LATENCIES = {"ttft": "time_to_first_token", "e2e": "request_latency"}
_MS = 1e6


def aiperf_of_soak(record: SoakRecord, result: SoakResult) -> bytes:
    """Return the summary as JSON; a metric without a value is left out, as there."""
    counts, tokens = result.counts, result.tokens
    rates = {rate.of: rate for rate in result.rates}
    requests, output = rates.get(REQUESTS_ALONE), rates.get(OUTPUT_ALONE)
    blocks: dict[str, dict[str, Any] | None] = {
        _LATENCIES[held.metric]: _block(held) for held in result.latencies if held.metric in _LATENCIES
    }
    blocks["request_count"] = _scalar("requests", counts.ok)
    blocks["error_request_count"] = _scalar("requests", (counts.sent - counts.ok) or None)
    if requests is not None:
        blocks["request_throughput"] = _scalar("requests/sec", requests.per_s)
        blocks["benchmark_duration"] = _scalar("sec", requests.seconds)
    if output is not None and not output.estimated:
        blocks["output_token_throughput"] = _scalar("tokens/sec", output.per_s)
    if not tokens.estimated and counts.ok:
        blocks["total_osl"] = _scalar("tokens", tokens.output_ok)
        blocks["total_isl"] = _scalar("tokens", tokens.input_ok)
    error = max((told.relative_error for held in result.latencies for told in held.percentiles), default=0.0)
    document = {
        "schema_version": SCHEMA_VERSION,
        "aiperf_version": f"nameplate {__version__}",
        "benchmark_id": record.contract.nonce,
        "was_cancelled": bool(counts.open),
        "input_config": config_of(record.contract, result.segments[0].plan, record.contract.soak is not None),
        "run_info": {"random_seed": record.contract.seed, "run_label": "soak", "variation_values": {}},
        **{tag: block for tag, block in blocks.items() if block is not None},
        "nameplate": {
            "generator": f"nameplate {__version__}",
            "verdict": result.verdict.status,
            "drift": result.drift.conclusion,
            "differs": [
                "time_to_first_token begins at the first byte sent on an open connection",
                "tokens are the server's own count, the chat template included",
                f"percentiles come from a sketch and are within {error:.0%}",
            ],
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _block(held: Latency) -> dict[str, Any] | None:
    if held.mean_completed_ns is None:
        return None
    told: dict[str, Any] = {"unit": "ms", "avg": held.mean_completed_ns / _MS, "count": held.completed}
    for at in held.percentiles:
        if at.completed_only is not None and supported(held.completed, at.percent):
            told[f"p{at.percent:g}"] = at.completed_only / _MS
    return told


def _scalar(unit: str, value: float | None) -> dict[str, Any] | None:
    return None if value is None else {"unit": unit, "avg": float(value)}
