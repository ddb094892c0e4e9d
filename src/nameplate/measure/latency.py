"""Latency distributions of a trial, for the whole sample and by the phase in which requests were sent."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.statistics.percentile import Distribution, summarise
from nameplate.wire.outcome import Outcome

Value = Callable[[RequestRow], float | None]


class Latencies(Struct, frozen=True, kw_only=True):
    """Hold the distributions of one sample of requests; nanoseconds, but `per_user` in tokens a second.

    A request that did not come to a value counts as censored. `chunk_gaps` pools the gaps of all requests, the
    others have one value a request. Those from schedule count from when a request was due, the headline of an open
    loop; all others from when it was sent. `per_user` is 1 / ITL of each request.
    """

    requests: int
    ttft: Distribution
    ttft_from_schedule: Distribution
    first_answer: Distribution
    itl: Distribution
    tpot: Distribution
    e2e: Distribution
    e2e_from_schedule: Distribution | None = None
    longest_gap: Distribution
    chunk_gaps: Distribution
    per_user: Distribution


class PhaseLatencies(Struct, frozen=True):
    """Hold the latencies of the whole measured sample and of its phases, side by side."""

    whole: Latencies
    opening: Latencies
    steady: Latencies


def measure_latencies(measured: Sequence[RequestRow], timelines: Sequence[Timeline]) -> PhaseLatencies:
    """Measure all distributions; gaps come from the timelines, whose requests need not all be measured."""
    gaps = {timeline.index: gaps_of(timeline) for timeline in timelines}
    return PhaseLatencies(
        _latencies(measured, gaps),
        _latencies([row for row in measured if row.phase == "opening"], gaps),
        _latencies([row for row in measured if row.phase == "steady"], gaps),
    )


def gaps_of(timeline: Timeline) -> array[int]:
    """Return the times between consecutive output events; several events in one read are zero apart."""
    times = timeline.times_ns
    return array("q", map(int.__sub__, times[1:], times))


def _latencies(rows: Sequence[RequestRow], gaps: dict[int, array[int]]) -> Latencies:
    pooled = array("q")
    for row in rows:
        pooled.extend(gaps.get(row.index, ()))
    ok = [row for row in rows if row.outcome == Outcome.ok]
    cut = len(rows) - len(ok)
    itls = [value for row in ok if (value := row.itl_ns) is not None]
    # A request that never finished gave its user nothing one could call a rate: it counts as zero.
    rates = [1e9 / value for value in itls if value > 0] + [0.0] * cut
    return Latencies(
        requests=len(rows),
        ttft=_reached(rows, lambda row: row.ttft_ns),
        ttft_from_schedule=_reached(rows, ttft_from_schedule),
        first_answer=_reached_where_any(rows, _first_answer),
        itl=summarise(itls, censored=cut),
        tpot=_of_ok(ok, cut, lambda row: row.tpot_ns),
        e2e=_of_ok(ok, cut, lambda row: row.e2e_ns),
        e2e_from_schedule=_of_ok(ok, cut, e2e_from_schedule),
        longest_gap=_of_ok(ok, cut, lambda row: row.longest_gap_ns),
        chunk_gaps=summarise(pooled),
        per_user=summarise(rates, "1/s"),
    )


def _reached(rows: Sequence[RequestRow], value: Value) -> Distribution:
    """Summarise a value that a request may reach whatever becomes of it later; without it, it is censored."""
    known = [v for row in rows if (v := value(row)) is not None]
    return summarise(known, censored=len(rows) - len(known))


def _reached_where_any(rows: Sequence[RequestRow], value: Value) -> Distribution:
    """Summarise like `_reached`, but an ok request without the value is no member: it may never have had one."""
    known = [v for row in rows if (v := value(row)) is not None]
    missing = sum(value(row) is None and row.outcome != Outcome.ok for row in rows)
    return summarise(known, censored=missing)


def _of_ok(ok: Sequence[RequestRow], cut: int, value: Value) -> Distribution:
    return summarise((v for row in ok if (v := value(row)) is not None), censored=cut)


def ttft_from_schedule(row: RequestRow) -> int | None:
    """Return first output - scheduled."""
    return None if row.first_output_ns is None else row.first_output_ns - row.scheduled_ns


def e2e_from_schedule(row: RequestRow) -> int | None:
    """Return last output - scheduled."""
    return None if row.last_output_ns is None else row.last_output_ns - row.scheduled_ns


def _first_answer(row: RequestRow) -> int | None:
    if row.first_answer_ns is None or row.sent_ns is None:
        return None
    return row.first_answer_ns - row.sent_ns
