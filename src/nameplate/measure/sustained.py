"""What a sustained rate is worth: its goodput, and how many requests it keeps in flight."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from nameplate.contract.slo import Slo
from nameplate.evidence.rows import RequestRow
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.measure.samples import bounds_of, from_schedule
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.wire.outcome import Outcome


class Sustained(Struct, frozen=True, kw_only=True):
    """Hold what an open loop delivered over its arrivals, from the first sent to the last.

    `met` of the `arrived` requests met every SLO, failed ones none; `goodput` is that a second, null without an SLO.
    `outstanding_mean` and `outstanding_max` are what we had in flight; `little` is the arrivals a second times the mean
    E2E latency, which by Little's law is the mean in a steady state; null where a request had no end.
    """

    arrived: int
    met: int | None
    goodput: float | None
    outstanding_mean: float | None
    outstanding_max: int
    little: float | None


def measure_sustained(evidence: TrialEvidence) -> Sustained | None:
    """Measure an open loop; None for a closed one, or where fewer than two requests were sent."""
    measured = evidence.measured
    sent = [row.sent_ns for row in measured if row.sent_ns is not None]
    if evidence.plan.arrivals is None or len(sent) < 2 or max(sent) == min(sent):
        return None
    begin, end = min(sent), max(sent)
    flight = InFlight(intervals(measured, evidence.ended_ns))
    span_s = (end - begin) / 1e9
    slos = evidence.contract.slos
    met = sum(met_all(row, slos, evidence.ended_ns) for row in from_schedule(measured)) if slos else None
    return Sustained(
        arrived=len(measured),
        met=met,
        goodput=None if met is None else met / len(measured) * (len(sent) - 1) / span_s,
        outstanding_mean=flight.mean_between(begin, end),
        outstanding_max=flight.highest,
        little=_little(measured, span_s),
    )


def met_all(row: RequestRow, slos: Sequence[Slo], until_ns: int) -> bool:
    """Tell whether a request ended well and met every latency SLO; one still open is watched until `until_ns`."""
    if row.outcome != Outcome.ok:
        return False
    for slo in slos:
        bounds = bounds_of(row, slo.metric, until_ns) if slo.limit_ns is not None else None
        if bounds is not None and slo.limit_ns is not None and not bounds.worst < slo.limit_ns:
            return False
    return True


def _little(measured: Sequence[RequestRow], span_s: float) -> float | None:
    lasted = [
        (row.end_ns - row.sent_ns) / 1e9
        for row in measured
        if row.sent_ns is not None and row.end_ns is not None
    ]
    if len(lasted) < len(measured):
        return None
    return (len(lasted) - 1) / span_s * math.fsum(lasted) / len(lasted)
