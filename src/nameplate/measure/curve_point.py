"""One trial as a point of a curve: throughput and latency together, and what the server said meanwhile."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.curve import load_of
from nameplate.contract.identity import Value
from nameplate.contract.limits import ServerLimits
from nameplate.measure.latency import Latencies
from nameplate.measure.rates import Rate, SingleUser
from nameplate.measure.result import TrialResult
from nameplate.measure.server_side import Gauge
from nameplate.measure.waits import Waits
from nameplate.statistics.percentile import Distribution
from nameplate.statistics.trend import Conclusion
from nameplate.verdict.curve import Measured, configuration_of
from nameplate.verdict.facts import PromptRange

Basis = Literal["steady", "whole"]


class Sample(Struct, frozen=True, kw_only=True):
    """Hold one sample of a trial's requests: rates a second, latencies in nanoseconds, `per_user` in tokens a second.

    In an open loop TTFT counts from when the request was due.
    """

    n: int
    output_per_s: float | None
    requests_per_s: float | None
    ttft: Distribution
    itl: Distribution
    e2e: Distribution
    per_user: Distribution


class Point(Struct, frozen=True, kw_only=True):
    """Hold one valid trial of a level.

    `whole` are all measured requests, first sent to last end; `steady` those that were sent after the opening phase,
    from its end to the last start, null where that is empty: after the opening wave of a closed loop, after the
    warm-up of an open one. `in_flight` is the effective concurrency over the whole run, rebuilt from the records,
    and `in_flight_steady` up to the last start. `by_little` is the first by Little's law: ok requests a second x mean
    E2E; they agree where every request ended well. Gauges are the server's own, where it tells; `kv_tokens` and
    `running_limit` are what it says that it has. `resident_share` is what one request's tokens, its prompt and its
    output, are of the KV pool. `waits` takes the TTFT apart, `queue` says whether the outstanding requests of an open
    loop grew. `alone` only at concurrency one.
    """

    trial: str
    sent: int
    ok: int
    duration_s: float | None
    whole: Sample
    steady: Sample | None
    estimated: bool
    in_flight: float | None
    in_flight_steady: float | None
    in_flight_most: int | None
    by_little: float | None
    running: Gauge | None
    waiting: Gauge | None
    kv_usage: Gauge | None
    waits: Waits | None
    preemptions: int | None
    running_limit: int | None
    kv_tokens: int | None
    prompt_tokens: PromptRange | None
    output_tokens_mean: float | None
    resident_share: float | None
    queue: Conclusion | None
    alone: SingleUser | None
    configuration: dict[str, Value]

    def sample(self, basis: Basis) -> Sample:
        """Return the sample that numbers are shown of."""
        return self.steady if basis == "steady" and self.steady is not None else self.whole


def point_of(result: TrialResult) -> Point:
    """Return a trial as a point of a curve."""
    held, limits = result.measurement, ServerLimits.of(result.identity_before)
    rates, correctness, server = held.rates, held.correctness, held.server
    open_loop = result.plan.arrivals is not None
    whole = _sample(held.latencies.whole, rates.tokens_whole, rates.requests_whole, open_loop)
    steady = None
    if rates.tokens_steady is not None and held.latencies.steady.requests:
        steady = _sample(held.latencies.steady, rates.tokens_steady, rates.requests_steady, open_loop)
    prompt, mean_output = correctness.prompt_tokens, _mean_output(result)
    resident = None
    if limits.kv_tokens and prompt is not None and mean_output is not None:
        resident = (prompt.high + mean_output) / limits.kv_tokens
    e2e = held.latencies.whole.e2e.mean
    per_s = whole.requests_per_s
    growth = held.queueing.outstanding if held.queueing is not None else None
    return Point(
        trial=result.plan.key,
        sent=correctness.sent,
        ok=correctness.ok,
        duration_s=held.whole_run.length_ns / 1e9 if held.whole_run is not None else None,
        whole=whole,
        steady=steady,
        estimated=any(rate is not None and rate.estimated for rate in (rates.tokens_whole, rates.tokens_steady)),
        in_flight=held.concurrency.mean_whole_run,
        in_flight_steady=held.concurrency.mean,
        in_flight_most=held.concurrency.max,
        by_little=per_s * e2e / 1e9 if per_s is not None and e2e is not None else None,
        running=server.running,
        waiting=server.waiting,
        kv_usage=server.kv_usage,
        waits=held.waits,
        preemptions=server.preemptions,
        running_limit=limits.running,
        kv_tokens=limits.kv_tokens,
        prompt_tokens=prompt,
        output_tokens_mean=mean_output,
        resident_share=resident,
        queue=growth.conclusion if growth is not None else None,
        alone=held.single_user,
        configuration=configuration_of(result.identity_before),
    )  # fmt: skip


def measured_of(contract: Contract, result: TrialResult, point: Point, basis: Basis) -> Measured | None:
    """Return what a curve is made of; None where the trial has no output rate."""
    plan = contract.curve
    assert plan is not None
    sample = point.sample(basis)
    if sample.output_per_s is None:
        return None
    return Measured(
        load=load_of(plan.kind, result.plan),
        output_per_s=sample.output_per_s,
        behind=point.queue == "rising",
        ttft_ns=sample.ttft.p50,
        itl_ns=sample.itl.p50,
        e2e_ns=sample.e2e.p50,
        configuration=point.configuration,
    )


def _mean_output(result: TrialResult) -> float | None:
    correctness = result.measurement.correctness
    return correctness.output_tokens / correctness.ok if correctness.ok else None


def _sample(latencies: Latencies, tokens: Rate | None, requests: Rate | None, open_loop: bool) -> Sample:
    return Sample(
        n=latencies.requests,
        output_per_s=tokens.per_s if tokens is not None else None,
        requests_per_s=requests.per_s if requests is not None else None,
        ttft=latencies.ttft_from_schedule if open_loop else latencies.ttft,
        itl=latencies.itl,
        e2e=latencies.e2e,
        per_user=latencies.per_user,
    )
