"""Percentiles of a soak, of the completed alone and between their bounds, and rates with their denominators."""

from __future__ import annotations

import htpy as h

from nameplate.measure.soak.result import SoakResult
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak import METRIC
from nameplate.statistics.censoring import CensoredPercentile


def latency_section(result: SoakResult, *, opened: bool) -> h.Element:
    """Return all percentiles: completed only, beside the best and the worst case of those without an end."""
    rows: list[Row] = []
    error = 0.0
    for at, held in enumerate(result.latencies):
        # In a closed loop a request is due when its slot comes free: that is the client's own lateness.
        if held.metric not in METRIC or not held.n or (held.metric == "ttft_from_schedule" and not opened):
            continue
        for place, one in enumerate(held.percentiles):
            error = max(error, one.relative_error)
            path = f"result.latencies.{at}.percentiles.{place}"
            rows.append(Row(_cells(METRIC[held.metric], one, path), begins=place == 0 and bool(rows)))
    columns = (
        Column("latency", kind="text"),
        Column("percentile"),
        Column("n"),
        Column("completed"),
        Column("completed\nonly", "completed only, ns"),
        Column("best\ncase", "best case, ns"),
        Column("worst\ncase", "worst case, ns"),
        Column("completed alone", kind="text"),
    )
    note = numbers.UNSUPPORTED_NOTE
    if error:
        note += f"; from sketches: each within {error:.2%}, while SLOs are judged on exact counts"
    return h.section(aria_label="Latency")[
        h.h2["Latency: completed only, and with those that have no end"],
        h.p[
            "Best case: what the others had waited when they were last seen. Worst case: they never came. "
            "A request that failed is infinite in both."
        ],
        table(columns, rows, "Percentiles over the whole soak", note=note),
    ]


def _cells(name: str, one: CensoredPercentile, path: str) -> list[Cell | str]:
    mark = "" if one.supported else numbers.UNSUPPORTED
    fair = "the same" if one.n == one.completed else "holds" if one.completed else "none completed"
    misleads = "misleading" if one.misleading else fair
    return [
        name,
        Cell(f"p{one.percent:g}", one.percent, f"{path}.percent"),
        Cell(f"{one.n:,}", one.n, f"{path}.n"),
        Cell(f"{one.completed:,}", one.completed, f"{path}.completed"),
        Cell(
            numbers.ABSENT if one.completed_only is None else f"{numbers.duration(one.completed_only)}{mark}",
            one.completed_only,
            f"{path}.completed_only",
            "unsupported" if mark else "",
        ),
        Cell(_bound(one.best), one.best, f"{path}.best"),
        Cell(_bound(one.worst), one.worst, f"{path}.worst"),
        Cell(h.span(".status.tone-warn")["misleading"] if one.misleading else misleads, misleads),
    ]


def _bound(ns: float | None) -> str:
    return numbers.NEVER if ns is None else numbers.duration(ns)


def rates_table(result: SoakResult) -> h.Element:
    """Return each rate with the events that begin and end its denominator."""
    columns = (
        Column("rate", kind="text"),
        Column("a second", "per second"),
        Column("counted"),
        Column("over", "seconds"),
        Column("from", kind="text"),
        Column("to", kind="text"),
        Column("", "note", kind="text"),
    )
    rows: list[list[Cell | str]] = []
    for at, rate in enumerate(result.rates):
        path = f"result.rates.{at}"
        unit = "tok/s" if "token" in rate.of else "req/s"
        notes = [*(["estimated"] if rate.estimated else [])]
        if len(rate.parts) > 1:
            notes.append(f"{len(rate.parts)} segments, gaps left out")
        rows.append(
            [
                Cell(safe(rate.of, 80), rate.of, f"{path}.of"),
                Cell(numbers.rate(rate.per_s, unit), rate.per_s, f"{path}.per_s"),
                Cell(numbers.count(round(rate.counted)), rate.counted, f"{path}.counted"),
                Cell(f"{rate.seconds:,.3f} s", rate.seconds, f"{path}.seconds"),
                Cell(safe(rate.begins, 120), rate.begins, f"{path}.begins"),
                Cell(safe(rate.ends, 120), rate.ends, f"{path}.ends"),
                ", ".join(notes),
            ]
        )
    return table(columns, rows, "Rates, each with what begins and ends its denominator")


def gates_table(result: SoakResult) -> h.Element:
    """Return every gate with what was found."""
    columns = (
        Column("gate", kind="text"),
        Column("status", kind="text"),
        Column("what was found", kind="text"),
    )
    rows: list[list[Cell | str]] = []
    for at, gate in enumerate(result.verdict.gates):
        path = f"result.verdict.gates.{at}"
        rows.append(
            [
                Cell(safe(gate.gate.replace("_", " "), 40), gate.gate, f"{path}.gate"),
                Cell(status(gate.status), gate.status, f"{path}.status"),
                Cell(safe(gate.detail, 600), gate.detail, f"{path}.detail"),
            ]
        )
    return table(columns, rows, "Gates: what stands before every promise")
