"""Held streams: the window is as long as planned, and what makes streams ready held when it began."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.contract.plan import Hold, TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.held import Held
from nameplate.measure.readiness import LEAST_SAMPLES, RESTART_SLACK_NS, Restarts, full, last_before, told
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import Name
from nameplate.wire.outcome import Outcome

# The running trial learns of a stream's restart from reports, up to two of them late.
_REPORTS_NS = 500_000_000
# A sample that was taken just before the decision may have been written just after it.
_WRITING_NS = 50_000_000
# What was seen at the decision came by reports and from a file that grew meanwhile, on a machine that was busy.
_SEEING_NS = 2_000_000_000


def check_hold(evidence: TrialEvidence, ledger: Ledger) -> None:
    """Hold the journal's account of a hold against plan, rows and samples."""
    name, plan, held = Name.readiness, evidence.plan, evidence.held
    if plan.hold is None:
        ledger.close(name, "no streams were held")
        return
    if held is None:
        ledger.close(name, "the load ended before its streams were judged")
        return
    if held.deadline_ns != held.streams_began_ns + plan.hold.ready_ns:
        ledger.fail(name, "the deadline for being ready is not the planned one")
    _check_look(evidence, held, ledger)
    if held.begin_ns is None:
        if held.end_ns is not None or held.gave_up is None:
            ledger.fail(name, "there is a window without a beginning, or no window and no reason")
        if held.decided_ns < held.deadline_ns and not _cause_to_give_up(evidence, held):
            ledger.fail(name, "the wait was given up before its deadline, and nothing failed or was too much")
        ledger.close(name, f"never ready: {held.gave_up}")
        return
    _check_window(plan.hold, held, held.begin_ns, ledger)
    _check_produced(plan, evidence.rows, held.begin_ns, ledger)
    _check_samples(evidence, held, held.begin_ns, ledger)
    ledger.close(name, f"{plan.concurrency} streams ready, then a window as planned", plan.concurrency)


def _check_look(evidence: TrialEvidence, held: Held, ledger: Ledger) -> None:
    """Hold what was seen at the decision against rows and samples: it is the reason of a cell that was not ready."""
    saw, at_ns = held.saw, held.decided_ns
    firsts = [r.first_output_ns for r in evidence.rows if r.phase == "opening" and r.first_output_ns]
    least, most = (sum(t <= edge for t in firsts) for edge in (at_ns - _SEEING_NS, at_ns + _SEEING_NS))
    if saw.streams != evidence.plan.concurrency or not least <= saw.produced <= most:
        ledger.fail(
            Name.readiness,
            f"{saw.produced} of {saw.streams} streams were said to have produced output, recomputed {most}",
        )
    tell = told(evidence.samples)
    seen = [sample for sample in tell if abs(sample.t_ns - at_ns) <= _SEEING_NS]
    before = last_before(at_ns - _SEEING_NS, tell)
    said = (saw.running, saw.waiting, saw.kv_usage)
    if saw.server_tells and not any(
        said == (one.running, one.waiting, one.kv_usage_mean)
        for one in [*seen, *([before] if before else [])]
    ):
        ledger.fail(
            Name.readiness,
            f"the server was said to run {saw.running} and keep {saw.waiting} waiting, and no sample shows it",
        )


def _cause_to_give_up(evidence: TrialEvidence, held: Held) -> bool:
    """Say whether a request had failed, or more than ours ran, when the wait was ended."""
    failed = any(
        row.end_ns is not None
        and row.end_ns <= held.decided_ns
        and (
            row.outcome not in (Outcome.ok, Outcome.cancelled)
            or (row.outcome == Outcome.ok and not row.output_events)
        )
        for row in evidence.rows
    )
    crowd = any((sample.running or 0) > evidence.plan.concurrency for sample in told(evidence.samples))
    return failed or crowd


def _check_window(hold: Hold, held: Held, begin_ns: int, ledger: Ledger) -> None:
    if begin_ns != held.decided_ns:
        ledger.fail(Name.readiness, "the window began at another moment than was decided")
    if hold.arrival is None and held.end_ns != begin_ns + hold.window_ns:
        ledger.fail(Name.readiness, f"the window ends {held.end_ns}, planned {begin_ns + hold.window_ns}")


def _check_produced(plan: TrialPlan, rows: Sequence[RequestRow], begin_ns: int, ledger: Ledger) -> None:
    assert plan.hold is not None
    latest_ns = begin_ns - plan.hold.stable_ns
    produced = [
        row
        for row in rows
        if row.phase == "opening" and row.first_output_ns and row.first_output_ns <= latest_ns
    ]
    if len(produced) != plan.concurrency:
        ledger.fail(
            Name.readiness,
            f"{len(produced)} of {plan.concurrency} streams had produced output when the stable time began",
        )


def _check_samples(evidence: TrialEvidence, held: Held, begin_ns: int, ledger: Ledger) -> None:
    plan = evidence.plan
    assert plan.hold is not None
    stable_ns = plan.hold.stable_ns
    recent = [s for s in told(evidence.samples) if begin_ns - stable_ns <= s.t_ns <= begin_ns - _WRITING_NS]
    before = last_before(begin_ns - stable_ns, evidence.samples)
    if not held.server_tells:
        if recent:
            ledger.fail(Name.readiness, "the server told what it ran, and that was not part of being ready")
        return
    if len(recent) < LEAST_SAMPLES - 1:
        ledger.fail(Name.readiness, f"{len(recent)} samples of the server in the stable time")
    restarts = Restarts.of(evidence.rows, evidence.ended_ns, RESTART_SLACK_NS + _REPORTS_NS)
    if before is None:
        ledger.fail(Name.readiness, "no sample of the server when the stable time began")
    for sample in [*([before] if before else []), *recent]:
        if not full(sample, plan.concurrency, restarts):
            ledger.fail(
                Name.readiness,
                f"in the stable time the server ran {sample.running} of {plan.concurrency} and kept "
                f"{sample.waiting} waiting",
            )
