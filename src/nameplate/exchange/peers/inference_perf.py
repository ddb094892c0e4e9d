"""inference-perf's summary of a run or of one of its stages: `summary_` or `stage_N_lifecycle_metrics.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import decoded
from nameplate.exchange.peers.building import harmless, measure_of
from nameplate.exchange.peers.further import INFERENCE_PERF, further_definitions
from nameplate.exchange.peers.run import Counts, Load, Measure, Run, Unit

_LATENCIES = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "normalized_time_per_output_token": "normalised_tpot",
    "inter_token_latency": "chunk_gaps",
    "request_latency": "e2e",
}
_RATES = {
    "output_tokens_per_sec": "output_rate",
    "input_tokens_per_sec": "input_rate",
    "total_tokens_per_sec": "total_rate",
    "requests_per_sec": "request_rate",
}
# Older versions call the first by the second.
_LENGTHS = {"prompt_tokens": ("prompt_tokens", "prompt_len"), "output_tokens": ("output_len",)}
_PERCENTS = ("0.1", "1", "5", "10", "25", "50", "75", "90", "95", "99", "99.9")
NS = 1e9


def read_lifecycle(top: Mapping[str, msgspec.Raw]) -> Run:
    """Read one summary; CallerError, with its place, where a value is not what it should be."""
    load, good, bad = (_fields(top, name) for name in ("load_summary", "successes", "failures"))
    measures = tuple(_measures(load, good))
    completed = good.count("count", True)
    if not measures and completed is None:
        raise CallerError(
            "The summary holds no measure that is known here: no request of the run ended well."
        )
    window = decoded(top.get("benchmark_time_seconds"), float | None, "benchmark_time_seconds")
    reached = {measure.name: measure.mean for measure in measures}
    concurrency = load.count("concurrency", True)
    return Run(
        tool=INFERENCE_PERF,
        window_s=window or None,
        load=Load(
            concurrency=concurrency,
            # With a concurrency the rate is what it came to, not what was asked for.
            rate_per_s=load.positive("requested_rate", True) if concurrency is None else None,
            requests=load.count("count", True),
            # What lengths were asked for is in its configuration alone: what was reached stands for it.
            input_tokens=reached.get("prompt_tokens"),
            output_tokens=reached.get("output_tokens"),
        ),
        counts=Counts(
            requests=load.count("count", True), completed=completed, failed=bad.count("count", True)
        ),
        measures=measures,
        definitions=further_definitions(INFERENCE_PERF, set(reached)),
        notes=tuple(_notes(good, bad)),
    )


def _fields(top: Mapping[str, msgspec.Raw], name: str) -> Fields:
    return Fields(decoded(top.get(name), dict[str, Any] | None, name) or {}, name)


def _measures(load: Fields, good: Fields) -> Iterator[Measure]:
    n = good.count("count", True)
    latency = good.inner("latency", True)
    for field, name in _LATENCIES.items():
        # Only streams of several tokens have the others, and how many those are is not told.
        yield from _measure(name, field, "ns", NS, latency.inner(field, True), n if name == "e2e" else None)
    delays = load.inner("schedule_delay", True)
    yield from _measure("dispatch_delay", "schedule_delay", "ns", NS, delays, load.count("count", True))
    throughput = good.inner("throughput", True)
    for field, name in _RATES.items():
        measure = measure_of(name, field, "1/s", 1.0, {"mean": throughput.number(field, True)}, None)
        if measure is not None and n:
            yield measure
    goodput = good.inner("goodput_metrics", True).number("request_goodput", True)
    if (measure := measure_of("goodput", "request_goodput", "1/s", 1.0, {"mean": goodput}, None)) is not None:
        yield measure
    for name, fields in _LENGTHS.items():
        for field in fields:
            yield from _measure(name, field, "tokens", 1.0, good.inner(field, True), n)
    total = good.inner("prompt_tokens", True).number("total", True)
    if n and (
        measure := measure_of("total_input_tokens", "prompt_tokens", "tokens", 1.0, {"mean": total}, None)
    ):
        yield measure


def _measure(
    name: str, field: str, unit: Unit, factor: float, told: Fields, n: int | None
) -> Iterator[Measure]:
    values = {key: told.number(key, True) for key in ("mean", "min", "max")}
    values |= {f"p{percent}": told.number(f"p{percent}", True) for percent in _PERCENTS}
    if values["p50"] is None:
        values["p50"] = told.number("median", True)
    measure = measure_of(name, field, unit, factor, values, n)
    if measure is not None:
        yield measure


def _notes(good: Fields, bad: Fields) -> Iterator[str]:
    mismatches = good.count("token_count_mismatches", True)
    if mismatches:
        yield f"inference-perf says that its token counts differ from the server's in {mismatches:,} requests."
    labels = bad.inner("by_label", True).raw()
    for label, held in list(labels.items())[:5]:
        count = held.get("count") if isinstance(held, dict) else held
        yield harmless(f"inference-perf counts {count} x {label}")
    yield "Requests that were cancelled appear nowhere in it."
