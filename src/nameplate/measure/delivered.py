"""Whether the arrivals of an open loop were delivered as planned: how many, when, and how they were spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, structs

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.schedule.stage import stages_of
from nameplate.statistics.arrivals import Arrivals, judge_arrivals
from nameplate.verdict.tolerances import LATENESS_FLOOR_NS

# An honest plan fails one of the three tests in a third of a million trials; workers that share a seed, or a loop that
# waits, fail by far more.
ALPHA = 1e-6


class Delivered(Struct, frozen=True, kw_only=True):
    """Hold what became of a plan of arrivals; `rate` is requests a second from the stage's begin to the last send.

    `misplaced` requests were due at another time than the plan says, to the nanosecond. `tests` are over the moments at
    which the requests were really sent; null below two requests.
    """

    planned: int
    sent: int
    planned_rate: float
    rate: float | None = None
    overrun: bool = False
    interrupted: bool = False
    misplaced: int = 0
    tests: Arrivals | None = None

    @property
    def fault(self) -> str:
        """Say what was not delivered; empty where everything was, up to where the server or a person ended the load."""
        if self.sent < self.planned and not self.overrun and not self.interrupted:
            return f"{self.sent} of {self.planned} planned requests were sent"
        if self.misplaced:
            return f"{self.misplaced} of {self.planned} requests were not due when the plan has them"
        failed = (
            [test.test for test in self.tests.tests if test.held is False] if self.tests is not None else []
        )
        return f"the {' and the '.join(failed)} of the arrivals are not those of the plan" if failed else ""


def measure_delivered(
    plan: TrialPlan, measured: Sequence[RequestRow], *, overrun: bool, interrupted: bool = False
) -> Delivered | None:
    """Test the delivered arrivals of an open loop; None for a closed one."""
    arrivals = plan.arrivals
    if arrivals is None:
        return None
    sent = sorted(row.sent_ns for row in measured if row.sent_ns is not None)
    told = Delivered(
        planned=plan.requests,
        sent=len(sent),
        planned_rate=arrivals.rate,
        overrun=overrun,
        interrupted=interrupted,
        misplaced=_misplaced(plan, measured),
    )
    if len(sent) < 2:
        return told
    first, last = sent[0], sent[-1]
    # A gap may be wrong by what the client was late, which has its own gate, and no more.
    late = max(row.sent_ns - row.scheduled_ns for row in measured if row.sent_ns is not None)
    return structs.replace(
        told,
        rate=(len(sent) - 1) * 1e9 / (last - first) if last > first else None,
        tests=judge_arrivals(
            sent,
            first,
            # A stretch without any length would have no tests, whatever was sent in it.
            max(last, first + 1),
            arrivals.rate / 1e9,
            arrivals.kind,
            shape=arrivals.burstiness,
            tolerance=LATENESS_FLOOR_NS,
            slack=max(0, min(late, LATENESS_FLOOR_NS)),
            alpha=ALPHA,
        ),
    )


def _misplaced(plan: TrialPlan, measured: Sequence[RequestRow]) -> int:
    """Count the requests that were due at another distance from their worker's begin than the plan has."""
    stage = stages_of(plan)[-1]
    begins: dict[int, Counter[int | None]] = {}
    for row in sorted(measured, key=lambda row: row.index):
        due_ns = stage.schedule.due_ns(row.index - stage.first_index)
        begins.setdefault(row.worker, Counter())[None if due_ns is None else row.scheduled_ns - due_ns] += 1
    return sum(
        each.total() - max((count for begin, count in each.items() if begin is not None), default=0)
        for each in begins.values()
    )
