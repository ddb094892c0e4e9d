"""All measurements of a speed study: a line for every planned cell, with what every number was counted over."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.report import numbers
from nameplate.report.cells import PHASE, WORDS, bracketed, label_of, name_of, per_user, status_of, values_of
from nameplate.report.layout import Cell, bulleted, heading, indented, stacked
from nameplate.report.safe import safe, safe_text
from nameplate.report.table import Column, FittingTable, rows_of
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.cell import CellStatus

_REASON_LIMIT = 600

_COLUMNS = (
    Column("\n\nphase", side="left"),
    Column("\n\ncontext"),
    Column("\nrequests\nat once"),
    Column("\n\nstatus", side="left"),
    Column("\ntotal\ntok/s"),
    Column("per\nrequest\ntok/s p50", rank=1),
    Column("\nTTFT\np50", rank=2),
    Column("\nTTFT\np99", rank=13),
    Column("\n\nn", rank=3, name="n of the TTFT"),
    Column("\n\ncache", side="left", rank=11, name="cold or warm"),
    Column("time to\nsecond\ntoken p50", rank=9),
    Column("time\nbetween\ntokens p50", rank=2),
    Column("\n\np90", rank=14, name="time between tokens p90"),
    Column("\n\np99", rank=12, name="time between tokens p99"),
    Column("average\nactive\nrequests", rank=6),
    Column("\ntokens\na chunk", rank=15),
    Column("\ndrafts\naccepted", rank=16, name="drafted tokens accepted"),
    Column("\nenergy\na token", rank=17),
    Column("samples\nwith a\nqueue", rank=10),
    Column("\ncompleted\nrequests", rank=7),
    Column("\noutput\ntokens", rank=5),
    Column("\nmeasured\nfor", rank=4),
    Column("\nready\nafter", rank=8),
)


def _at(name: str) -> int:
    return next(at for at, column in enumerate(_COLUMNS) if column.name == name)


def all_measurements(result: SpeedResult, *, discarded: bool = False) -> RenderableType:
    """Return the table of all measurements, and why cells have none.

    A percentile that its n does not carry is marked; with `discarded` numbers of cells that are not valid stand in
    brackets.
    """
    groups = [_sorted(result.rows_of(kind)) for kind in PHASE]
    table = [[_line(row, discarded) for row in group] for group in groups if group]
    if not table:
        return Text("No cell was planned.")
    cells = [cell for group in table for line in group for cell in line]
    notes = ["Total tok/s is output over all simultaneous requests, of a prefill computed prompt tokens."]
    if any(str(cell).rstrip(")").endswith(numbers.UNSUPPORTED) for cell in cells):
        notes.append(numbers.UNSUPPORTED_NOTE)
    if any(str(cell).lstrip("(").startswith("~") for cell in cells):
        notes.append("~ estimated: the server does not count tokens along")
    if any(str(cell).startswith("(") for cell in cells):
        notes.append("(n) measured in a cell that is not valid: no result")
    return stacked(
        (
            Group(
                heading("All measurements"),
                indented(_fitting(table)),
                *(indented(Text(note, style="dim")) for note in notes),
            ),
            _reasons(result),
        )
    )


def _fitting(table: Sequence[Sequence[Sequence[Cell]]]) -> FittingTable:
    """Leave out the columns in which no cell has anything."""
    lines = [line for group in table for line in group]
    kept = [
        at for at in range(len(_COLUMNS)) if any(str(line[at]) not in ("", numbers.ABSENT) for line in lines)
    ]
    groups = [[[line[at] for at in kept] for line in group] for group in table]
    return FittingTable([_COLUMNS[at] for at in kept], list(rows_of(groups)))


def _sorted(rows: Sequence[CellRow]) -> list[CellRow]:
    return sorted(rows, key=lambda row: (row.context_tokens, row.concurrency))


def _line(row: CellRow, discarded: bool) -> Sequence[Cell]:
    head: tuple[Cell, ...] = (PHASE[row.kind], label_of(row), f"{row.concurrency:,}", status_of(row))
    values = values_of(row, discarded)
    ready = numbers.rough(row.ready_s)
    if values is None:
        said = [numbers.ABSENT] * (len(_COLUMNS) - len(head) - 1)
        return (*head, *said, ready)
    plain = {_at("n of the TTFT"), _at("cold or warm")}
    numbers_said = [
        one if at + len(head) in plain else bracketed(one, row) for at, one in enumerate(_numbers(values))
    ]
    return (*head, *numbers_said, ready)


def _numbers(values: CellValues) -> tuple[str, ...]:
    ttft, ttft_n = _ttft(values)
    total = numbers.rate(values.tokens_per_s)
    if values.estimated and total != numbers.ABSENT:
        total = f"~{total}"
    active = (
        values.in_flight
        if values.in_flight is not None
        else (values.running.mean if values.running else None)
    )
    prefill = values.prefill
    completed = values.completed if prefill is None else prefill.n
    return (
        total,
        numbers.ABSENT if per_user(values) is None else _percentile(values.per_user, "p50"),
        ttft,
        _percentile(values.ttft if values.mixed is None else None, "p99"),
        ttft_n,
        values.warmth if values.warmth not in (None, "unknown") else numbers.ABSENT,
        _percentile(values.second_output, "p50"),
        _percentile(values.itl, "p50"),
        _percentile(values.itl, "p90"),
        _percentile(values.itl, "p99"),
        numbers.ABSENT if active is None else f"{active:,.1f}",
        numbers.ABSENT if values.tokens_per_chunk is None else f"{values.tokens_per_chunk:.2f}",
        numbers.share(values.speculation.acceptance) if values.speculation is not None else numbers.ABSENT,
        numbers.ABSENT if values.energy_per_token_j is None else f"{values.energy_per_token_j:.3g} J",
        numbers.share(values.queue_share, 0),
        numbers.count(completed),
        numbers.count(None if values.output_tokens is None else round(values.output_tokens)),
        numbers.duration(None if values.window_s is None else values.window_s * 1e9),
    )


def _ttft(values: CellValues) -> tuple[str, str]:
    """Return the median TTFT and its n, wherever this kind of cell keeps it."""
    if values.prefill is not None:
        n = values.prefill.n
        return numbers.quantile(values.prefill.ttft_median_ns, n, n < 2), f"{n:,}"
    if values.mixed is None and values.ttft is not None and values.ttft.n:
        return _percentile(values.ttft, "p50"), f"{values.ttft.n:,}"
    if values.mixed is not None and values.mixed.ttft_ns is not None:
        return numbers.duration(values.mixed.ttft_ns), "1"
    return numbers.ABSENT, numbers.ABSENT


def _percentile(held: Distribution | None, name: str) -> str:
    return numbers.ABSENT if held is None else numbers.percentile(held, name)


def reasons(result: SpeedResult) -> list[tuple[CellStatus, str, list[CellRow]]]:
    """Return why cells have no number: each status and reason with the cells that it is true of."""
    why: dict[tuple[CellStatus, str], list[CellRow]] = {}
    for kind in PHASE:
        for row in _sorted(result.rows_of(kind)):
            if row.status is not CellStatus.valid:
                why.setdefault((row.status, row.reason), []).append(row)
    return [(status, reason, rows) for (status, reason), rows in why.items()]


def _reasons(result: SpeedResult) -> RenderableType | None:
    """List why cells have no number, those of one reason together."""
    why = reasons(result)
    if not why:
        return None
    lines: list[RenderableType] = [heading("Why cells have no number")]
    for _, reason, rows in why:
        text = Text(f"{', '.join(f'{PHASE[row.kind]} {name_of(row)}' for row in rows)}: ")
        # Many a reason begins with its status' own words.
        if not reason.startswith(WORDS[rows[0].status]):
            text.append_text(status_of(rows[0])).append(": ")
        text.append_text(safe_text(reason, "", _REASON_LIMIT))
        late = rows[0].ready_deadline_s
        if rows[0].status is CellStatus.not_ready and late is not None and len(rows) == 1:
            text.append(f" (it had {safe(numbers.rough(late))})", style="dim")
        lines.append(indented(bulleted("-", "", text)))
    return Group(*lines)
