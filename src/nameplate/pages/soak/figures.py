"""The figures of a soak: throughput above latency on one axis; below them what server and client held meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.contract.contract import Contract
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.window import WindowResult
from nameplate.pages.chart import Panel, figure
from nameplate.pages.scale import time_scale
from nameplate.pages.soak.answer import is_open
from nameplate.pages.soak.course import (
    Shown,
    axis_of,
    course_trace,
    courses_named,
    window_trace,
    windows_shown,
)
from nameplate.pages.soak.trends import trends_of
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.timeline import MOST_POINTS, Axis, Trace, timeline
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_words import quantity
from nameplate.statistics.percentile import Distribution

_REQUESTS = (
    ("outstanding", "outstanding (client)"),
    ("running", "running (server)"),
    ("waiting", "waiting (server)"),
)
_CLIENT = (
    ("client_memory", "client memory", "MiB", 2.0**20),
    ("client_send_lag", "largest send lag", "ms", 1e6),
    ("client_backlog", "unparsed pieces of answers", "", 1.0),
    ("client_queued_blocks", "evidence waiting for the disk, blocks", "", 1.0),
)
# From this share on the KV pool is drawn against its whole.
_FULL = 0.2
_TABLED = (*_REQUESTS, ("kv_usage", "KV use (server)"), ("preemptions_per_s", "preemptions (server)"))


def together_figure(contract: Contract, result: SoakResult) -> h.Node:
    """Return output per window above TTFT per window, on the same time axis."""
    shown = windows_shown(result)
    if not shown.windows:
        return None
    shared = axis_of(result)
    output = window_trace(result, shown, "output", lambda window: window.output_tokens_per_s)
    opened = is_open(contract)
    name = "TTFT from schedule" if opened else "TTFT"

    def ttft(window: WindowResult) -> Distribution:
        return window.ttft_from_schedule if opened else window.ttft

    waits = (
        window_trace(result, shown, "p50", lambda window: ttft(window).p50),
        window_trace(result, shown, "p95", lambda window: ttft(window).p95),
    )
    scale = time_scale(point.value for trace in waits for point in trace.points)
    panels: list[Panel] = []
    if _has_values(output):
        panels.append(
            timeline(
                shared,
                (output,),
                "output",
                "Output tokens a second that arrived in each window",
                unit="tok/s",
                trends=trends_of(result, "output_tokens_per_s", "s1"),
                named=True,
                height=170,
            )
        )
    if any(map(_has_values, waits)):
        panels.append(
            timeline(
                shared,
                waits,
                name,
                f"{name} p50 and p95 of each window",
                per=scale.ns,
                unit=scale.unit,
                colours=("s2", "s5"),
                trends=(*trends_of(result, "ttft_p50", "s2"), *trends_of(result, "ttft_p95", "s5")),
                height=170,
            )
        )
    if not panels:
        return None
    length = numbers.rough(result.segments[0].window_ns / 1e9)
    return figure(
        f"Throughput and latency together, over {numbers.count(shown.whole, 'window')} of {length}",
        "Both panels have one time axis and each its own scale. Tokens count when they arrived, TTFT when the "
        "first output came. " + _drawn(shared, shown),
        panels,
        h.p["Every window is a row of the ", h.a(href="#windows")["windows table"], "."],
        wide=True,
    )


def _has_values(trace: Trace) -> bool:
    return any(point.value is not None for point in trace.points)


def _drawn(shared: Axis, shown: Shown) -> str:
    """Say what the marks mean that are really there."""
    kinds = {one.kind for one in shared.between}
    said = []
    if kinds & {"outage", "gap"}:
        said.append("No line crosses a loss of the server or a gap between segments; both are shaded.")
    if "drain" in kinds:
        said.append("The drain, in which nothing more was submitted, is shaded lightly.")
    if any(window.partial for _, _, window in shown.windows):
        said.append(
            "Dots are windows that were not observed as a whole; below a tenth they are left to the table."
        )
    if shown.every > 1:
        said.append(f"One of {shown.every} windows is drawn: percentiles have no mean.")
    return " ".join(said)


def held_figure(result: SoakResult) -> h.Node:
    """Return what was outstanding, running and waiting, KV use and preemptions; None where nothing is told."""
    shared = axis_of(result)
    requests = [trace for name, said in _REQUESTS if (trace := course_trace(result, name, said)) is not None]
    panels: list[Panel] = []
    if requests:
        trends = (*trends_of(result, "outstanding", "s1"), *trends_of(result, "waiting", "s3"))
        panels.append(
            timeline(
                shared,
                requests,
                "requests",
                "Requests outstanding by the client's count, and running and waiting by the server's gauges",
                colours=[f"s{1 + [said for _, said in _REQUESTS].index(trace.name)}" for trace in requests],
                trends=trends,
                named=True,
                log=False,
                height=180,
            )
        )
    usage = course_trace(result, "kv_usage", "KV use")
    if usage is not None:
        panels.append(
            timeline(
                shared,
                (usage,),
                "KV pool in use",
                "Share of the server's KV pool that was in use",
                colours=("s4",),
                form="%",
                most=1.0 if any((point.high or 0.0) > _FULL for point in usage.points) else None,
                trends=trends_of(result, "kv_floor", "s4"),
                log=False,
                height=130,
            )
        )
    preempted = course_trace(result, "preemptions_per_s", "preemptions")
    if preempted is not None and any(point.high for point in preempted.points):
        panels.append(
            timeline(
                shared,
                (preempted,),
                "preemptions",
                "Preemptions a second by the server's counter",
                unit="1/s",
                colours=("s5",),
                log=False,
                height=110,
            )
        )
    if not panels:
        return None
    untold = [said for name, said in _REQUESTS if not courses_named(result, name)]
    calm = preempted is not None and not any(point.high for point in preempted.points)
    return figure(
        "Outstanding, running and waiting are three numbers, never one",
        "The client holds requests outstanding; the server runs some of them and lets others wait. Lines are means, "
        f"bands reach from the lowest to the highest sample; at most {MOST_POINTS} points a line."
        + (" The server preempted nothing." if calm else "")
        + (f" Not told: {', '.join(untold)}." if untold else ""),
        panels,
        _courses_table(result, _TABLED),
        wide=True,
    )


def client_figure(result: SoakResult) -> h.Node:
    """Return the client's own state over time, folded away; None where it was not sampled."""
    shared = axis_of(result)
    panels = []
    for name, said, unit, per in _CLIENT:
        trace: Trace | None = course_trace(result, name, said)
        if trace is None or not any(point.high for point in trace.points):
            continue
        trends = trends_of(result, "client_memory", "s3") if name == "client_memory" else ()
        panels.append(
            timeline(
                shared,
                (trace,),
                said,
                f"{said} over time",
                per=per,
                unit=unit,
                trends=trends,
                height=100,
                colours=("s3",),
                log=False,
            )
        )
    if not panels:
        return None
    return h.details[
        h.summary["The client's own state over time"],
        figure(
            "The client did not stand in the way" if _punctual(result) else "The client's own state",
            "What the load process itself held: a client that is short of memory or late measures itself.",
            panels,
            _courses_table(result, [(name, said) for name, said, _, _ in _CLIENT]),
            wide=True,
        ),
    ]


