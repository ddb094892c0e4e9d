"""The gates of one trial: facts in, one result a gate out."""

from __future__ import annotations

from nameplate.contract.quantity import format_duration
from nameplate.verdict.facts import TrialFacts
from nameplate.verdict.gate import CONTRACT, LOAD, MEANING, Gate, GateResult, GateStatus
from nameplate.verdict.sustained import judge_sustained
from nameplate.verdict.tolerances import (
    PROMPT_INVALID_PERCENT,
    SEND_LAG_SHARE,
    UNDERFILLED_SHARE,
    UNKNOWN_BLOCK_TOKENS,
    cached_range,
)
from nameplate.wire.loop import LEAST_CHARS

COLD_BY_CONSTRUCTION = "cold by construction, not observed"


def judge_gates(facts: TrialFacts, *, error_rate_decides: bool = False) -> tuple[GateResult, ...]:
    """Judge every gate; with an `error_rate` SLO in the contract, load failures are counted and not judged."""
    return (
        *(_load(gate, facts, error_rate_decides) for gate in LOAD),
        _outstanding(facts),
        *judge_sustained(facts.queue),
        _all_ended(facts),
        _none_of(Gate.bad_request, facts.bad_requests, facts.sent, "requests"),
        _none_of(Gate.warmup, facts.warmup_failed, facts.warmup_failed, "warm-up requests"),
        _of_ok(Gate.output_length, facts.wrong_output_length, facts.output_length_unknown, facts),
        _of_ok(Gate.finish_reason, facts.wrong_finish, facts.finish_unknown, facts),
        _none_of(Gate.empty_output, facts.empty_outputs, facts.ok, "answers"),
        _input_length(facts),
        _cached(facts),
        _none_of(Gate.unique_prompts, facts.duplicate_prompts, facts.sent, "prompts"),
        _unique_outputs(facts),
        _looping(facts),
        _other_traffic(facts),
        _counters(facts),
        _identity(facts),
        _lateness(facts),
        _concurrency(facts),
        _arrivals(facts),
        _evidence(facts),
    )


def broken(results: tuple[GateResult, ...], status: GateStatus) -> tuple[GateResult, ...]:
    """Return the results with this status."""
    return tuple(result for result in results if result.status == status)


def _load(gate: Gate, facts: TrialFacts, error_rate_decides: bool) -> GateResult:
    count = facts.load_failures.get(gate.value, 0)
    if not count:
        return GateResult(gate, "pass", "none", facts.sent)
    said = f"{count} of {facts.sent} requests: {MEANING[gate]}"
    if error_rate_decides:
        return GateResult(gate, "pass", f"{said}; the error_rate SLO decides", count)
    return GateResult(gate, "fail", said, count)


