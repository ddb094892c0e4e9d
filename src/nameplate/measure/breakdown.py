"""The latencies of a load's parts: the classes of a trace, the steps of a rate, the tenths of a ramp."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.quantity import format_limit
from nameplate.evidence.rows import RequestRow
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.measure.delivered import stage_begin
from nameplate.measure.latency import e2e_from_schedule, ttft_from_schedule
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.statistics.percentile import Distribution, summarise
from nameplate.wire.outcome import Outcome

Of = Literal["class", "step", "ramp"]

RAMP_PARTS = 10
# A trace may have a thousand classes, and a rate as many steps.
MOST_PARTS = 1000


class LoadPart(Struct, frozen=True, kw_only=True):
    """Hold one part: its requests, by when they were due, and their latencies in nanoseconds.

    TTFT and E2E count from schedule. `outstanding` is the mean number in flight over the time in which the part's
    requests were due, null for a class, whose requests come all the time.
    """

    name: str
    requests: int
    ok: int
    ttft: Distribution
    e2e: Distribution
    itl: Distribution
    outstanding: float | None = None


class Breakdown(Struct, frozen=True):
    """Hold the parts of a load; `of` says what they are. Of more than `MOST_PARTS` the first ones."""

    of: Of
    parts: tuple[LoadPart, ...]


def measure_breakdown(evidence: TrialEvidence) -> Breakdown | None:
    """Measure the parts of an open loop; None for one rate throughout, or a trace of a single class."""
    arrivals, measured = evidence.plan.arrivals, evidence.measured
    if arrivals is None or arrivals.steady or not measured:
        return None
    if arrivals.trace is not None:
        return _by_class(measured)
    begin_ns = stage_begin(evidence.plan, measured)
    if begin_ns is None:
        return None
    flight = InFlight(intervals(measured, evidence.ended_ns))
    ordered = sorted(measured, key=lambda row: row.scheduled_ns)
    due = [row.scheduled_ns for row in ordered]
    found = []
    for name, from_ns, to_ns in _stretches(arrivals):
        low, high = begin_ns + from_ns, begin_ns + to_ns
        rows = ordered[bisect_left(due, low) : bisect_left(due, high)]
        found.append(_part(name, rows, flight.mean_between(low, high)))
    return Breakdown("step" if arrivals.steps else "ramp", tuple(found))


def _by_class(measured: Sequence[RequestRow]) -> Breakdown | None:
    by_class: dict[str, list[RequestRow]] = {}
    for row in measured:
        by_class.setdefault(row.class_, []).append(row)
    if len(by_class) < 2:
        return None
    names = sorted(by_class, key=lambda name: (-len(by_class[name]), name))[:MOST_PARTS]
    return Breakdown("class", tuple(_part(name, by_class[name]) for name in names))


def _stretches(arrivals: ArrivalPlan) -> Iterable[tuple[str, int, int]]:
    """Yield (name, begin, end) of each part of a rate that varies, in ns from the beginning."""
    at = 0
    for step in arrivals.steps[:MOST_PARTS]:
        yield f"{step.to_rate:g} req/s for {format_limit(step.over_ns)}", at, at + step.over_ns
        at += step.over_ns
    ramp = arrivals.ramp
    if ramp is not None:
        rise = ramp.to_rate - ramp.from_rate
        for part in range(RAMP_PARTS):
            low, high = (ramp.from_rate + rise * edge / RAMP_PARTS for edge in (part, part + 1))
            name = f"{low:.4g} to {high:.4g} req/s"
            yield name, ramp.over_ns * part // RAMP_PARTS, ramp.over_ns * (part + 1) // RAMP_PARTS


def _part(name: str, rows: Sequence[RequestRow], outstanding: float | None = None) -> LoadPart:
    ok = [row for row in rows if row.outcome == Outcome.ok]
    cut = len(rows) - len(ok)
    ttfts = [value for row in rows if (value := ttft_from_schedule(row)) is not None]
    return LoadPart(
        name=name,
        requests=len(rows),
        ok=len(ok),
        ttft=summarise(ttfts, censored=len(rows) - len(ttfts)),
        e2e=summarise((v for row in ok if (v := e2e_from_schedule(row)) is not None), censored=cut),
        itl=summarise((itl for row in ok if (itl := row.itl_ns) is not None), censored=cut),
        outstanding=outstanding,
    )
