"""The columns of a speed study's tables: what each holds of a cell, and where that stands in `result.json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import htpy as h
from msgspec import Struct

from nameplate.measure.speed_result import CellValues
from nameplate.pages.speed.placed import Placed, line_anchor, link, trial_of
from nameplate.pages.subject import SpeedSubject
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.values import Raw
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.cells import PHASE, label_of, name_of
from nameplate.report.matrix import ESTIMATED
from nameplate.report.safe import safe
from nameplate.statistics.percentile import Distribution

_REASON_LIMIT = 600


class Spec(Struct, frozen=True):
    """Hold a column: its head, and the cell that it makes of a planned one."""

    key: str
    column: Column
    of: Callable[[Placed], Cell]


def _fact(key: str, head: str, of: Callable[[Placed], tuple[h.Node, Raw, str]], **more: str) -> Spec:
    """Return a column of what is known of every planned cell: words, raw value, and its path below the row."""

    def cell(one: Placed) -> Cell:
        said, raw, path = of(one)
        return Cell(said, raw, f"{one.path}.{path}")

    kind = more.get("kind", "number")
    return Spec(key, Column(head, more.get("name", ""), "text" if kind == "text" else "number"), cell)


def _number(
    key: str,
    head: str,
    of: Callable[[CellValues], tuple[h.Node, Raw, str | None]],
    name: str = "",
    title: str = "",
) -> Spec:
    """Return a column of a valid cell's values; other cells have none, and neither has an absent value."""

    def cell(one: Placed) -> Cell:
        values = one.values
        if values is None:
            return Cell(None)
        said, raw, path = of(values)
        if raw is None:
            return Cell(said)
        unsupported = isinstance(said, str) and said.endswith(numbers.UNSUPPORTED)
        full = None if path is None else f"{one.path}.values.{path}"
        return Cell(said, raw, full, "unsupported" if unsupported else "")

    return Spec(key, Column(head, name, title=title), cell)


def _percentile(key: str, head: str, field: str, percentile: str, name: str = "") -> Spec:
    """Return a column of one percentile of one of a cell's distributions."""

    def of(values: CellValues) -> tuple[h.Node, Raw, str | None]:
        held: Distribution | None = getattr(values, field)
        if held is None or not held.n:
            return None, None, None
        raw: float | None = getattr(held, percentile)
        return numbers.percentile(held, percentile), raw, f"{field}.{percentile}"

    return _number(key, head, of, name)


def total_of(values: CellValues) -> str:
    """Write a cell's total rate, marked where it is estimated."""
    said = numbers.rate(values.tokens_per_s)
    return f"{ESTIMATED}{said}" if values.estimated and said != numbers.ABSENT else said


