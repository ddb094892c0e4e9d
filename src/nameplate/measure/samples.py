"""The values that SLOs judge, one a request, with what is known of requests that did not end well.

What became of a request decides its bounds:

- ok: the value itself; a request without one (a single token has no ITL) is no member of the sample;
- cut by us (cancelled, unfinished, a deadline): at best what was waited so far, at worst infinite;
- failed by the server: what it reached before it failed is a value, what it did not reach never comes: infinite.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from nameplate.contract.slo import Metric, Slo
from nameplate.evidence.rows import RequestRow
from nameplate.statistics.censoring import Bounds
from nameplate.verdict.trial import PhaseValues
from nameplate.wire.outcome import Outcome

_CUT = (Outcome.cancelled.value, Outcome.unfinished.value)


def cut_by_us(row: RequestRow) -> bool:
    """Tell whether our own client ended the request: its value is open, not infinite."""
    return row.outcome in _CUT or row.outcome.startswith("timed_out_")


def bounds_of(row: RequestRow, metric: Metric, until_ns: int) -> Bounds | None:
    """Return one request's bounds for a metric; None where an ok request has no such value.

    `until_ns` is how long an open request was watched where its row has no end.
    """
    ok = row.outcome == Outcome.ok
    if metric == "error_rate":
        if ok:
            return Bounds.exactly(0.0)
        return Bounds(0.0, 1.0) if row.outcome in _CUT else Bounds.exactly(1.0)
    value = row.ttft_ns if metric == "ttft" else _whole_value(row, metric) if ok else None
    if value is not None:
        return Bounds.exactly(value)
    if ok and metric != "ttft":
        return None
    if not cut_by_us(row):
        return Bounds.never()
    return Bounds.at_least(_waited(row, metric, until_ns))


def from_schedule(rows: Sequence[RequestRow]) -> list[RequestRow]:
    """Return rows whose latencies begin when the plan wanted them sent: what an open loop is judged by.

    One that was due and never sent has waited as well.
    """
    return [structs.replace(row, sent_ns=row.scheduled_ns) for row in rows]


def slo_values(slo: Slo, rows: Sequence[RequestRow], planned: int, until_ns: int) -> PhaseValues:
    """Collect an SLO's values over the measured rows; planned requests without a row are missing."""
    opening: list[Bounds] = []
    steady: list[Bounds] = []
    measured = 0
    for row in rows:
        if not row.measured:
            continue
        measured += 1
        bounds = bounds_of(row, slo.metric, until_ns)
        if bounds is not None:
            (opening if row.phase == "opening" else steady).append(bounds)
    return PhaseValues(tuple(opening), tuple(steady), max(0, planned - measured))


def lower_bounds(
    slos: Sequence[Slo], rows: Sequence[RequestRow], until_ns: int
) -> dict[str, tuple[float, ...]]:
    """Return what each started request's values are at least, by metric: the input of `failure_certain`."""
    found: dict[str, tuple[float, ...]] = {}
    for slo in slos:
        if slo.metric != "error_rate":
            values = slo_values(slo, rows, 0, until_ns)
            found[slo.metric] = tuple(bounds.best for bounds in values.opening + values.steady)
    return found


def _whole_value(row: RequestRow, metric: Metric) -> float | None:
    if metric == "itl":
        return row.itl_ns
    if metric == "tpot":
        return row.tpot_ns
    if metric == "longest_gap":
        return row.longest_gap_ns
    return row.e2e_ns


def _waited(row: RequestRow, metric: Metric, until_ns: int) -> float:
    if row.sent_ns is None:
        return 0.0
    until = row.end_ns if row.end_ns is not None else until_ns
    if metric in ("ttft", "e2e"):
        return until - row.sent_ns
    if row.first_output_ns is None or row.last_output_ns is None:
        return 0.0
    if metric == "longest_gap":
        return row.longest_gap_ns or 0
    # The tokens to come can only make the divisor larger, up to what was asked for.
    first_tokens = (row.first_event_tokens or 1) if metric == "itl" else 1
    later = row.asked_output_tokens - first_tokens
    return (row.last_output_ns - row.first_output_ns) / later if later > 0 else 0.0
