"""A trial over time: our requests in flight, rebuilt from the rows, beside what the server says of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import htpy as h

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.measure.concurrency import InFlight, intervals
from nameplate.pages.chart import figure
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.timeline import Axis, Point, Trace, thinned, timeline
from nameplate.pages.trial.choosing import start_ns
from nameplate.pages.trial.rows import TrialRows
from nameplate.report import numbers

# As many stretches of time, each with the mean, the least and the most in flight.
_STRETCHES = 240


def course(read: TrialRows, *, opened: bool) -> h.Node:
    """Return requests outstanding, running and waiting, and the KV pool, over the measured time; or nothing."""
    loaded = [row for row in read.rows if row.phase != "warmup" and row.sent_ns is not None]
    if not loaded:
        return None
    begin_ns = min(start_ns(row, opened) for row in loaded)
    end_ns = max(row.end_ns or read.until_ns for row in loaded)
    if end_ns <= begin_ns:
        return None
    shared = Axis(end_s=(end_ns - begin_ns) / 1e9, since="since the first request")
    ours = Trace("in flight, ours", (_in_flight(loaded, read.until_ns, begin_ns, end_ns),))
    seen = [sample for sample in read.samples if begin_ns <= sample.t_ns <= end_ns]
    gauges = [
        Trace(name, (thinned(_sampled(seen, begin_ns, of)),))
        for name, of in (("running", _running), ("waiting", _waiting))
        if any(of(sample) is not None for sample in seen)
    ]
    panels = [
        timeline(
            shared,
            [ours, *gauges],
            "requests",
            "Requests in flight by our records, and running and waiting by the server's own gauges, over time",
            colours=("ink", "s1", "s2"),
            log=False,
        )
    ]
    if any(_kv(sample) is not None for sample in seen):
        pool = Trace("KV", (thinned(_sampled(seen, begin_ns, _kv)),))
        panels.append(
            timeline(
                shared,
                [pool],
                "KV pool in use",
                "Share of the server's KV pool that is in use, over time",
                per=0.01,
                unit="%",
                colours=("s3",),
                log=False,
            )
        )
    said = "" if seen else " The server has no metrics page, so what it says of itself is not known."
    return figure(
        "In flight, running and waiting over time",
        "Ours are rebuilt from the records, as means over stretches of time with the least and the most shaded; the "
        f"server's are its own gauges, as they were sampled.{said}",
        panels,
        _table([ours, *gauges], shared),
        wide=True,
    )


def _in_flight(rows: Sequence[RequestRow], until_ns: int, begin_ns: int, end_ns: int) -> tuple[Point, ...]:
    flight = InFlight(intervals(rows, until_ns))
    found = []
    edges = [begin_ns + (end_ns - begin_ns) * at // _STRETCHES for at in range(_STRETCHES + 1)]
    for low, high in pairwise(edges):
        parts = list(flight.segments(low, high))
        length = sum(part for part, _ in parts)
        if length:
            levels = [level for _, level in parts]
            mean = sum(part * level for part, level in parts) / length
            found.append(Point((low - begin_ns) / 1e9, mean, min(levels), max(levels)))
    return tuple(found)


def _sampled(
    samples: Sequence[ServerSample], begin_ns: int, of: Callable[[ServerSample], float | None]
) -> list[Point]:
    return [Point((sample.t_ns - begin_ns) / 1e9, of(sample)) for sample in samples]


def _running(sample: ServerSample) -> float | None:
    return sample.running


def _waiting(sample: ServerSample) -> float | None:
    return sample.waiting


def _kv(sample: ServerSample) -> float | None:
    return sample.kv_usage_mean


def _table(traces: Sequence[Trace], shared: Axis) -> h.Element:
    rows: list[list[Cell | str]] = [
        [
            trace.name,
            Cell(numbers.duration(point.t_s * 1e9), point.t_s),
            Cell(numbers.count(point.value), point.value),
            Cell(numbers.count(point.low), point.low),
            Cell(numbers.count(point.high), point.high),
        ]
        for trace in traces
        for point in trace.points[:: max(1, len(trace.points) // 40)]
    ]
    columns = (
        Column("series", kind="text"),
        Column("from", "from, s since the first request"),
        Column("value"),
        Column("least"),
        Column("most"),
    )
    return table(
        columns,
        rows,
        "Some of the points of this figure",
        note=f"Over {numbers.duration(shared.end_s * 1e9)}.",
    )