def _outstanding(facts: TrialFacts) -> GateResult:
    gate = Gate.outstanding
    if facts.outstanding_limit is None:
        return GateResult(
            gate, "pass", "within the limit" if facts.open_loop else "a closed loop has none", 0
        )
    said = f"{facts.outstanding_limit} requests were unanswered at once"
    if facts.workers > 1:
        share = max(1, facts.outstanding_limit // facts.workers)
        said = (
            f"{share} requests of one of {facts.workers} workers were unanswered at once, its share of the limit of "
            f"{facts.outstanding_limit}"
        )
    said = f"{said}: {MEANING[gate]}"
    return GateResult(gate, "fail", said, facts.outstanding_limit)


def _arrivals(facts: TrialFacts) -> GateResult:
    gate = Gate.arrivals
    if not facts.open_loop:
        return GateResult(gate, "pass", "a closed loop has none", 0)
    if facts.not_delivered and not facts.cancelled and not facts.unfinished:
        return GateResult(gate, "invalid", f"{MEANING[gate]}: {facts.not_delivered}", facts.sent)
    if facts.not_delivered:
        return GateResult(gate, "unverified", f"the load was cut: {facts.not_delivered}", facts.sent)
    return GateResult(gate, "pass", "delivered as planned", facts.sent)


def _all_ended(facts: TrialFacts) -> GateResult:
    if not facts.not_ended:
        return GateResult(Gate.all_ended, "pass", f"all {facts.planned} ended", facts.planned)
    if facts.cut_as_planned and not facts.unfinished:
        return GateResult(Gate.all_ended, "pass", f"{facts.cancelled} cut, as planned", facts.sent)
    never = max(0, facts.planned - facts.sent)
    detail = (
        f"{facts.not_ended} of {facts.planned} did not end by themselves: {facts.cancelled} cancelled, "
        f"{facts.unfinished} unfinished, {never} not started"
    )
    return GateResult(Gate.all_ended, "inconclusive", detail, facts.not_ended)


def _none_of(gate: Gate, count: int, looked_at: int, noun: str) -> GateResult:
    assert gate in CONTRACT
    if count:
        return GateResult(gate, "invalid", f"{count} {noun}: {MEANING[gate]}", count)
    return GateResult(gate, "pass", "none", looked_at)


def _of_ok(gate: Gate, wrong: int, unknown: int, facts: TrialFacts) -> GateResult:
    if wrong:
        return GateResult(gate, "invalid", f"{wrong} of {facts.ok}: {MEANING[gate]}", wrong)
    if unknown:
        return GateResult(gate, "unverified", f"the server did not tell for {unknown} of {facts.ok}", unknown)
    return GateResult(gate, "pass", f"all {facts.ok} as asked", facts.ok)


def _input_length(facts: TrialFacts) -> GateResult:
    gate = Gate.input_length
    if facts.prompt is None:
        return GateResult(gate, "unverified", "the server does not count prompt tokens", 0)
    asked = facts.prompt_asked_range
    reached = f"{facts.prompt.low} to {facts.prompt.high} for {facts.prompt_asked} asked"
    if asked is not None:
        reached = f"{facts.prompt.low} to {facts.prompt.high} for {asked.low} to {asked.high} asked, each by its own"
    if facts.prompt_wrong:
        return GateResult(gate, "invalid", f"{facts.prompt_wrong} beyond 2%: {reached}", facts.prompt_wrong)
    if facts.prompt_warned:
        said = f"{facts.prompt_warned} beyond max(8, 0.5%), within 2%: {reached}"
        return GateResult(gate, "pass", said, facts.prompt_warned)
    return GateResult(gate, "pass", reached, facts.prompt.known)


def _cached(facts: TrialFacts) -> GateResult:
    gate = Gate.cached_tokens
    if facts.trace_shared_tokens is not None:
        return _cached_of_trace(facts)
    low, high = cached_range(facts.shared_prefix_tokens, facts.template_floor_tokens, facts.block_size_tokens)
    allowed = f"{low} to {high} allowed" if low else f"at most {high} allowed"
    if facts.block_size_tokens is None:
        allowed += f" (block size unknown, {UNKNOWN_BLOCK_TOKENS} assumed)"
    if facts.cached is not None:
        seen = f"{facts.cached.low} to {facts.cached.high} cached, {allowed}"
        if facts.cached_beyond:
            return GateResult(gate, "invalid", f"{facts.cached_beyond} requests: {seen}", facts.cached_beyond)
        return GateResult(gate, "pass", f"by usage: {seen}", facts.cached.known)
    if facts.cached_by_counter is not None and facts.counter_requests:
        mean = facts.cached_by_counter / facts.counter_requests
        seen = f"{mean:.1f} cached tokens a request by counter, {allowed}"
        return GateResult(gate, "pass" if low <= mean <= high else "invalid", seen, facts.cached_by_counter)
    if facts.shared_prefix_tokens:
        return GateResult(gate, "unverified", "warm by construction, not observed", 0)
    return GateResult(gate, "unverified", COLD_BY_CONSTRUCTION, 0)


def _cached_of_trace(facts: TrialFacts) -> GateResult:
    """Judge what was cached of a trace's prompts: each at most what it shares with others, and a block."""
    gate, shared = Gate.cached_tokens, facts.trace_shared_tokens or 0
    if facts.cached_beyond:
        said = f"{facts.cached_beyond} requests had more cached than they share with others and a block"
        return GateResult(gate, "invalid", said, facts.cached_beyond)
    if facts.trace_cached_tokens is not None and facts.cached is not None:
        of = (
            f" of {shared} that the trace shares ({facts.trace_cached_tokens / shared:.1%})" if shared else ""
        )
        said = f"by usage: {facts.trace_cached_tokens} tokens cached{of}, none beyond its own shared part"
        return GateResult(gate, "pass", said, facts.cached.known)
    if facts.cached_by_counter is not None:
        size = facts.block_size_tokens or UNKNOWN_BLOCK_TOKENS
        most = round(shared * (1 + PROMPT_INVALID_PERCENT / 100))
        most += facts.counter_requests * ((facts.template_floor_tokens or 0) + size)
        said = f"{facts.cached_by_counter} cached tokens by counter, at most {most} allowed"
        status: GateStatus = "pass" if facts.cached_by_counter <= most else "invalid"
        return GateResult(gate, status, said, facts.cached_by_counter)
    return GateResult(gate, "unverified", f"{shared} tokens shared by construction, not observed", 0)


def _unique_outputs(facts: TrialFacts) -> GateResult:
    gate, count = Gate.unique_outputs, facts.duplicate_outputs
    if not count:
        return GateResult(gate, "pass", "no answer repeats", facts.ok)
    if facts.outputs_must_differ:
        return GateResult(gate, "invalid", f"{count} of {facts.ok}: {MEANING[gate]}", count)
    return GateResult(gate, "pass", f"{count} of {facts.ok} repeat; the baseline's were not unique", count)


def _looping(facts: TrialFacts) -> GateResult:
    gate, loops = Gate.looping, facts.loops
    if loops is None or loops.unknown:
        unknown = facts.ok if loops is None else loops.unknown
        return GateResult(gate, "unverified", f"not looked for in {unknown} of {facts.ok} answers", unknown)
    if not loops.judged:
        return GateResult(gate, "pass", f"no answer has {LEAST_CHARS:,} characters: too short to judge", 0)
    if not loops.looped:
        return GateResult(gate, "pass", f"none of {loops.judged} judged answers loops", loops.judged)
    share = loops.looped / loops.judged
    said = f"{loops.looped} of {loops.judged} judged answers ({share:.1%})"
    if not facts.outputs_must_not_loop:
        return GateResult(gate, "pass", f"{said} loop; no baseline without loops to judge by", loops.looped)
    if share > facts.loop_limit:
        said = f"{said}, above the limit of {100 * facts.loop_limit:g}%: {MEANING[gate]}"
        return GateResult(gate, "invalid", said, loops.looped)
    return GateResult(
        gate, "pass", f"{said} loop, within the limit of {100 * facts.loop_limit:g}%", loops.looped
    )


def _other_traffic(facts: TrialFacts) -> GateResult:
    gate = Gate.no_other_traffic
    if facts.extra_requests_seen is None:
        return GateResult(gate, "unverified", "the server does not tell what it holds", 0)
    if facts.extra_requests_seen > 0:
        said = f"{facts.extra_requests_seen} more than ours: {MEANING[gate]}"
        return GateResult(gate, "invalid", said, facts.extra_requests_seen)
    return GateResult(gate, "pass", "never more than ours", 0)


def _counters(facts: TrialFacts) -> GateResult:
    gate = Gate.server_counters
    known = [check for check in facts.counters if check.server is not None and check.ours is not None]
    if not known:
        return GateResult(gate, "unverified", "no counters from idle to idle", 0)
    said = "; ".join(f"{check.name}: server {check.server}, ours {check.ours}" for check in known)
    if facts.ok != facts.sent or facts.warmup_failed:
        # A request that broke off may have generated what never reached us.
        return GateResult(gate, "unverified", f"not every request was ok; {said}", len(known))
    wrong = [check for check in known if check.server != check.ours]
    if not wrong:
        return GateResult(gate, "pass", said, len(known))
    if all(check.name == "prompt_tokens" for check in wrong) and facts.preemptions != 0:
        # A preempted prompt is computed again, and some engines count it again.
        return GateResult(gate, "unverified", f"preemptions not excluded; {said}", len(known))
    return GateResult(gate, "invalid", f"{MEANING[gate]}: {said}", len(wrong))


def _identity(facts: TrialFacts) -> GateResult:
    gate = Gate.identity
    changed = [str(change) for change in facts.identity_changes if change.kind == "changed"]
    changed += [f"the counter {name} fell" for name in facts.counters_fell]
    if changed:
        return GateResult(gate, "invalid", "; ".join(changed), len(changed))
    lost = [str(change) for change in facts.identity_changes]
    if lost:
        return GateResult(gate, "unverified", "; ".join(lost), len(lost))
    if not facts.identity_known:
        return GateResult(gate, "unverified", "the identity was not read after the trial", 0)
    return GateResult(gate, "pass", "the same before and after", 0)


def _lateness(facts: TrialFacts) -> GateResult:
    gate = Gate.client_lateness
    share = facts.send_lag_share
    measures = [("arrival doubt", facts.arrival_doubt_p99_ns)]
    if share is None:
        measures.append(("send lag", facts.send_lag_p99_ns))
    budget = f"budget {format_duration(facts.lateness_budget_ns)}"
    known = [(name, value) for name, value in measures if value is not None]
    said = ", ".join(f"{name} p99 {format_duration(value)}" for name, value in known)
    late = [name for name, value in known if value > facts.lateness_budget_ns]
    if share is not None:
        # Streams that begin or start again all at once are sent one after the other, and no latency counts from when
        # they were due: what their wait costs is time without a request.
        budget += f"; late sends took {share:.2%} of the streams' time, {SEND_LAG_SHARE:.1%} may"
        late += ["late sends"] if share > SEND_LAG_SHARE else []
    if late:
        return GateResult(gate, "invalid", f"client-limited: {said}, {budget}", len(late))
    if facts.clock == "virtual":
        return GateResult(gate, "pass", "virtual time: no client stands between", len(known))
    if len(known) < len(measures):
        return GateResult(gate, "unverified", f"{said or 'nothing'} known, {budget}", len(known))
    return GateResult(gate, "pass", f"{said}, {budget}", len(known))


def _concurrency(facts: TrialFacts) -> GateResult:
    gate = Gate.concurrency
    if facts.concurrency_max is None:
        return GateResult(gate, "unverified", "no request was in flight", 0)
    if facts.concurrency_max > facts.concurrency:
        said = f"{facts.concurrency_max} in flight at once, {facts.concurrency} planned"
        return GateResult(gate, "invalid", said, facts.concurrency_max)
    if facts.below_share is None:
        return GateResult(gate, "pass", f"never above {facts.concurrency}", facts.concurrency_max)
    said = f"below {facts.concurrency} for {facts.below_share:.2%} of the time"
    empty = facts.below_share if facts.underfilled_share is None else facts.underfilled_share
    if empty != facts.below_share:
        said += f", {empty:.2%} without handovers of up to 2 ms"
    if empty <= UNDERFILLED_SHARE:
        return GateResult(gate, "pass", said, facts.concurrency_max)
    if facts.ok != facts.sent:
        # What fails at once leaves its slot empty; the failures are judged by their own gates.
        return GateResult(gate, "unverified", f"{said}, while requests failed or were cut", 0)
    return GateResult(gate, "invalid", f"underfilled: {said}", facts.concurrency_max)


def _evidence(facts: TrialFacts) -> GateResult:
    damage = list(facts.damage)
    total = facts.ok + facts.failed + facts.cancelled + facts.unfinished
    if total != facts.sent:
        damage.append(f"sent {facts.sent} is not ok + failed + cancelled + unfinished = {total}")
    if facts.sent > facts.planned:
        damage.append(f"{facts.sent} measured requests where {facts.planned} were planned")
    if damage:
        return GateResult(Gate.evidence, "invalid", "; ".join(damage), len(damage))
    return GateResult(Gate.evidence, "pass", "whole, and its sums agree", facts.sent)
