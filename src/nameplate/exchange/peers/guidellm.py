"""GuideLLM's report, `benchmarks.json`: one run a benchmark, summaries by what became of requests, and the requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.loose import Fields
from nameplate.exchange.opening import decoded
from nameplate.exchange.peers.building import (
    first_number,
    found_in,
    harmless,
    measure_of,
    number_in,
    text_in,
    whole_number,
)
from nameplate.exchange.peers.records import REQUESTS_LIMIT, Read, ns_of, row_of, with_opening
from nameplate.exchange.peers.run import Counts, Load, Measure, Run, Unit
from nameplate.exchange.peers.sources import GUIDELLM, definitions_of
from nameplate.wire.outcome import Outcome

# More than any sweep has.
BENCHMARKS_LIMIT = 500

# By metric: our name, its unit, the factor to it, and whether it is one value a request.
_METRICS: Mapping[str, tuple[str, Unit, float, bool]] = {
    "time_to_first_token_ms": ("ttft", "ns", 1e6, True),
    "time_to_first_output_token_ms": ("first_answer", "ns", 1e6, True),
    "inter_token_latency_ms": ("itl", "ns", 1e6, False),
    "time_per_output_token_ms": ("tpot", "ns", 1e6, False),
    "request_latency": ("e2e", "ns", 1e9, True),
    "request_dispatch_delay": ("dispatch_delay", "ns", 1e9, True),
    "output_tokens_per_second": ("output_rate", "1/s", 1.0, False),
    "tokens_per_second": ("total_rate", "1/s", 1.0, False),
    "requests_per_second": ("request_rate", "1/s", 1.0, False),
    "request_concurrency": ("concurrency", "requests", 1.0, False),
    "output_token_count": ("output_tokens", "tokens", 1.0, True),
    "prompt_token_count": ("prompt_tokens", "tokens", 1.0, True),
}
# Of a rate over time only the mean is a rate of the run; its percentiles are of moments.
_MEAN_ALONE = {"output_rate", "total_rate", "request_rate"}
_PERCENTILES = {
    "p001": "p0.1", "p01": "p1", "p05": "p5", "p10": "p10", "p25": "p25", "p50": "p50", "p75": "p75", "p90": "p90",
    "p95": "p95", "p99": "p99", "p999": "p99.9",
}  # fmt: skip
_FATES = (
    ("successful", Outcome.ok),
    ("errored", Outcome.stream_error),
    ("incomplete", Outcome.cancelled),
)


class _Timings(Struct):
    targeted_start: float | None = None
    resolve_start: float | None = None
    request_start: float | None = None
    first_token_iteration: float | None = None
    first_output_token_iteration: float | None = None
    last_token_iteration: float | None = None
    first_iteration: float | None = None
    last_iteration: float | None = None
    token_iterations: float | None = None
    request_end: float | None = None
    resolve_end: float | None = None


class _Info(Struct):
    timings: _Timings | None = None
    error: str | None = None


class _Request(Struct):
    """Hold what is read of one request; its texts are passed over."""

    info: _Info | None = None
    scheduler_info: _Info | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None


class _Requests(Struct):
    successful: list[_Request] | None = None
    errored: list[_Request] | None = None
    incomplete: list[_Request] | None = None


def read_report(top: Mapping[str, msgspec.Raw]) -> Iterator[Read]:
    """Yield the runs of a report; CallerError, with its place, where a value is not what it should be."""
    benchmarks = decoded(top.get("benchmarks"), list[dict[str, msgspec.Raw]], "benchmarks")
    if not benchmarks:
        raise CallerError("The report holds no benchmark: the run did not get that far.")
    if len(benchmarks) > BENCHMARKS_LIMIT:
        raise CallerError(f"The report holds {len(benchmarks):,} benchmarks; {BENCHMARKS_LIMIT} can be read.")
    metadata = Fields(decoded(top.get("metadata"), dict[str, Any] | None, "metadata") or {}, "metadata")
    version = metadata.text("guidellm_version", True) or None
    asked = {name: decoded(top.get(name), Any, name) for name in ("args", "config") if name in top}
    for index, benchmark in enumerate(benchmarks):
        yield _run(benchmark, f"benchmarks[{index}]", version, asked)


def _run(
    benchmark: Mapping[str, msgspec.Raw], place: str, version: str | None, asked: Mapping[str, Any]
) -> Read:
    metrics = Fields(_object(benchmark, "metrics", place), f"{place}.metrics")
    config = _object(benchmark, "config", place)
    scheduler = Fields(_object(benchmark, "scheduler_metrics", place), f"{place}.scheduler_metrics")
    fields = Fields(
        {
            name: decoded(benchmark[name], Any, name)
            for name in ("duration", "start_time")
            if name in benchmark
        },
        place,
    )
    measures = tuple(_measures(metrics))
    if not measures:
        raise CallerError(f"{place}.metrics holds no measure that is known here.")
    begin, end = (scheduler.number(name, True) for name in ("measure_start_time", "measure_end_time"))
    window = end - begin if begin is not None and end is not None and end > begin else None
    requests = decoded(benchmark.get("requests"), _Requests | None, f"{place}.requests")
    rows = _rows(requests) if requests is not None else ()
    load, kind = _load(config, asked, measures)
    run = Run(
        tool=GUIDELLM,
        version=version,
        label=kind,
        model=text_in(config, "model") or text_in(asked, "model"),
        endpoint=text_in(config, "target") or text_in(asked, "target"),
        window_s=window if window is not None else fields.positive("duration", True),
        load=load,
        counts=_counts(metrics, scheduler),
        measures=measures,
        definitions=definitions_of(GUIDELLM, {measure.name for measure in measures}),
        notes=_notes(benchmark, place),
    )
    return Read(run, rows)


def _object(benchmark: Mapping[str, msgspec.Raw], name: str, place: str) -> dict[str, Any]:
    found = decoded(benchmark.get(name), dict[str, Any] | None, f"{place}.{name}")
    return found or {}


def _measures(metrics: Fields) -> Iterator[Measure]:
    for field, (name, unit, factor, one_each) in _METRICS.items():
        told = metrics.inner(field, True).inner("successful", True)
        if not told.raw():
            continue
        values = {
            "mean": told.number("mean", True),
            "std": told.number("std_dev", True),
            "min": told.number("min", True),
            "max": told.number("max", True),
        }
        percentiles = told.inner("percentiles", True)
        if name in _MEAN_ALONE:
            values = {"mean": values["mean"]}
        else:
            values |= {ours: percentiles.number(theirs, True) for theirs, ours in _PERCENTILES.items()}
            values["p50"] = first_number(told, "median") if values.get("p50") is None else values["p50"]
        n = told.count("count", True) if one_each else None
        # Nothing but zeros is how it writes that there was nothing to measure.
        if n == 0 or not any(values.values()):
            continue
        measure = measure_of(name, field, unit, factor, values, n)
        if measure is not None:
            yield measure


def _counts(metrics: Fields, scheduler: Fields) -> Counts:
    totals = metrics.inner("request_totals", True)
    made = scheduler.inner("requests_made", True)
    told = totals if totals.raw() else made
    total, everything = told.count("total", True), made.count("total", True)
    return Counts(
        requests=total,
        completed=told.count("successful", True),
        failed=told.count("errored", True),
        cancelled=told.count("incomplete", True),
        left_out=everything - total
        if everything is not None and total is not None and everything >= total
        else None,
    )


def _load(
    config: Mapping[str, Any], asked: Mapping[str, Any], measures: Sequence[Measure]
) -> tuple[Load, str]:
    strategy = config.get("strategy")
    strategy = strategy if isinstance(strategy, dict) else {}
    kind = str(strategy.get("type_") or strategy.get("kind") or "")
    streams = number_in(strategy, "streams", "max_concurrency") if strategy else None
    rate = number_in(strategy, "rate") if strategy else None
    lengths = {measure.name: measure.mean for measure in measures}
    data = found_in(asked, "data")
    load = Load(
        concurrency=1 if kind == "synchronous" else whole_number(streams),
        rate_per_s=rate if kind in ("constant", "poisson", "async") else None,
        rate_unbounded=kind == "throughput",
        arrivals=kind if kind in ("constant", "poisson") else None,
        requests=whole_number(number_in(asked, "max_requests")),
        duration_s=number_in(asked, "max_seconds", "max_duration"),
        # Lengths that were asked for stand in a text of many forms; those reached stand for them.
        input_tokens=lengths.get("prompt_tokens"),
        output_tokens=lengths.get("output_tokens"),
        dataset=text_in({"data": data}, "data"),
    )
    said = load.concurrency if kind == "concurrent" else rate if load.rate_per_s else None
    return load, harmless(f"{kind} {said:g}" if said else kind)


def _rows(requests: _Requests) -> tuple[RequestRow, ...]:
    listed = [(getattr(requests, name) or [], outcome) for name, outcome in _FATES]
    if sum(len(found) for found, _ in listed) > REQUESTS_LIMIT:
        raise CallerError(f"A benchmark lists more than {REQUESTS_LIMIT:,} requests.")
    rows: list[RequestRow] = []
    for found, outcome in listed:
        rows.extend(_row(len(rows) + at, request, outcome) for at, request in enumerate(found))
    return with_opening(rows)


def _row(index: int, request: _Request, outcome: Outcome) -> RequestRow:
    info = request.info or request.scheduler_info or _Info()
    times = info.timings or _Timings()
    first = times.first_token_iteration if times.first_token_iteration is not None else times.first_iteration
    last = times.last_token_iteration if times.last_token_iteration is not None else times.last_iteration
    return row_of(
        index,
        sent_ns=ns_of(times.request_start),
        first_ns=ns_of(first),
        answer_ns=ns_of(times.first_output_token_iteration),
        last_ns=ns_of(last),
        end_ns=ns_of(times.request_end if times.request_end is not None else times.resolve_end),
        outcome=outcome,
        error=harmless(info.error)[:200] if info.error else None,
        prompt_tokens=whole_number(request.prompt_tokens),
        output_tokens=whole_number(request.output_tokens),
        events=int(times.token_iterations or 0) if first is not None else 0,
    )


def _notes(benchmark: Mapping[str, msgspec.Raw], place: str) -> tuple[str, ...]:
    warnings = decoded(benchmark.get("warnings"), list[Any] | None, f"{place}.warnings") or []
    said = [
        text_in(warning, "message", "detail") if isinstance(warning, dict) else warning
        for warning in warnings[:10]
    ]
    return tuple(f"GuideLLM warns: {harmless(text)}" for text in said if isinstance(text, str))
