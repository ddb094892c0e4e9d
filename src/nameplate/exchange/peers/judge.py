"""Our verdict from another tool's request records: the gates and SLOs of a trial, and what the records cannot prove.

Gates are judged by our default policy: a closed loop, cold prompts that do not repeat. What a file does not tell leaves
its gate unverified; a gate that needs a plan is unverified, since no file of another tool holds one of ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.contract.slo import Slo
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.peers.records import Read
from nameplate.exchange.peers.run import Judged
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.measure.correctness import count, range_of
from nameplate.measure.facts import failures_of
from nameplate.measure.samples import slo_values
from nameplate.verdict.facts import TrialFacts
from nameplate.verdict.gate import Gate, GateResult
from nameplate.verdict.gates import judge_gates
from nameplate.verdict.tolerances import cached_range, lateness_budget_ns
from nameplate.verdict.trial import judge_slo, judge_trial
from nameplate.wire.outcome import Outcome

_CUT = (Outcome.cancelled, Outcome.unfinished)
_NO_PLAN = {
    Gate.input_length: "what prompt length was planned is not in the file",
    Gate.outstanding: "whether the loop was open, and its limit, is not in the file",
    Gate.arrivals: "when requests were to be sent is not in the file",
    Gate.no_other_traffic: "what else the server held is not in the file",
    Gate.server_counters: "the server's counters are not in the file",
    Gate.identity: "what the server was before and after is not in the file",
    Gate.client_lateness: "the tool stamps what it has read; how late that is, and its sends, is not in the file",
}
# What only events tell: records of times have neither text nor finish reasons, nor the server's own counts.
_NO_EVENTS = {
    Gate.output_length: "the server's own token counts are not in the file",
    Gate.finish_reason: "finish reasons are not in the file",
    Gate.empty_output: "the answers are not in the file",
    Gate.cached_tokens: "how much of a prompt was cached is not in the file",
    Gate.unique_prompts: "the prompts are not in the file",
    Gate.unique_outputs: "the answers are not in the file",
    Gate.looping: "the answers are not in the file",
}


def judge(read: Read, slos: Sequence[Slo]) -> Judged:
    """Judge a run by its records."""
    rows = list(read.rows)
    facts = _facts(rows, slos, read.exact_lengths)
    gates = judge_gates(facts, error_rate_decides=any(slo.metric == "error_rate" for slo in slos))
    unknown = {**_NO_PLAN, Gate.concurrency: _concurrency(rows), **({} if read.raw else _NO_EVENTS)}
    gates = tuple(
        GateResult(gate.gate, "unverified", unknown[gate.gate]) if gate.gate in unknown else gate
        for gate in gates
    )
    gates = tuple(_broken(gate, read) if gate.gate is Gate.evidence else gate for gate in gates)
    measured = read.measured
    until = max((row.end_ns for row in rows if row.end_ns is not None), default=0)
    results = [judge_slo(slo, slo_values(slo, rows, len(measured), until)) for slo in slos]
    unproven = tuple(f"{gate.gate}: {gate.detail}" for gate in gates if gate.status == "unverified")
    return Judged(judge_trial(gates, results), gates, unproven)


def _facts(rows: Sequence[RequestRow], slos: Sequence[Slo], exact: bool) -> TrialFacts:
    measured = [row for row in rows if row.measured]
    ok = [row for row in measured if row.outcome == Outcome.ok]
    counted = count(measured)
    failures, _ = failures_of(measured)
    _, high = cached_range(0, None, None)
    told = [row for row in ok if row.output_tokens_source == "usage" and row.asked_output_tokens]
    return TrialFacts(
        clock="live",
        planned=counted.sent,
        sent=counted.sent,
        ok=counted.ok,
        failed=counted.failed,
        cancelled=counted.cancelled,
        unfinished=counted.unfinished,
        load_failures={gate: n for gate, n in failures.items() if gate != Gate.bad_request},
        bad_requests=failures.get(Gate.bad_request.value, 0),
        warmup_failed=sum(row.phase == "warmup" and row.outcome not in (Outcome.ok, *_CUT) for row in rows),
        outcomes=counted.outcomes,
        http_statuses=counted.http_statuses,
        wrong_output_length=sum(_wrong_length(row, exact) for row in told),
        output_length_unknown=len(ok) - len(told),
        wrong_finish=sum(row.finish_reason == "content_filter" for row in ok),
        finish_unknown=sum(row.finish_reason is None for row in ok),
        empty_outputs=sum(row.output_events == 0 for row in ok),
        prompt_asked=0,
        prompt=counted.prompt_tokens,
        cached=range_of(row.cached_tokens for row in measured),
        cached_beyond=sum(row.cached_tokens is not None and row.cached_tokens > high for row in measured),
        duplicate_prompts=_repeated(rows),
        duplicate_outputs=counted.ok - counted.unique_outputs,
        loops=counted.loops,
        identity_known=False,
        lateness_budget_ns=lateness_budget_ns(slos),
        concurrency=0,
    )


def _wrong_length(row: RequestRow, exact: bool) -> bool:
    tokens = row.output_tokens or 0
    return tokens != row.asked_output_tokens if exact else tokens > row.asked_output_tokens


def _repeated(rows: Sequence[RequestRow]) -> int:
    """Count prompts that repeat an earlier one, the warm-up's included; a prompt that is not known repeats none."""
    known = [row.prompt_sha256 for row in rows if row.prompt_sha256]
    return len(known) - len(set(known))


def _concurrency(rows: Sequence[RequestRow]) -> str:
    measured = [row for row in rows if row.measured]
    until = max((row.end_ns for row in measured if row.end_ns is not None), default=0)
    seen = InFlight(intervals(measured, until)).highest
    return f"at most {seen} were in flight at once; how many were planned is not in the file"


def _broken(gate: GateResult, read: Read) -> GateResult:
    """Let the file's own contradictions break the evidence; what a tool called a success is judged by its outcome."""
    damage = [check.detail for check in read.run.contradictions if check.name != "successes"]
    if not damage:
        return gate
    return GateResult(gate.gate, "invalid", "; ".join(damage), len(damage))
