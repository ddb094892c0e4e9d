"""The measurement of one trial: every number that is published of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.evidence.timeline import Timeline
from nameplate.measure.breakdown import Breakdown, measure_breakdown
from nameplate.measure.concurrency import Concurrency, rebuild
from nameplate.measure.correctness import Correctness, count
from nameplate.measure.delivered import Delivered, measure_delivered
from nameplate.measure.latency import PhaseLatencies, measure_latencies
from nameplate.measure.lateness import Lateness, measure_lateness
from nameplate.measure.queueing import Queueing
from nameplate.measure.rates import Rates, SingleUser, measure_rates, single_user
from nameplate.measure.server_side import ServerSide, measure_server
from nameplate.measure.stalls import Stalls, measure_stalls
from nameplate.measure.sustained import Sustained, measure_sustained
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.waits import Waits, measure_waits
from nameplate.measure.windows import Window, steady, whole_run


class Measurement(Struct, frozen=True, kw_only=True):
    """Hold a trial's numbers; `single_user` only at concurrency one, `delivered`, `queueing`, `stalls`, `breakdown` and
    `sustained` only of an open loop, `waits` not where the load was cut as planned. Null is absent, never zero."""

    correctness: Correctness
    latencies: PhaseLatencies
    rates: Rates
    concurrency: Concurrency
    lateness: Lateness
    server: ServerSide
    whole_run: Window | None
    steady_window: Window | None
    single_user: SingleUser | None
    stalls: Stalls | None = None
    breakdown: Breakdown | None = None
    delivered: Delivered | None = None
    queueing: Queueing | None = None
    waits: Waits | None = None
    sustained: Sustained | None = None


def measure(evidence: TrialEvidence, queueing: Queueing | None = None) -> Measurement:
    """Compute every number of a trial from its evidence; pure, so that anyone gets the same.

    `queueing` is that of an open loop, whose opening phase follows from it.
    """
    measured = evidence.measured
    timelines: Sequence[Timeline] = tuple(evidence.timelines)
    window = whole_run(measured)
    alone = evidence.plan.concurrency == 1 and evidence.plan.arrivals is None
    return Measurement(
        correctness=count(measured),
        latencies=measure_latencies(measured, timelines),
        rates=measure_rates(measured, timelines),
        concurrency=rebuild(evidence.rows, evidence.plan.concurrency, evidence.ended_ns),
        lateness=measure_lateness(
            measured, evidence.since_empty_ns, evidence.arrival_doubt_ns, evidence.user_stamped_reads
        ),
        server=measure_server(evidence.samples, window, evidence.idle_before, evidence.idle_after),
        whole_run=window,
        steady_window=steady(measured),
        single_user=single_user(measured, evidence.plan.shape) if alone else None,
        delivered=measure_delivered(
            evidence.plan, measured, overrun=evidence.overrun, interrupted=evidence.interrupted
        ),
        queueing=queueing,
        sustained=measure_sustained(evidence),
        waits=measure_waits(evidence),
        stalls=None
        if evidence.plan.arrivals is None
        else measure_stalls(evidence.rows, timelines, evidence.ended_ns),
        breakdown=measure_breakdown(evidence),
    )
