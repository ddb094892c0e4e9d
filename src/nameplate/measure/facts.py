"""From evidence and measurement to the facts that the gates judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nameplate.contract.contract import Contract
from nameplate.contract.identity import compare
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.correctness import range_of
from nameplate.measure.measurement import Measurement
from nameplate.measure.ramp_cache import ramp_cache
from nameplate.measure.server_side import counters_that_fell, extra_requests
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.schedule.stage import Requests
from nameplate.verdict.facts import CounterCheck, TrialFacts
from nameplate.verdict.gate import Gate, gate_of_failure
from nameplate.verdict.sustained import LatencyCourse, QueueFacts
from nameplate.verdict.tolerances import cached_most, cached_range, lateness_budget_ns, prompt_length
from nameplate.wire.outcome import Outcome

_CUT = (Outcome.cancelled, Outcome.unfinished)

# Reasons with which a server ends an answer that it did not finish.
_BROKEN_FINISHES = ("abort", "error", "content_filter")


def facts_of(evidence: TrialEvidence, measurement: Measurement) -> TrialFacts:
    """Collect the facts of a trial; an outcome outside the closed list is damage."""
    rows, contract, plan = evidence.rows, evidence.contract, evidence.plan
    measured = evidence.measured
    ok = [row for row in measured if row.outcome == Outcome.ok]
    correctness, lateness = measurement.correctness, measurement.lateness
    failures, unknown_outcomes = failures_of(row for row in rows if row.phase != "warmup")
    block = evidence.identity_before.integer("block_size_tokens")
    prefix = evidence.shared_prefix_tokens or contract.cache.shared_prefix_tokens
    low, high = cached_range(prefix, evidence.template_floor_tokens, block)
    requests = Requests(plan)
    trace = plan.arrivals.trace if plan.arrivals is not None else None
    asked = _asked_inputs(measured, requests)
    lengths = [] if contract.dataset else _prompt_lengths(measured, asked)
    after = evidence.identity_after
    # From idle to idle the counter also holds what streams that started again found of their own prompts.
    cold_hold = plan.hold is not None and not plan.hold.warm_streams
    ramp, counted = ramp_cache(evidence) if cold_hold else None, plan.hold is None
    own, first = _own_prompts(evidence.rows, requests), _first_use(evidence)
    shared, cached = (0, None) if trace is None else _shared(measured, requests)
    return TrialFacts(
        clock=evidence.clock,
        planned=max(correctness.sent, plan.requests) if plan.hold else plan.requests,
        cut_as_planned=plan.cut,
        sent=correctness.sent,
        ok=correctness.ok,
        failed=correctness.failed,
        cancelled=correctness.cancelled,
        unfinished=correctness.unfinished,
        load_failures={gate: n for gate, n in failures.items() if gate != Gate.bad_request},
        bad_requests=failures.get(Gate.bad_request.value, 0),
        warmup_failed=sum(row.phase == "warmup" and row.outcome not in (Outcome.ok, *_CUT) for row in rows),
        outcomes=correctness.outcomes,
        http_statuses=correctness.http_statuses,
        wrong_output_length=sum(wrong_length(row, contract) for row in ok),
        output_length_unknown=sum(row.output_tokens_source != "usage" for row in ok),
        wrong_finish=sum(wrong_finish(row, contract) for row in ok),
        finish_unknown=sum(row.finish_reason is None for row in ok),
        empty_outputs=sum(row.output_events == 0 for row in ok),
        prompt_asked=plan.shape.input_tokens,
        prompt=correctness.prompt_tokens,
        prompt_asked_range=None if trace is None else range_of(asked.values()),
        prompt_warned=lengths.count("warned"),
        prompt_wrong=lengths.count("wrong"),
        cached=range_of(row.cached_tokens for row in first),
        cached_by_counter=ramp.cached_tokens
        if ramp
        else measurement.server.cached_tokens
        if counted
        else None,
        counter_requests=ramp.requests if ramp else len(rows),
        template_floor_tokens=evidence.template_floor_tokens,
        block_size_tokens=block,
        shared_prefix_tokens=prefix,
        trace_shared_tokens=None if trace is None else shared,
        trace_cached_tokens=None if trace is None else cached,
        cached_beyond=sum(
            row.cached_tokens is not None and not low <= row.cached_tokens <= high for row in first
        )
        if trace is None
        else _cached_beyond(evidence, requests),
        duplicate_prompts=duplicate_prompts(
            own, heads_differ=not contract.dataset and (trace is None or trace.block_tokens is None)
        ),
        duplicate_outputs=correctness.ok - correctness.unique_outputs,
        outputs_must_differ=plan.outputs_must_differ,
        loops=correctness.loops,
        loop_limit=contract.rules.loop_limit,
        outputs_must_not_loop=plan.outputs_must_not_loop,
        extra_requests_seen=_foreign(evidence, rows, measurement.server.requests),
        identity_changes=() if after is None else compare(evidence.identity_before, after),
        identity_known=after is not None,
        counters_fell=counters_that_fell((evidence.idle_before, *evidence.samples, evidence.idle_after)),
        counters=_counters(rows, measurement),
        preemptions=measurement.server.preemptions,
        arrival_doubt_p99_ns=lateness.arrival_doubt.p99_ns if lateness.arrival_doubt else None,
        send_lag_p99_ns=lateness.send_lag.p99_ns if lateness.send_lag else None,
        send_lag_share=_send_lag_share(evidence),
        lateness_budget_ns=lateness_budget_ns(contract.slos),
        concurrency=plan.concurrency,
        concurrency_max=measurement.concurrency.max,
        below_share=measurement.concurrency.below_share if plan.arrivals is None else None,
        underfilled_share=measurement.concurrency.underfilled_share if plan.arrivals is None else None,
        outstanding_limit=plan.arrivals.outstanding_limit if plan.arrivals and evidence.overrun else None,
        workers=evidence.workers,
        not_delivered=measurement.delivered.fault if measurement.delivered is not None else "",
        open_loop=plan.arrivals is not None,
        queue=_queue(plan, measurement),
        damage=evidence.damage + unknown_outcomes,
    )


def _queue(plan: TrialPlan, measurement: Measurement) -> QueueFacts | None:
    """Return what a rate study asks of the queue; None for a trial that claims no sustained rate."""
    asked, found = plan.rate_level, measurement.queueing
    if asked is None:
        return None
    if found is None:
        return QueueFacts(proves=asked.proves, resolution=asked.resolution)
    grown, thirds = found.outstanding, found.thirds
    drift: LatencyCourse | None = None
    if thirds is not None:
        drift = "rising" if found.latency_rises else "unsteady" if found.unsteady else "steady"
    return QueueFacts(
        proves=asked.proves,
        resolution=asked.resolution,
        queue=None if grown is None else grown.conclusion,
        growth=None if grown is None else grown.growth,
        most_growth=None if grown is None else grown.most_growth,
        waiting_rises=None if found.waiting is None else found.waiting.conclusion == "rising",
        latency=drift,
    )


def _send_lag_share(evidence: TrialEvidence) -> float | None:
    """Return which share of held streams' time in the window passed between a stream's end and its late restart."""
    held = evidence.held
    if evidence.plan.hold is None or held is None:
        return None
    begin_ns = held.begin_ns if held.begin_ns is not None else held.streams_began_ns
    end_ns = held.end_ns if held.end_ns is not None else evidence.ended_ns
    if end_ns <= begin_ns:
        return None
    lost_ns = sum(
        max(0, min(row.sent_ns, end_ns) - max(row.scheduled_ns, begin_ns))
        for row in evidence.measured
        if row.phase == "steady" and row.sent_ns is not None
    )
    return lost_ns / (evidence.plan.concurrency * (end_ns - begin_ns))


def _own_prompts(rows: Sequence[RequestRow], requests: Requests) -> list[RequestRow]:
    """Return the requests whose prompt is theirs: a held stream that starts again repeats its own, as planned."""
    return [row for row in rows if not requests.repeats(row.index)]


def _shared(measured: Sequence[RequestRow], requests: Requests) -> tuple[int, int | None]:
    """Return how many tokens a trace's requests share with earlier ones, and how many the server had cached.

    Both are of the requests of which the server told what was cached, or the first of all where it told none.
    """
    told = [row for row in measured if row.cached_tokens is not None]
    shared = sum(requests.shared_tokens(row.index) for row in told or measured)
    return shared, sum(row.cached_tokens or 0 for row in told) if told else None


def _cached_beyond(evidence: TrialEvidence, requests: Requests) -> int:
    """Count the requests of a trace that had more cached than they share with any other, in whatever order served."""
    block = evidence.identity_before.integer("block_size_tokens")
    floor = evidence.template_floor_tokens
    return sum(
        row.cached_tokens is not None
        and row.cached_tokens > cached_most(requests.shareable_tokens(row.index), floor, block)
        for row in evidence.measured
    )


def _first_use(evidence: TrialEvidence) -> list[RequestRow]:
    """Return the requests that send their prompt for the first time, on which the cache policy is judged."""
    hold = evidence.plan.hold
    if hold is None:
        return evidence.measured
    if hold.warm_streams:
        return [row for row in evidence.rows if row.phase == "warmup"]
    return [row for row in evidence.rows if row.phase == "opening"]


def _foreign(evidence: TrialEvidence, rows: Sequence[RequestRow], finished: int | None) -> int | None:
    """Count the requests that the server held beyond ours, under load or before it; None where it does not tell.

    `finished` are those that it counted from idle to idle. A gauge is set after a step, so a stranger's short request
    may never show in it; where requests are cut as planned, the counts need not agree, but more ended than we sent.
    """
    seen = extra_requests(evidence.samples, rows, evidence.ended_ns)
    strangers = evidence.busy_before
    if evidence.plan.cut and finished is not None:
        strangers = max(strangers, finished - sum(row.sent_ns is not None for row in rows))
    return max(seen or 0, strangers) if strangers > 0 else seen


def duplicate_prompts(rows: Sequence[RequestRow], *, heads_differ: bool) -> int:
    """Count prompts that repeat an earlier one, warm-up and ramp included.

    `heads_differ` also holds the first characters after a shared prefix against each other: a prompt is unique from
    its first token of its own on.
    """
    whole = len(rows) - len({row.prompt_sha256 for row in rows})
    heads = len(rows) - len({row.prompt_head_sha256 for row in rows}) if heads_differ else 0
    return max(whole, heads)


def failures_of(rows: Iterable[RequestRow]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Count requests by the gate that their failure breaks; beside it outcomes that no gate knows, in words."""
    found: Counter[str] = Counter()
    unknown = []
    for row in rows:
        try:
            gate = gate_of_failure(row.outcome, row.http_status)
        except ValueError:
            unknown.append(f"request {row.index} has the unknown outcome {row.outcome!r}")
            continue
        if gate is not None:
            found[gate.value] += 1
    return dict(found), tuple(unknown[:8])