def ttft_of(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    """Return the median TTFT wherever this kind of cell keeps it: words, raw value, path below `values`."""
    if values.prefill is not None:
        n, raw = values.prefill.n, values.prefill.ttft_median_ns
        return numbers.quantile(raw, n, n < 2), raw, "prefill.ttft_median_ns"
    if values.mixed is not None:
        return numbers.duration(values.mixed.ttft_ns), values.mixed.ttft_ns, "mixed.ttft_ns"
    if values.ttft is not None and values.ttft.n:
        return numbers.percentile(values.ttft, "p50"), values.ttft.p50, "ttft.p50"
    return None, None, None


def _ttft_n(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    if values.prefill is not None:
        return f"{values.prefill.n:,}", values.prefill.n, "prefill.n"
    if values.mixed is not None:
        return ("1", 1, None) if values.mixed.ttft_ns is not None else (None, None, None)
    if values.ttft is not None and values.ttft.n:
        return f"{values.ttft.n:,}", values.ttft.n, "ttft.n"
    return None, None, None


def _active(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    if values.in_flight is not None:
        return f"{values.in_flight:,.1f}", values.in_flight, "in_flight"
    if values.running is not None:
        return f"{values.running.mean:,.1f}", values.running.mean, "running.mean"
    return None, None, None


def _completed(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    if values.prefill is not None:
        return numbers.count(values.prefill.n), values.prefill.n, "prefill.n"
    return numbers.count(values.completed), values.completed, "completed"


def _accepted(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    share = None if values.speculation is None else values.speculation.acceptance
    # A quotient of two counts in the file, which does not hold the share itself.
    return numbers.share(share), share, None


def _warmth(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    known = values.warmth if values.warmth != "unknown" else None
    return known, known, "warmth"


def _power(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    watts = None if values.gpu is None else values.gpu.all_gpus.power_mean_w
    return (None if watts is None else f"{watts:,.0f} W"), watts, "gpu.all_gpus.power_mean_w"


def _of_prefill(
    values: CellValues, field: str, write: Callable[[float], str]
) -> tuple[h.Node, Raw, str | None]:
    raw: float | None = getattr(values.prefill, field) if values.prefill is not None else None
    return (None if raw is None else write(raw)), raw, f"prefill.{field}"


def _range(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    held = values.prefill
    if held is None or held.n < 2 or held.low is None:
        return None, None, None
    return (
        numbers.between(numbers.brief_rate(held.low), numbers.brief_rate(held.high)),
        held.low,
        "prefill.low",
    )


def _computed(values: CellValues) -> tuple[h.Node, Raw, str | None]:
    held = values.prefill
    if held is None or held.computed_tokens is None or held.counted_tokens is None:
        return None, None, None
    difference = held.computed_tokens - held.counted_tokens
    said = "the same" if not difference else f"{difference:+,}"
    return said, held.computed_tokens, "prefill.computed_tokens"


def _simple(
    field: str, write: Callable[[float], str]
) -> Callable[[CellValues], tuple[h.Node, Raw, str | None]]:
    def of(values: CellValues) -> tuple[h.Node, Raw, str | None]:
        raw: float | None = getattr(values, field)
        return (None if raw is None else write(raw)), raw, field

    return of


def _prompts(one: Placed) -> tuple[h.Node, Raw, str]:
    held = one.row.prompt_tokens
    if held is None:
        return None, None, "prompt_tokens"
    return numbers.between(f"{held.low:,}", f"{held.high:,}"), held.low, "prompt_tokens.low"


def _reason(one: Placed) -> Cell:
    row = one.row
    said = [safe(row.reason, _REASON_LIMIT), *(safe(note, _REASON_LIMIT) for note in row.notes)]
    return Cell("; ".join(said), "; ".join(said), None, "words")


SPECS: tuple[Spec, ...] = (
    _fact("phase", "phase", lambda one: (PHASE[one.row.kind], one.row.kind, "kind"), kind="text"),
    _fact(
        "context",
        "context",
        lambda one: (label_of(one.row), one.row.context_tokens, "context_tokens"),
        name="context, tokens",
    ),
    _fact("prompts", "prompt tokens\ncounted", _prompts, name="prompt tokens counted, least"),
    _fact(
        "requests",
        "requests\nat once",
        lambda one: (f"{one.row.concurrency:,}", one.row.concurrency, "concurrency"),
    ),
    _fact(
        "status",
        "status",
        lambda one: (status(one.row.status.value), one.row.status.value, "status"),
        kind="text",
    ),
    _number("total", "total\ntok/s", lambda v: (total_of(v), v.tokens_per_s, "tokens_per_s")),
    _percentile("user", "per request\ntok/s p50", "per_user", "p50"),
    _number("ttft", "TTFT\np50", ttft_of, "TTFT p50, ns"),
    _number(
        "ttft99",
        "TTFT\np99",
        lambda v: (
            (numbers.percentile(v.ttft, "p99"), v.ttft.p99, "ttft.p99")
            if v.ttft is not None and v.ttft.n and v.mixed is None and v.prefill is None
            else (None, None, None)
        ),
        "TTFT p99, ns",
    ),
    _number("n", "n", _ttft_n, "n of the TTFT"),
    _number("warmth", "cache", _warmth, "cold or warm"),
    _percentile("second", "time to\nsecond token", "second_output", "p50", "time to second token p50, ns"),
    _percentile("itl", "time between\ntokens p50", "itl", "p50", "ITL p50, ns"),
    _percentile("itl90", "p90", "itl", "p90", "ITL p90, ns"),
    _percentile("itl99", "p99", "itl", "p99", "ITL p99, ns"),
    _percentile("gap99", "chunk gap\np99", "chunk_gaps", "p99", "chunk gap p99, ns"),
    _percentile("e2e", "E2E\np50", "e2e", "p50", "E2E p50, ns"),
    _number("active", "average active\nrequests", _active),
    _number("chunk", "tokens\na chunk", _simple("tokens_per_chunk", lambda v: f"{v:.2f}")),
    _number("accepted", "drafts\naccepted", _accepted, "share of drafted tokens accepted"),
    _number("power", "GPU power\nmean", _power, "GPU power, mean, W"),
    _number("energy", "energy\na token", _simple("energy_per_token_j", lambda v: f"{v:.3g} J"), "J a token"),
    _number("queue", "samples with\na queue", _simple("queue_share", lambda v: numbers.share(v, 0))),
    _number("slowdown", "slowdown\nof the TTFT", _simple("slowdown", lambda v: f"{v:.2f} x")),
    _number("completed", "completed\nrequests", _completed),
    _number("output", "output\ntokens", _simple("output_tokens", lambda v: f"{round(v):,}"), "output tokens"),
    _number(
        "measured",
        "measured\nfor",
        _simple("window_s", lambda v: numbers.duration(v * 1e9)),
        "measured for, s",
    ),
    _fact(
        "ready",
        "ready\nafter",
        lambda one: (numbers.rough(one.row.ready_s), one.row.ready_s, "ready_s"),
        name="ready after, s",
    ),
    Spec("reason", Column("reason and notes", "reason and notes", "text"), _reason),
)
# Of prefill alone, whose own table has them.
_PREFILL = (
    _number("rate", "median\ntok/s", lambda v: (total_of(v), v.tokens_per_s, "tokens_per_s")),
    _number("spread", "range\ntok/s", _range, "range, least tok/s"),
    _number(
        "server",
        "server's own\nprefill",
        lambda v: _of_prefill(v, "server_s", lambda held: numbers.duration(held * 1e9)),
        "server's own prefill, s",
    ),
    _number("difference", "difference", lambda v: _of_prefill(v, "server_difference", "{:+.1%}".format)),
    _number("computed", "computed tokens,\nserver's to ours", _computed, "computed tokens, server's count"),
)
_BY_KEY = {spec.key: spec for spec in (*SPECS, *_PREFILL)}


def rows_table(
    subject: SpeedSubject,
    cells: Iterable[Placed],
    caption: str,
    keys: Sequence[str] | None = None,
    *,
    anchored: bool = False,
    note: h.Node = None,
) -> h.Element:
    """Return a table of planned cells; columns in which no cell has anything are left out."""
    shown = list(cells)
    specs = SPECS if keys is None else [_BY_KEY[key] for key in keys]
    made = [[spec.of(one) for spec in specs] for one in shown]
    kept = [at for at in range(len(specs)) if any(_has(line[at]) for line in made)]
    rows = [
        Row(
            [*((_name(subject, one),) if anchored else ()), *(line[at] for at in kept)],
            begins=before is not None and before.row.kind != one.row.kind,
            anchor=line_anchor(subject, one) if anchored else None,
        )
        for line, one, before in zip(made, shown, (None, *shown), strict=False)
    ]
    columns = [*((Column("cell", kind="text"),) if anchored else ()), *(specs[at].column for at in kept)]
    return table(columns, rows, caption, row_heads=anchored, note=note)


def _has(cell: Cell) -> bool:
    return cell.raw is not None and cell.said not in (None, "", numbers.ABSENT)


def _name(subject: SpeedSubject, one: Placed) -> Cell:
    """Name a cell at the head of its line, with the way to its trial where there is one."""
    key, name = trial_of(subject, one), name_of(one.row)
    said = name if key is None else h.a(href=link(subject, one))[name]
    return Cell(said, f"{PHASE[one.row.kind]} {name}")
