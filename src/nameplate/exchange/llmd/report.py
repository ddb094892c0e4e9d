"""A trial as an llm-d benchmark report: computed from its requests by the meanings that its schema gives.

Latencies are of successful requests, in seconds; percentiles linear. TTFT begins at the first byte on an open
connection. TPOT is (E2E - TTFT) / (output tokens - 1), the normalised one E2E / output tokens. Its ITL is between
consecutive tokens, so it is given only where every chunk is known to hold one token. Rates are of successful requests,
by first send to last end. Tokens are the server's count: where it does not count, what needs them is left out, as is
everything else that is not known or has no place there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from nameplate.evidence.header import TrialHeader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.exchange.llmd.scenario import ENGINE, document_of, run_of, scenario_of
from nameplate.exchange.llmd.statistics import (
    COUNT,
    NS,
    PER_TOKEN,
    QUERIES_PER_S,
    SECONDS,
    TOKENS_PER_S,
    known,
    mean_alone,
    statistics_of,
)
from nameplate.measure.latency import gaps_of
from nameplate.measure.result import TrialResult
from nameplate.measure.server_side import Gauge, ServerSide
from nameplate.measure.windows import whole_run
from nameplate.wire.outcome import Outcome


def report_of(
    header: TrialHeader,
    rows: Iterable[RequestRow],
    timelines: Iterable[Timeline],
    result: TrialResult,
    stage: int | None = None,
) -> bytes:
    """Return the report of one trial; `stage` is which level of its study it is, counted from 0."""
    measured = [row for row in rows if row.measured]
    ok = [row for row in measured if row.outcome == Outcome.ok]
    scenario = scenario_of(
        header.contract,
        header.plan,
        result.identity_before,
        header.tool_version,
        workers=header.workers,
        stage=stage,
    )
    begin_ns = header.started.wall_ns - header.started.monotonic_ns + result.started_ns
    aggregate = known(
        requests=_requests(measured, ok),
        latency=_latency(ok, timelines),
        throughput=_throughput(measured, ok),
    )
    return document_of(
        run_of(header.contract, header.plan.key, begin_ns, result.elapsed_s, _described(header, result)),
        scenario,
        known(
            request_performance={"aggregate": aggregate},
            observability=_observability(result.measurement.server) if "stack" in scenario else None,
        ),
    )


def _described(header: TrialHeader, result: TrialResult) -> str:
    plan = header.plan
    reasons = f" ({'; '.join(result.verdict.reasons)})" if result.verdict.reasons else ""
    promise = ", ".join(map(str, header.contract.slos)) or "no promise"
    clock = "; in simulated time" if header.clock == "virtual" else ""
    return (
        f"{plan.role} {plan.key} of shape {plan.shape}: {promise}: {result.verdict.status}{reasons}{clock}"[
            :1000
        ]
    )


def _requests(measured: Sequence[RequestRow], ok: Sequence[RequestRow]) -> dict[str, Any]:
    cut = sum(row.outcome in (Outcome.cancelled, Outcome.unfinished) for row in measured)
    return known(
        total=len(measured),
        failures=len(measured) - len(ok) - cut,
        incomplete=cut,
        input_length=statistics_of((row.prompt_tokens for row in ok), COUNT),
        output_length=statistics_of(map(_tokens, ok), COUNT),
    )


def _latency(ok: Sequence[RequestRow], timelines: Iterable[Timeline]) -> dict[str, Any]:
    return known(
        time_to_first_token=statistics_of((row.ttft_ns for row in ok), SECONDS, NS),
        normalized_time_per_output_token=statistics_of(map(_normalised, ok), PER_TOKEN, NS),
        time_per_output_token=statistics_of(
            (row.tpot_ns if _tokens(row) else None for row in ok), PER_TOKEN, NS
        ),
        inter_token_latency=statistics_of(_token_gaps(ok, timelines), PER_TOKEN, NS),
        request_latency=statistics_of((row.e2e_ns for row in ok), SECONDS, NS),
    )


def _tokens(row: RequestRow) -> int | None:
    return row.output_tokens if row.output_tokens_source == "usage" else None


def _normalised(row: RequestRow) -> float | None:
    tokens = _tokens(row)
    return row.e2e_ns / tokens if tokens and row.e2e_ns is not None else None


def _token_gaps(ok: Sequence[RequestRow], timelines: Iterable[Timeline]) -> Iterable[int]:
    """Return the times between consecutive tokens; none where a chunk is not known to hold exactly one."""
    fine = {row.index for row in ok}
    held = [timeline for timeline in timelines if timeline.index in fine]
    one_each = all(timeline.tokens is not None and set(timeline.tokens) <= {1} for timeline in held)
    return chain.from_iterable(gaps_of(timeline) for timeline in held) if one_each else ()


def _throughput(measured: Sequence[RequestRow], ok: Sequence[RequestRow]) -> dict[str, Any]:
    window = whole_run(measured)
    if window is None or not window.length_ns or not ok:
        return {}
    seconds = window.length_ns / NS

    def rate(total: int | None) -> float | None:
        return None if total is None else total / seconds

    outputs, inputs = _sum(map(_tokens, ok)), _sum(row.prompt_tokens for row in ok)
    both = outputs + inputs if outputs is not None and inputs is not None else None
    return known(
        input_token_rate=mean_alone(rate(inputs), TOKENS_PER_S),
        output_token_rate=mean_alone(rate(outputs), TOKENS_PER_S),
        total_token_rate=mean_alone(rate(both), TOKENS_PER_S),
        request_rate=mean_alone(rate(len(ok)), QUERIES_PER_S),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    """Return a sum; None where a part of it is not known: a sum over some would be no total."""
    held = list(values)
    return None if None in held else sum(value for value in held if value is not None)


def _observability(server: ServerSide) -> dict[str, Any] | None:
    aggregate = known(
        kv_cache_usage=_gauge(server.kv_usage, "percent", 100.0),
        running_requests=_gauge(server.running, COUNT),
        waiting_requests=_gauge(server.waiting, COUNT),
    )
    return {"components": [{"component_label": ENGINE, "aggregate": aggregate}]} if aggregate else None


def _gauge(held: Gauge | None, units: str, factor: float = 1.0) -> dict[str, Any] | None:
    return None if held is None else {"units": units, "mean": held.mean * factor, "max": held.max * factor}
