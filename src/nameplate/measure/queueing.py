"""Whether the queue of an open loop stayed bounded and its latency steady: what makes its rate a sustained one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.statistics.steady import Thirds, drift_between_thirds, warm_up_end
from nameplate.statistics.trend import Growth, no_upward_trend

# The series of outstanding requests: enough points for a trend in dependent data, each the mean of a stretch.
SLICES = 100
# Fewer points have no trend that could be told from chance, and fewer values no thirds.
LEAST_POINTS, LEAST_VALUES = 20, 15
# A rise of this share of the mean, and of so many requests at least, is one that a longer run would not survive.
MATERIAL_SHARE, MATERIAL_REQUESTS = 0.25, 2.0
DRIFT_SHARE = 0.25


class Queueing(Struct, frozen=True, kw_only=True):
    """Hold how an open loop's queue and latency went, from the end of its warm-up to the last arrival.

    `warm_up_s` is what was left out at the beginning, found in the outstanding requests (MSER-5), half at most; it
    `ended` where the data show its end. `outstanding` and `waiting` are tests against an upward trend of what we had
    in flight and of the server's own queue, `thirds` compares the TTFT from schedule of three equal parts; each is null
    where there is too little to tell.
    """

    slice_s: float
    warm_up_s: float
    ended: bool
    outstanding: Growth | None = None
    waiting: Growth | None = None
    thirds: Thirds | None = None


def measure_queueing(evidence: TrialEvidence) -> Queueing | None:
    """Judge the queue of an open loop; None for a closed loop, or where nothing was sent for any time.

    None too for a rate that varies: a queue that rises with it is no sign that the server does not keep up, and there
    is no steady state whose thirds could agree.
    """
    measured = evidence.measured
    sent = [row.sent_ns for row in measured if row.sent_ns is not None]
    arrivals = evidence.plan.arrivals
    if arrivals is None or not arrivals.steady or len(sent) < 2 or max(sent) - min(sent) < SLICES:
        return None
    begin, end = min(sent), max(sent)
    slice_ns = (end - begin) // SLICES
    flight = InFlight(intervals(measured, evidence.ended_ns))
    means = [
        flight.mean_between(begin + at * slice_ns, begin + (at + 1) * slice_ns) or 0.0 for at in range(SLICES)
    ]
    warm_up = warm_up_end(means)
    from_ns = begin + warm_up.values * slice_ns
    waiting = [
        (sample.t_ns, sample.waiting)
        for sample in evidence.samples
        if sample.error is None and sample.waiting is not None and from_ns <= sample.t_ns <= end
    ]
    return Queueing(
        slice_s=slice_ns / 1e9,
        warm_up_s=warm_up.values * slice_ns / 1e9,
        ended=warm_up.ended,
        outstanding=_growth(means[warm_up.values :]),
        waiting=_growth([float(value) for _, value in waiting], [t_ns / 1e9 for t_ns, _ in waiting]),
        thirds=_thirds(measured, from_ns),
    )


def _growth(values: Sequence[float], times: Sequence[float] | None = None) -> Growth | None:
    if len(values) < LEAST_POINTS or min(values) == max(values):
        return None
    return no_upward_trend(
        values, times, material_relative=MATERIAL_SHARE, material_absolute=MATERIAL_REQUESTS
    )


def _thirds(measured: Sequence[RequestRow], from_ns: int) -> Thirds | None:
    """Compare thirds of the requests that were due after the warm-up; None where any of them never had an output."""
    later = sorted((r for r in measured if r.scheduled_ns >= from_ns), key=lambda row: row.scheduled_ns)
    values = [row.first_output_ns - row.scheduled_ns for row in later if row.first_output_ns is not None]
    if len(values) < LEAST_VALUES or len(values) < len(later):
        return None
    return drift_between_thirds(values, material_relative=DRIFT_SHARE)