def _asked_inputs(measured: Sequence[RequestRow], requests: Requests) -> dict[int, int]:
    """Return how long the prompt of each measured request of the plan should be, by index."""
    return {
        row.index: requests.shape(row.index).input_tokens for row in measured if requests.measured(row.index)
    }


def _prompt_lengths(measured: Sequence[RequestRow], asked: Mapping[int, int]) -> list[str]:
    return [
        prompt_length(asked[row.index], row.prompt_tokens)
        for row in measured
        if row.prompt_tokens is not None and row.index in asked
    ]


def wrong_length(row: RequestRow, contract: Contract) -> bool:
    """Tell whether an answer has another length than was asked for, as the server counts."""
    if row.output_tokens is None or row.output_tokens_source != "usage":
        return False
    if contract.sampling.ignore_eos:
        return row.output_tokens != row.asked_output_tokens
    return row.output_tokens > row.asked_output_tokens


def wrong_finish(row: RequestRow, contract: Contract) -> bool:
    """Tell whether an answer finished for another reason than the contract allows."""
    if row.finish_reason is None:
        return False
    if contract.sampling.ignore_eos:
        return row.finish_reason != "length"
    return row.finish_reason in _BROKEN_FINISHES


def _counters(rows: Sequence[RequestRow], measurement: Measurement) -> tuple[CounterCheck, ...]:
    server = measurement.server
    output = [row.output_tokens if row.output_tokens_source == "usage" else None for row in rows]
    return (
        CounterCheck("requests", server.requests, len(rows)),
        CounterCheck("output_tokens", server.output_tokens, _sum(output)),
        CounterCheck("prompt_tokens", server.prompt_tokens, _sum([row.prompt_tokens for row in rows])),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    """Add up; unknown as soon as one is."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
