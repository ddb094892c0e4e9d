"""Latencies of a trial as tables: what its promises came to, every distribution, the parts of a varying load."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.measure.breakdown import Breakdown
from nameplate.measure.latency import PhaseLatencies
from nameplate.measure.result import TrialResult
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.boundary import judged
from nameplate.report.open_loop import MOST_PARTS, OPEN_LATENCIES, PARTS_OF, REPEATS
from nameplate.report.safe import safe
from nameplate.report.trial import LATENCIES
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.trial import SloResult, SloSample

_PERCENTILES = ("p50", "p90", "p95", "p99")
_BY_PHASE = ("p50", "p95")
_BESIDE = ("tpot", "first_answer")
_FROM_SENDING = (*_BESIDE, "ttft", "e2e")


def promises(result: TrialResult) -> h.Node:
    """Return each promise with its status and its judged value by phase; nothing where none was given."""
    if not result.verdict.slos:
        return None
    if result.verdict.status == "invalid":
        return _unjudged(result)
    columns = (
        Column("promise", kind="text"),
        Column("status", kind="text"),
        Column("judged", "judged value, whole sample, ns or share"),
        Column("n"),
        Column("over", "requests at or over the limit"),
        Column("opening", "judged value, opening, ns or share"),
        Column("n", "n, opening"),
        Column("steady", "judged value, steady, ns or share"),
        Column("n", "n, steady"),
    )
    rows = [_promise(one, f"verdict.slos.{at}") for at, one in enumerate(result.verdict.slos)]
    return table(
        columns,
        rows,
        "What was promised, and what came of it",
        note="The whole sample decides; the phases stand beside it."
        if result.plan.arrivals is None
        else "Judged from schedule.",
    )


def _unjudged(result: TrialResult) -> h.Element:
    """Return the promises of an invalid trial, which judges none of them."""
    columns = (Column("promise", kind="text"), Column("verdict", kind="text"))
    rows: list[list[Cell | str]] = [
        [numbers.promise(one.slo), Cell("none: the trial is invalid")] for one in result.verdict.slos
    ]
    return table(columns, rows, "What was promised, and not judged")


def _promise(one: SloResult, path: str) -> list[Cell | str]:
    def value(sample: SloSample, name: str) -> tuple[Cell, Cell]:
        return (
            Cell(judged(one, sample), sample.best, f"{path}.{name}.best"),
            Cell(f"{sample.n:,}", sample.n, f"{path}.{name}.n"),
        )

    over = one.whole.over
    return [
        numbers.promise(one.slo),
        Cell(status(one.status), one.status, f"{path}.status"),
        *value(one.whole, "whole"),
        Cell(f"{over:,}", over, f"{path}.whole.over"),
        *value(one.opening, "opening"),
        *value(one.steady, "steady"),
    ]


def latency_table(result: TrialResult, *, folded: bool = False) -> h.Node:
    """Return every latency's percentiles, in a closed loop by phase; from schedule first in an open one.

    `folded` leaves out what is known beside others: TPOT, the first answer, the latencies from sending.
    """
    latencies = result.measurement.latencies
    opened = result.plan.arrivals is not None
    by_phase = _BY_PHASE[1:] if folded else _BY_PHASE
    columns = [
        Column("latency", kind="text"),
        Column("n"),
        *(Column(name, f"{name}, ns") for name in _PERCENTILES),
        Column("largest", "largest, ns"),
    ]
    if not opened:
        columns += [
            Column(f"{phase}\n{name}", f"{phase} {name}, ns")
            for phase in ("opening", "steady")
            for name in by_phase
        ]
    shown = OPEN_LATENCIES if opened else LATENCIES
    rows = [
        _latency(label, name, latencies, () if opened else by_phase)
        for label, name in shown
        if _tells(latencies, name, opened, result.plan.cut)
        and not (folded and name in (_FROM_SENDING if opened else _BESIDE))
    ]
    rows.append(_latency("chunk gap (pooled)", "chunk_gaps", latencies, () if opened else by_phase))
    said = (
        "from schedule: from when the plan wanted the request sent."
        if opened
        else f"opening: the first request of each slot (n {latencies.opening.requests:,}); "
        f"steady: the rest (n {latencies.steady.requests:,})."
    )
    invalid = result.verdict.status == "invalid"
    of = "Latency of all measured requests" + (" of an invalid trial" if invalid else "")
    marked = "The trial is invalid: these values decide nothing. " if invalid else ""
    return table(columns, rows, of, note=f"{marked}{said} {numbers.UNSUPPORTED_NOTE}")


def _tells(latencies: PhaseLatencies, name: str, opened: bool, cut: bool) -> bool:
    """Tell whether a row says anything that no other does.

    A model that does not reason answers with its first token; of a load that is cut as planned no request ends.
    """
    held = getattr(latencies.whole, name)
    if held is None or (cut and held.n == held.censored):
        return False
    repeated = REPEATS.get(name) if opened else ("ttft" if name == "first_answer" else None)
    return repeated is None or held != getattr(latencies.whole, repeated)


def _latency(label: str, name: str, latencies: PhaseLatencies, by_phase: Sequence[str]) -> list[Cell | str]:
    path = f"measurement.latencies.whole.{name}"
    held: Distribution = getattr(latencies.whole, name)
    largest = numbers.NEVER if held.censored else numbers.duration(held.max)
    cells: list[Cell | str] = [
        label,
        Cell(f"{held.n:,}", held.n, f"{path}.n"),
        *(_percentile(held, one, path) for one in _PERCENTILES),
        Cell(largest, held.max, f"{path}.max"),
    ]
    for phase in ("opening", "steady"):
        part: Distribution = getattr(getattr(latencies, phase), name)
        cells += [_percentile(part, one, f"measurement.latencies.{phase}.{name}") for one in by_phase]
    return cells


def _percentile(held: Distribution, name: str, path: str) -> Cell:
    raw: float | None = getattr(held, name)
    classes = "unsupported" if name in held.unsupported else ""
    return Cell(numbers.percentile(held, name), raw, f"{path}.{name}", classes)


def parts(found: Breakdown | None) -> h.Node:
    """Return the latencies of the steps of a rate, the tenths of a ramp or the classes of a trace."""
    if found is None:
        return None
    title, name = PARTS_OF[found.of]
    columns = (
        Column(name, kind="text"),
        Column("n"),
        *(Column(f"TTFT\n{one}", f"TTFT {one}, ns") for one in ("p50", "p95", "p99")),
        *(Column(f"E2E\n{one}", f"E2E {one}, ns") for one in _BY_PHASE),
        Column("ITL\np50", "ITL p50, ns"),
        *((Column("in\nflight", "in flight, mean"),) if found.of != "class" else ()),
    )
    rows: list[list[Cell | str]] = []
    for at, part in enumerate(found.parts[:MOST_PARTS]):
        path = f"measurement.breakdown.parts.{at}"
        cells: list[Cell | str] = [
            safe(part.name, 60),
            Cell(f"{part.requests:,}", part.requests, f"{path}.requests"),
            *(_percentile(part.ttft, one, f"{path}.ttft") for one in ("p50", "p95", "p99")),
            *(_percentile(part.e2e, one, f"{path}.e2e") for one in _BY_PHASE),
            _percentile(part.itl, "p50", f"{path}.itl"),
        ]
        if found.of != "class":
            cells.append(Cell(numbers.count(part.outstanding), part.outstanding, f"{path}.outstanding"))
        rows.append(cells)
    more = len(found.parts) - MOST_PARTS
    note = "TTFT and E2E from schedule." + (f" {more:,} more are in result.json." if more > 0 else "")
    return table(columns, rows, title, note=note)
