"""A soak as an llm-d benchmark report: its totals, and its windows as the series in time that the schema has.

Latencies are of completed requests; percentiles of the whole come from sketches, whose error the description names.
Windows that were not observed whole are left out, since a point has no place to say so. Tokens are the server's count:
where some were estimated, token rates and lengths are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nameplate.contract.identity import Identity
from nameplate.exchange.llmd.scenario import document_of, run_of, scenario_of, wall
from nameplate.exchange.llmd.statistics import (
    COUNT,
    NS,
    QUERIES_PER_S,
    SECONDS,
    TOKENS_PER_S,
    known,
    mean_alone,
    point_of,
)
from nameplate.exchange.tables.column import at
from nameplate.measure.soak.assemble import OUTPUT_ALONE, REQUESTS_ALONE
from nameplate.measure.soak.result import Latency, SoakResult
from nameplate.measure.soak.window import WindowResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.statistics.percentile import supported

_LATENCIES = {"time_to_first_token": "ttft", "request_latency": "e2e"}


def report_of_soak(record: SoakRecord, result: SoakResult) -> bytes:
    """Return the report of a soak so far."""
    first, last = result.segments[0], result.segments[-1]
    length_s = (last.observed_wall_ns - result.began_wall_ns) / NS
    error = max((told.relative_error for held in result.latencies for told in held.percentiles), default=0.0)
    described = (
        f"soak of shape {first.plan.shape} over {result.submitted_s:,.0f} s in {len(result.segments)} segments: "
        f"{result.verdict.status}, {result.drift.conclusion}; percentiles of the whole within {error:.0%}"
    )
    identity = result.parts[-1].identity if result.parts else Identity()
    return document_of(
        run_of(record.contract, "soak", result.began_wall_ns, length_s, described),
        scenario_of(record.contract, first.plan, identity, record.tool_version, stage=None),
        {"request_performance": known(aggregate=_aggregate(result), time_series=_series(result))},
    )


def rate_of(result: SoakResult, of: str) -> float | None:
    """Return one of a soak's rates by what it counts; None where it has none, or where tokens were estimated."""
    found = next((rate for rate in result.rates if rate.of == of), None)
    return None if found is None or found.estimated else found.per_s


def _aggregate(result: SoakResult) -> dict[str, Any]:
    counts, tokens = result.counts, result.tokens
    outputs = None if tokens.estimated or not counts.ok else tokens.output_ok / counts.ok
    inputs = tokens.input_ok / counts.ok if counts.ok else None
    held = {latency.metric: latency for latency in result.latencies}
    latency = {
        theirs: _percentiles(held[ours])
        for theirs, ours in _LATENCIES.items()
        if ours in held and held[ours].mean_completed_ns is not None
    }
    return known(
        requests=known(
            total=counts.sent,
            failures=counts.failed,
            incomplete=counts.open,
            input_length=mean_alone(inputs, COUNT),
            output_length=mean_alone(outputs, COUNT),
        ),
        latency=latency,
        throughput=known(
            output_token_rate=mean_alone(rate_of(result, OUTPUT_ALONE), TOKENS_PER_S),
            request_rate=mean_alone(rate_of(result, REQUESTS_ALONE), QUERIES_PER_S),
        ),
    )


def _percentiles(latency: Latency) -> dict[str, Any]:
    assert latency.mean_completed_ns is not None
    told: dict[str, Any] = {"units": SECONDS, "mean": latency.mean_completed_ns / NS}
    for held in latency.percentiles:
        if held.completed_only is not None and supported(held.completed, held.percent):
            told[f"p{held.percent:g}".replace(".", "p")] = held.completed_only / NS
    return told


def _series(result: SoakResult) -> dict[str, Any]:
    windows = [window for segment in result.segments for window in segment.windows if not window.partial]
    latency = known(
        **{theirs: _points(windows, SECONDS, at(ours), point_of) for theirs, ours in _LATENCIES.items()}
    )
    throughput = known(
        input_token_rate=_points(windows, TOKENS_PER_S, at("input_tokens_per_s"), _value),
        output_token_rate=_points(windows, TOKENS_PER_S, _output_rate, _value),
        request_rate=_points(windows, QUERIES_PER_S, at("requests_per_s"), _value),
    )
    return known(latency=latency, throughput=throughput)


def _points(
    windows: Sequence[WindowResult],
    units: str,
    of: Callable[[WindowResult], Any],
    as_point: Callable[[Any], dict[str, float] | None],
) -> dict[str, Any] | None:
    points = []
    for window in windows:
        value = of(window)
        told = None if value is None else as_point(value)
        if told is not None:
            points.append({"ts": wall(window.begin_wall_ns + window.end_ns - window.begin_ns), **told})
    return {"units": units, "series": points} if points else None


def _value(value: float) -> dict[str, float]:
    return {"value": value}


def _output_rate(window: WindowResult) -> float | None:
    return None if window.estimated else window.output_tokens_per_s
