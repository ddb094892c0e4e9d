"""Whether the arrivals of an open loop were delivered as planned: how many, when, and how they were spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.stage import Stage, stages_of
from nameplate.statistics.arrivals import OFF_SHARE, Arrivals, ArrivalTest, gaps_off_plan, judge_arrivals
from nameplate.verdict.tolerances import LATENESS_FLOOR_NS

# An honest plan fails one of the three tests in a third of a million trials; workers that share a seed, or a loop that
# waits, fail by far more.
ALPHA = 1e-6


class Delivered(Struct, frozen=True, kw_only=True):
    """Hold what became of a plan of arrivals; `rate` is requests a second from the stage's begin to the last send.

    `misplaced` requests were due at another time than the plan says, to the nanosecond. `tests` are over the moments at
    which the requests were really sent; null below two requests. Where the planned rate varies they are over those
    moments as the plan counts them, so that one request a unit of time is expected throughout (time rescaling), and
    both rates are the mean ones. Of a recorded trace each gap is held against its own.
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
    stage = stages_of(plan)[-1]
    begins = _begins(stage, measured)
    sent = sorted(row.sent_ns for row in measured if row.sent_ns is not None)
    told = Delivered(
        planned=plan.requests,
        sent=len(sent),
        planned_rate=arrivals.rate if arrivals.steady else _mean_rate(plan, stage),
        overrun=overrun,
        interrupted=interrupted,
        misplaced=len(measured) - sum(at_once for _, at_once in begins.values()),
    )
    if len(sent) < 2:
        return told
    first, last = sent[0], sent[-1]
    if arrivals.trace is not None:
        tests = _of_trace(stage, measured, begins, arrivals.rate)
    elif arrivals.steady:
        tests = _judged(arrivals, measured, sent, arrivals.rate, 1.0)
    else:
        tests = _rescaled(arrivals, stage, measured, begins)
    return structs.replace(
        told, rate=(len(sent) - 1) * 1e9 / (last - first) if last > first else None, tests=tests
    )


def _begins(stage: Stage, measured: Sequence[RequestRow]) -> dict[int, tuple[int, int]]:
    """Return of each worker when its stage began, by its requests' due times, and how many of them agree on it."""
    begins: dict[int, Counter[int]] = {}
    for row in sorted(measured, key=lambda row: row.index):
        due_ns = stage.schedule.due_ns(row.index - stage.first_index)
        own = begins.setdefault(row.worker, Counter())
        if due_ns is not None:
            own[row.scheduled_ns - due_ns] += 1
    found = {worker: own.most_common(1) for worker, own in begins.items()}
    return {worker: most[0] for worker, most in found.items() if most}


def stage_begin(plan: TrialPlan, measured: Sequence[RequestRow]) -> int | None:
    """Return when the measured stage of an open loop began, on the first of its workers; None where nothing was due."""
    begins = _begins(stages_of(plan)[-1], measured)
    return min((begin for begin, _ in begins.values()), default=None)


def _mean_rate(plan: TrialPlan, stage: Stage) -> float:
    """Return the mean rate of the planned requests; 0 where all are due at once."""
    first = stage.schedule.due_ns(0) or 0
    last = stage.schedule.due_ns(plan.requests - 1) if plan.requests > 1 else None
    return (plan.requests - 1) * 1e9 / (last - first) if last is not None and last > first else 0.0


def _judged(
    arrivals: ArrivalPlan,
    measured: Sequence[RequestRow],
    times: Sequence[float],
    rate: float,
    scale: float,
) -> Arrivals:
    """Test times whose unit is `scale` ns against a process of a constant rate, in requests per 10^9 such units."""
    assert arrivals.kind != "trace"
    first, last = times[0], times[-1]
    # A gap may be wrong by what the client was late, which has its own gate, and no more.
    late = max(row.sent_ns - row.scheduled_ns for row in measured if row.sent_ns is not None)
    return judge_arrivals(
        times,
        first,
        # A stretch without any length would have no tests, whatever was sent in it.
        max(last, first + 1),
        rate / 1e9,
        arrivals.kind,
        shape=arrivals.burstiness,
        tolerance=LATENESS_FLOOR_NS / scale,
        slack=max(0, min(late, LATENESS_FLOOR_NS)) / scale,
        alpha=ALPHA,
    )


def _rescaled(
    arrivals: ArrivalPlan,
    stage: Stage,
    measured: Sequence[RequestRow],
    begins: Mapping[int, tuple[int, int]],
) -> Arrivals:
    """Test the arrivals of a rate that varies, as they stand among those expected: one a second is the plan then.

    What a send may be late is worth most where the rate is highest; so much is allowed everywhere.
    """
    assert isinstance(stage.schedule, OpenLoop)
    times = []
    for row in measured:
        if row.sent_ns is not None and row.worker in begins:
            expected = stage.schedule.expected(row.sent_ns - begins[row.worker][0])
            assert expected is not None
            times.append(float(expected) * 1e9)
    highest = max(max(part.from_rate, part.to_rate) for part in arrivals.parts)
    return _judged(arrivals, measured, sorted(times), 1.0, 1 / highest)


def _of_trace(
    stage: Stage, measured: Sequence[RequestRow], begins: Mapping[int, tuple[int, int]], rate: float
) -> Arrivals | None:
    """Hold the sends of a trace against its own times: the gaps, and that none is left behind at the end."""
    placed = []
    for row in measured:
        due_ns = stage.schedule.due_ns(row.index - stage.first_index)
        if row.sent_ns is not None and due_ns is not None and row.worker in begins:
            placed.append((due_ns, row.sent_ns))
    placed.sort()
    if len(placed) < 2:
        return None
    due = [one for one, _ in placed]
    sent = [one for _, one in placed]
    planned = [after - before for before, after in pairwise(due)]
    gaps = [after - before for before, after in pairwise(sent)]
    end_ns = min(begin for begin, _ in begins.values()) + due[-1] + 2 * LATENESS_FLOOR_NS
    in_time = sum(one <= end_ns for one in sent)
    may_lack = max(1.0, OFF_SHARE * len(sent))
    count = ArrivalTest(
        test="count",
        method="sent by the time at which the last is due, all but few",
        process="trace",
        n=len(sent),
        statistic=float(in_time),
        expected=float(len(sent)),
        low=len(sent) - may_lack,
        high=None,
        p_value=None,
        alpha=None,
        held=len(sent) - in_time <= may_lack,
    )
    deviations = [gap - plan for gap, plan in zip(gaps, planned, strict=True)]
    return Arrivals(
        process="trace",
        rate=rate / 1e9,
        shape=1.0,
        start=sent[0],
        end=sent[-1],
        tests=(count, gaps_off_plan(deviations, "trace", tolerance=LATENESS_FLOOR_NS)),
    )
