"""Whether the queue of an open loop stayed bounded and its latency steady: what makes its rate a sustained one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct, structs

from nameplate.contract.rates import RateRules
from nameplate.evidence.rows import RequestRow
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.statistics.queue_growth import QueueGrowth, queue_growth
from nameplate.statistics.steady import Thirds, drift_between_thirds, warm_up_end
from nameplate.statistics.trend import Growth, Trend, no_upward_trend, trend
from nameplate.verdict.tolerances import lateness_budget_ns

# The series of outstanding requests: enough points for a trend in dependent data, each the mean of a stretch.
SLICES = 100
# Fewer points have no trend that could be told from chance, and fewer values no thirds.
LEAST_POINTS, LEAST_VALUES = 20, 15
# A rise of the server's queue by this share of its mean, and by so many requests, at this significance.
WAITING_SHARE, WAITING_REQUESTS, WAITING_ALPHA = 0.25, 2.0, 0.01
# Neighbours wait for each other, so latencies are compared as means of so many groups; a mean knows its group's worst.
GROUPS = 60
# Measured false alarms on queues in a steady state at loads up to 0.95: 3% at most of 400 requests, none of 1,000.
DRIFT_SHARE, DRIFT_ALPHA = 0.25, 0.01


class Queueing(Struct, frozen=True, kw_only=True):
    """Hold how an open loop's queue and latency went, from the end of its warm-up to the last arrival.

    `warm_up_s` is what was left out at the beginning, found in the outstanding requests (MSER-5), half at most; it
    `ended` where the data show its end. The steady part begins at `steady_from_ns`; in it `outstanding` tells whether
    what we had in flight grew, `waiting` whether the server's own queue did. Of the TTFT from schedule, as means of
    consecutive arrivals, `latency` tests a rise and `thirds` compares three equal parts; each is null where there is
    too little to tell.
    """

    slice_s: float
    warm_up_s: float
    ended: bool
    steady_from_ns: int
    outstanding: QueueGrowth | None = None
    waiting: Growth | None = None
    latency: Trend | None = None
    thirds: Thirds | None = None

    @property
    def latency_rises(self) -> bool:
        """Tell whether latency rises over the steady part: significant and material."""
        return self.latency is not None and self.latency.drifting

    @property
    def unsteady(self) -> bool:
        """Tell whether latency drifts in any way: it rises, or its thirds differ."""
        return self.latency_rises or (self.thirds is not None and self.thirds.drifting)


def measure_queueing(evidence: TrialEvidence) -> Queueing | None:
    """Judge the queue of an open loop; None for a closed loop, or where nothing was sent for any time.

    None too for a rate that varies: a queue that rises with it is no sign that the server does not keep up, and there
    is no steady state whose thirds could agree.
    """
    plan, measured = evidence.plan, evidence.measured
    sent = [row.sent_ns for row in measured if row.sent_ns is not None]
    arrivals = plan.arrivals
    if arrivals is None or not arrivals.steady or len(sent) < 2 or max(sent) - min(sent) < SLICES:
        return None
    begin, end = min(sent), max(sent)
    slice_ns = (end - begin) // SLICES
    edges = [begin + at * slice_ns for at in range(SLICES + 1)]
    means = _means(InFlight(intervals(measured, evidence.ended_ns)), edges)
    warm_up = warm_up_end(means)
    from_ns = edges[warm_up.values] if warm_up.values else min(row.scheduled_ns for row in measured)
    # Had nothing ever ended, in flight would be what has arrived.
    arrived = _means(InFlight((at_ns, end + 1) for at_ns in sent), edges)
    planned = arrivals.rate * slice_ns / 1e9
    surplus = [mean - planned * (at + 0.5) for at, mean in enumerate(arrived)]
    resolution = plan.rate_level.resolution if plan.rate_level is not None else RateRules().resolution
    waiting = [
        (sample.t_ns, sample.waiting)
        for sample in evidence.samples
        if sample.error is None and sample.waiting is not None and from_ns <= sample.t_ns <= end
    ]
    waits = _waits(measured, from_ns)
    # What the client itself may be late is no drift of the server.
    least_ns = lateness_budget_ns(evidence.contract.slos)
    left = slice(warm_up.values, None)
    points = SLICES - warm_up.values
    return Queueing(
        slice_s=slice_ns / 1e9,
        warm_up_s=warm_up.values * slice_ns / 1e9,
        ended=warm_up.ended,
        steady_from_ns=from_ns,
        outstanding=queue_growth(means[left], surplus[left], planned * points, resolution)
        if points >= LEAST_POINTS and planned * points > 0
        else None,
        waiting=_growth([float(value) for _, value in waiting], [t_ns / 1e9 for t_ns, _ in waiting]),
        latency=None if waits is None else _rise(waits, least_ns),
        thirds=None if waits is None else _thirds(waits, least_ns),
    )


def with_opening(evidence: TrialEvidence, queueing: Queueing) -> TrialEvidence:
    """Return the evidence with an open loop's opening phase: what arrived before its steady part."""
    rows = [
        structs.replace(row, phase="opening")
        if row.phase == "steady" and row.scheduled_ns < queueing.steady_from_ns
        else row
        for row in evidence.rows
    ]
    return structs.replace(evidence, rows=rows)


def _means(flight: InFlight, edges: Sequence[int]) -> list[float]:
    return [flight.mean_between(a, b) or 0.0 for a, b in pairwise(edges)]


def _growth(values: Sequence[float], times: Sequence[float]) -> Growth | None:
    if len(values) < LEAST_POINTS or min(values) == max(values):
        return None
    return no_upward_trend(
        values,
        times,
        alpha=WAITING_ALPHA,
        material_relative=WAITING_SHARE,
        material_absolute=WAITING_REQUESTS,
    )


def _waits(measured: Sequence[RequestRow], from_ns: int) -> list[float] | None:
    """Return the mean TTFT of each group of what was due after the warm-up; None where any never had an output."""
    later = sorted((r for r in measured if r.scheduled_ns >= from_ns), key=lambda row: row.scheduled_ns)
    values = [row.first_output_ns - row.scheduled_ns for row in later if row.first_output_ns is not None]
    if len(values) < LEAST_VALUES or len(values) < len(later):
        return None
    groups = min(GROUPS, len(values))
    bounds = [at * len(values) // groups for at in range(groups + 1)]
    return [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(bounds)]


def _rise(waits: Sequence[float], least_ns: int) -> Trend:
    return trend(
        waits,
        alternative="up",
        alpha=DRIFT_ALPHA,
        material_relative=DRIFT_SHARE,
        material_absolute=least_ns,
    )


def _thirds(waits: Sequence[float], least_ns: int) -> Thirds:
    return drift_between_thirds(
        waits, alpha=DRIFT_ALPHA, material_relative=DRIFT_SHARE, material_absolute=least_ns
    )
