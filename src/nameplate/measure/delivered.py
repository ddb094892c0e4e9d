"""Whether the arrivals of an open loop were delivered as planned: how many, when, and how they were spread."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.statistics.arrivals import Arrivals, judge_arrivals
from nameplate.verdict.tolerances import LATENESS_FLOOR_NS

# An honest plan fails one of the three tests in a third of a million trials; workers that share a seed, or a loop that
# waits, fail by far more.
ALPHA = 1e-6


class Delivered(Struct, frozen=True, kw_only=True):
    """Hold what became of a plan of arrivals; `rate` is requests a second from the stage's begin to the last send.

    `tests` are over the moments at which the requests were really sent; null below two requests.
    """

    planned: int
    sent: int
    planned_rate: float
    rate: float | None = None
    overrun: bool = False
    tests: Arrivals | None = None

    @property
    def fault(self) -> str:
        """Say what was not delivered; empty where everything was, or the load was ended for the server's sake."""
        if self.sent < self.planned and not self.overrun:
            return f"{self.sent} of {self.planned} planned requests were sent"
        failed = (
            [test.test for test in self.tests.tests if test.held is False] if self.tests is not None else []
        )
        return f"the {' and the '.join(failed)} of the arrivals are not those of the plan" if failed else ""


def measure_delivered(plan: TrialPlan, measured: Sequence[RequestRow], *, overrun: bool) -> Delivered | None:
    """Test the delivered arrivals of an open loop; None for a closed one."""
    arrivals = plan.arrivals
    if arrivals is None:
        return None
    sent = sorted(row.sent_ns for row in measured if row.sent_ns is not None)
    told = Delivered(planned=plan.requests, sent=len(sent), planned_rate=arrivals.rate, overrun=overrun)
    if len(sent) < 2 or sent[-1] <= sent[0]:
        return told
    first, last = sent[0], sent[-1]
    return Delivered(
        planned=told.planned,
        sent=told.sent,
        planned_rate=told.planned_rate,
        rate=(len(sent) - 1) * 1e9 / (last - first),
        overrun=overrun,
        tests=judge_arrivals(
            sent,
            first,
            last,
            arrivals.rate / 1e9,
            arrivals.kind,
            shape=arrivals.burstiness,
            tolerance=LATENESS_FLOOR_NS,
            alpha=ALPHA,
        ),
    )
