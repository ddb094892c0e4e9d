"""The samples that a trial's distributions are of: the same members by the same rules as in its result."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.latency import e2e_from_schedule, gaps_of, ttft_from_schedule
from nameplate.wire.outcome import Outcome

Value = Callable[[RequestRow], float | None]


class Sample(Struct, frozen=True):
    """Hold the values of one sample in nanoseconds, and how many members never came to one."""

    values: Sequence[float]
    never: int

    @property
    def n(self) -> int:
        return len(self.values) + self.never


class Measured(Struct, frozen=True, kw_only=True):
    """Name one latency: `name` is its field in a result's latencies, `metric` what an SLO calls it."""

    name: str
    metric: str
    title: str
    value: Value
    reached: bool = False


TTFT = Measured(name="ttft", metric="ttft", title="TTFT", value=lambda row: row.ttft_ns, reached=True)
TTFT_FROM_SCHEDULE = Measured(
    name="ttft_from_schedule",
    metric="ttft",
    title="TTFT from schedule",
    value=ttft_from_schedule,
    reached=True,
)
ITL = Measured(name="itl", metric="itl", title="ITL of a request", value=lambda row: row.itl_ns)
TPOT = Measured(name="tpot", metric="tpot", title="TPOT", value=lambda row: row.tpot_ns)
E2E = Measured(name="e2e", metric="e2e", title="E2E", value=lambda row: row.e2e_ns)
E2E_FROM_SCHEDULE = Measured(
    name="e2e_from_schedule", metric="e2e", title="E2E from schedule", value=e2e_from_schedule
)
LONGEST_GAP = Measured(
    name="longest_gap", metric="longest_gap", title="longest gap", value=lambda row: row.longest_gap_ns
)


def shown_of(plan: TrialPlan, judged: Iterable[str]) -> tuple[Measured, ...]:
    """Return the latencies that a trial's page draws: those it is judged by first, from schedule in an open loop.

    Of a load that is cut as planned hardly any request ends, so only what they reached is drawn.
    """
    opened = plan.arrivals is not None
    ttft, e2e = (TTFT_FROM_SCHEDULE, E2E_FROM_SCHEDULE) if opened else (TTFT, E2E)
    usual = (ttft,) if plan.cut else (ttft, ITL, e2e)
    asked = set(judged)
    more = tuple(one for one in (TPOT, LONGEST_GAP) if one.metric in asked)
    return tuple(sorted((*usual, *more), key=lambda one: one.metric not in asked))


def sample_of(rows: Sequence[RequestRow], measured: Measured) -> Sample:
    """Return a latency of these requests: TTFT of all that reached it, the others of those that ended well.

    The rest never came to a value; an answer that ended well without one (a single token has no ITL) is no member.
    """
    if measured.reached:
        known = [value for row in rows if (value := measured.value(row)) is not None]
        return Sample(known, len(rows) - len(known))
    ok = [row for row in rows if row.outcome == Outcome.ok]
    return Sample([value for row in ok if (value := measured.value(row)) is not None], len(rows) - len(ok))


def chunk_gaps(rows: Sequence[RequestRow], timelines: dict[int, Timeline]) -> Sample:
    """Return the times between consecutive output events of these requests, pooled."""
    pooled = array("q")
    for row in rows:
        if row.index in timelines:
            pooled.extend(gaps_of(timelines[row.index]))
    return Sample(pooled, 0)