def _punctual(result: SoakResult) -> bool:
    return any(gate.gate == "client_lateness" and gate.status == "pass" for gate in result.verdict.gates)


def _courses_table(result: SoakResult, named: Sequence[tuple[str, str]]) -> h.Element:
    """Return each course's points, lowest and highest; its points stand in the record, windows in their table."""
    columns = (
        Column("series", kind="text"),
        Column("segment", kind="text"),
        Column("points"),
        Column("mean of\npoints", "mean of points"),
        Column("lowest"),
        Column("highest"),
        Column("unit", kind="text"),
        Column("stands in soak.json at", kind="text"),
    )
    rows: list[list[Cell | str]] = []
    for name, said in named:
        for at, place, course in courses_named(result, name):
            mean = sum(course.mean) / len(course.mean)
            low, high = min(course.min), max(course.max)
            path = f"result.segments.{at}.courses.{place}"
            rows.append(
                [
                    said,
                    Cell(safe(result.segments[at].segment, 80), result.segments[at].segment),
                    Cell(f"{len(course.t_ns):,}", len(course.t_ns)),
                    Cell(quantity(mean, course.unit), mean),
                    Cell(quantity(low, course.unit), low),
                    Cell(quantity(high, course.unit), high),
                    Cell(course.unit, course.unit, f"{path}.unit"),
                    path,
                ]
            )
    return table(columns, rows, "The courses of this figure")
