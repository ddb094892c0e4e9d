"""The tables of a curve: a row a level and configuration, and for a climb a row a length."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.curve import say_load
from nameplate.measure.curve_point import Point
from nameplate.measure.curve_result import CurveResult, LevelRow
from nameplate.measure.server_side import Gauge
from nameplate.report import numbers
from nameplate.report.layout import Cell
from nameplate.report.style import status
from nameplate.report.table import Column, FittingTable
from nameplate.verdict.curve import differing
from nameplate.verdict.curve_level import LevelStatus

# What a narrow terminal shows: throughput and latency together, with n, duration and the server's running limit.
_LOAD_COLUMNS = (
    Column("level"),
    Column("output\ntok/s"),
    Column("req/s", rank=8),
    Column("TTFT\np50"),
    Column("TTFT\np95", rank=1),
    Column("ITL\np50", rank=5),
    Column("E2E\np50", rank=6),
    Column("tok/s\na user", rank=10),
    Column("queue\nmean", rank=11, name="queue mean of TTFT"),
    Column("prefill\nmean", rank=11, name="prefill mean of TTFT"),
    Column("in\nflight", rank=9),
    Column("running\nmost/limit", rank=3),
    Column("waiting\nmean", rank=7),
    Column("KV use\nmost", rank=12),
    Column("n", rank=2),
    Column("took", rank=4),
    Column("whole run\ntok/s", rank=13),
    Column("", side="left"),
)
_CLIMB_COLUMNS = (
    Column("input\ntokens"),
    Column("counted", rank=6),
    Column("TTFT\np50"),
    Column("lowest", rank=3, name="lowest TTFT"),
    Column("highest", rank=3, name="highest TTFT"),
    Column("prefill\ntok/s", rank=1),
    Column("KV use\nmost", rank=2),
    Column("tokens of\nthe pool", rank=4),
    Column("decode\ntok/s", rank=2),
    Column("output\ntokens", rank=5),
    Column("n"),
    Column("took", rank=7),
    Column("", side="left"),
)


def load_table(result: CurveResult) -> RenderableType:
    """Return the levels of a curve over clients or rates; a level of several trials has a row for each."""
    rows: list[Sequence[Cell]] = []
    unsupported = False
    for row in result.rows:
        for point in row.points or ():
            cells = _load_cells(result, row, point)
            unsupported = unsupported or any(numbers.UNSUPPORTED in str(cell) for cell in cells)
            rows.append(cells)
        if not row.points:
            rows.append(_empty(result, row, len(_LOAD_COLUMNS)))
    table = FittingTable(_LOAD_COLUMNS, rows)
    return Group(table, Text(numbers.UNSUPPORTED_NOTE, style="dim")) if unsupported else table


def climb_table(result: CurveResult) -> RenderableType:
    """Return the steps of a climb."""
    rows: list[Sequence[Cell]] = []
    for row in result.rows:
        for point in row.points:
            rows.append(_climb_cells(row, point))
        if not row.points:
            rows.append(_empty(result, row, len(_CLIMB_COLUMNS)))
    return FittingTable(_CLIMB_COLUMNS, rows)


def _empty(result: CurveResult, row: LevelRow, columns: int) -> Sequence[Cell]:
    assert result.contract.curve is not None
    kind = result.contract.curve.kind
    label = f"{row.load:,.0f}" if kind == "input" else say_load(kind, row.load)
    word = status(row.status.value.replace("_", " "))
    return (label, *("" for _ in range(columns - 2)), word)


def _load_cells(result: CurveResult, row: LevelRow, point: Point) -> Sequence[Cell]:
    assert result.contract.curve is not None
    sample = point.sample(result.basis)
    mark = " ".join(_marks(result, row, point))
    return (
        say_load(result.contract.curve.kind, row.load),
        numbers.rate(sample.output_per_s),
        numbers.brief_rate(sample.requests_per_s),
        numbers.percentile(sample.ttft, "p50"),
        numbers.percentile(sample.ttft, "p95"),
        numbers.brief(sample.itl.p50),
        numbers.brief(sample.e2e.p50),
        numbers.brief_rate(sample.per_user.p50),
        *parts_of(point),
        _in_flight(result, point),
        _of_limit(point),
        "-" if point.waiting is None else f"{point.waiting.mean:.1f}",
        _most(point.kv_usage),
        numbers.count(sample.n),
        numbers.rough(point.duration_s),
        numbers.rate(point.whole.output_per_s),
        Text(mark, style="bold") if mark else _measured(row),
    )


def parts_of(point: Point) -> tuple[str, str]:
    """Write the mean queue and prefill of a trial's TTFT by the server's own clock."""
    waits = point.waits
    if waits is None or waits.queue is None or waits.prefill is None:
        return "-", "-"
    return numbers.brief(waits.queue.mean_ns), numbers.brief(waits.prefill.mean_ns)


def _marks(result: CurveResult, row: LevelRow, point: Point) -> list[str]:
    """Say which curve a trial belongs to where there are several, and whether it stands at the knee."""
    own = [c for c in result.curves if not differing(c.configuration, point.configuration)]
    marks = [f"curve {result.curves.index(own[0]) + 1}"] if len(result.curves) > 1 and own else []
    if any(curve.knee.level == row.load for curve in own):
        marks.append("knee")
    return [*marks, "queue grew"] if point.queue == "rising" else marks


def _climb_cells(row: LevelRow, point: Point) -> Sequence[Cell]:
    counted, alone = point.prompt_tokens, point.alone
    ttft = point.whole.ttft
    return (
        f"{row.load:,.0f}",
        "-" if counted is None else numbers.between(f"{counted.low:,}", f"{counted.high:,}"),
        numbers.percentile(ttft, "p50"),
        numbers.brief(ttft.min),
        numbers.brief(ttft.max),
        "-" if alone is None else numbers.rate(alone.prefill_counted.p50),
        _most(point.kv_usage),
        numbers.share(point.resident_share),
        "-" if alone is None else numbers.rate(alone.decode),
        "-" if point.output_tokens_mean is None else f"{point.output_tokens_mean:,.0f}",
        numbers.count(point.ok),
        numbers.rough(point.duration_s),
        _measured(row),
    )


def _measured(row: LevelRow) -> Cell:
    return "" if row.status is LevelStatus.valid else status(row.status.value)


def _in_flight(result: CurveResult, point: Point) -> str:
    held = point.in_flight if result.basis == "whole" else point.in_flight_steady
    return "-" if held is None else f"{held:.1f}"


def _of_limit(point: Point) -> str:
    most = "-" if point.running is None else f"{point.running.max:.0f}"
    return most if point.running_limit is None else f"{most} / {point.running_limit:,}"


def _most(gauge: Gauge | None) -> str:
    # Sampled once a second: none of the samples met a request.
    return "-" if gauge is None or not gauge.max else numbers.share(gauge.max)
