"""The matrix as a heat table: rates where cells are valid, and the status in words where they are not.

Which of its measures is large and gives the colour is chosen by radio buttons alone, in CSS: it works by keyboard and
without scripts. No cell that is not valid shows a number, whatever was measured in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import htpy as h
from msgspec import Struct

from nameplate.contract.matrix import Kind
from nameplate.measure.cell import Warmth
from nameplate.measure.speed_result import CellValues
from nameplate.pages.speed.placed import Placed, link
from nameplate.pages.subject import SpeedSubject
from nameplate.pages.values import ABSENT, attributes
from nameplate.report import numbers
from nameplate.report.cells import MEANING, WORDS, label_of, middle, name_of, per_user, prompt_range
from nameplate.report.matrix import ESTIMATED, NOTED, WARMTH_MARK, WARMTH_MEANING, warm_words
from nameplate.report.safe import safe
from nameplate.verdict.cell import CellStatus

_REASON_LIMIT = 600
# What was not run, what was measured and discarded, and what failed: each has a pattern of its own.
_NOT_RUN = (CellStatus.over_capacity, CellStatus.over_limit, CellStatus.skipped)
_BROKEN = (CellStatus.server_error, CellStatus.interrupted)


class Measure(Struct, frozen=True):
    """Hold one measure of a cell: its name on the button, its short unit in the cell, value, words and path."""

    name: str
    unit: str
    better: Literal["more", "less"]
    of: Callable[[CellValues], float | None]
    said: Callable[[CellValues], str]
    path: str


def _total(values: CellValues) -> str:
    return (ESTIMATED if values.estimated else "") + numbers.brief_rate(values.tokens_per_s)


TOTAL = Measure("Total tok/s", "total", "more", lambda v: v.tokens_per_s, _total, "tokens_per_s")
USER = Measure("Per user tok/s", "each", "more", per_user, lambda v: middle(v.per_user), "per_user.p50")
TTFT = Measure(
    "TTFT",
    "TTFT",
    "less",
    lambda v: None if v.ttft is None else v.ttft.p50,
    lambda v: middle(v.ttft),
    "ttft.p50",
)
E2E = Measure(
    "E2E latency",
    "E2E",
    "less",
    lambda v: None if v.e2e is None else v.e2e.p50,
    lambda v: middle(v.e2e),
    "e2e.p50",
)
MEASURES: dict[Kind, tuple[Measure, ...]] = {"decode": (TOTAL, USER, TTFT), "burst": (TOTAL, TTFT, E2E)}


class Span(Struct, frozen=True):
    """Hold the smallest and largest value of a measure, between which colours are spread by their logarithms."""

    low: float
    high: float

    def place(self, value: float | None) -> float | None:
        """Return where a value lies, 0 to 1; 1 where all are alike."""
        if value is None or value <= 0:
            return None
        if self.high <= self.low:
            return 1.0
        return math.log(value / self.low) / math.log(self.high / self.low)


def span_of(cells: Sequence[Placed], measure: Measure) -> Span | None:
    """Return the span of a measure over the valid cells; None where none has it."""
    known = [value for one in cells if one.values is not None and (value := measure.of(one.values))]
    return Span(min(known), max(known)) if known else None


def heat_table(subject: SpeedSubject, cells: Sequence[Placed], kind: Kind, caption: str) -> h.Element:
    """Return the heat table of one kind, with its buttons, its scale, and the legend of what occurs."""
    measures = MEASURES[kind]
    spans = [span_of(cells, measure) for measure in measures]
    warmths = Counter(v.warmth for one in cells if (v := one.values) is not None and v.warmth is not None)
    marked = kind == "decode" and len(warmths) > 1
    contexts = sorted({one.row.context_tokens for one in cells})
    levels = sorted({one.row.concurrency for one in cells})
    at = {(one.row.context_tokens, one.row.concurrency): one for one in cells}
    any_valid = any(span is not None for span in spans)
    return h.div(".heat")[
        _buttons(subject, kind, measures) if any_valid else None,
        h.div(".table-box", role="region", aria_label=caption, tabindex="0")[
            h.table(style=f"min-width:{7 + 6 * len(levels)}rem")[
                h.caption[caption],
                h.thead[
                    h.tr[
                        h.th(scope="col")["context"],
                        [
                            h.th(".num", scope="col")[
                                f"{level:,}", h.small[" at once"] if level == levels[0] else None
                            ]
                            for level in levels
                        ],
                    ]
                ],
                h.tbody[
                    [
                        h.tr[
                            _row_head([one for one in cells if one.row.context_tokens == context]),
                            [
                                _cell(subject, at.get((context, level)), measures, spans, marked)
                                for level in levels
                            ],
                        ]
                        for context in contexts
                    ]
                ],
            ]
        ],
        h.p(".why"),
        _scale(measures, spans) if any_valid else None,
        _legend(cells, warmths if marked else Counter()),
    ]


def _buttons(subject: SpeedSubject, kind: Kind, measures: Sequence[Measure]) -> h.Element:
    group = f"measure-{kind}-{safe(subject.directory, 200)}"
    return h.fieldset(".measures")[
        h.legend["Large, and by colour:"],
        [
            h.label[h.input(type="radio", name=group, value=str(number), checked=number == 1), measure.name]
            for number, measure in enumerate(measures, 1)
        ],
    ]


def _row_head(cells: Sequence[Placed]) -> h.Element:
    counted = prompt_range(one.row for one in cells)
    tokens = None if counted is None else numbers.between(f"{counted[0]:,}", f"{counted[1]:,}")
    return h.th(scope="row")[
        label_of(cells[0].row), h.small[f"{tokens} tokens"] if tokens is not None else None
    ]


def _cell(
    subject: SpeedSubject,
    one: Placed | None,
    measures: Sequence[Measure],
    spans: Sequence[Span | None],
    marked: bool,
) -> h.Element:
    if one is None:
        return h.td(".unplanned")[h.span(aria_label="not planned")[ABSENT]]
    values = one.values
    if values is None:
        words = WORDS[one.row.status]
        return h.td(class_=f"none {pattern(one.row.status)}")[
            h.a(href=link(subject, one), title=about(one))[h.span[words]]
        ]
    places = [
        None
        if span is None
        else span.place(measure.of(values))
        if measure.better == "more"
        else _less(span, measure.of(values))
        for measure, span in zip(measures, spans, strict=True)
    ]
    style = ";".join(f"--m{n}:{place:.3f}" for n, place in enumerate(places, 1) if place is not None)
    numbers_said = [
        _measure(one, values, measure, number, marked) for number, measure in enumerate(measures, 1)
    ]
    return h.td(".valid", style=style)[h.a(href=link(subject, one), title=about(one))[numbers_said]]


def _less(span: Span, value: float | None) -> float | None:
    place = span.place(value)
    return None if place is None else 1.0 if span.high <= span.low else 1.0 - place


def _measure(one: Placed, values: CellValues, measure: Measure, number: int, marked: bool) -> h.Element:
    raw, said = measure.of(values), measure.said(values)
    after = ""
    if measure is TTFT and marked and values.warmth is not None and raw is not None:
        after = f" {WARMTH_MARK[values.warmth]}"
    before = f"{NOTED} " if number == 1 and one.row.notes else ""
    found = attributes(raw, f"{one.path}.values.{measure.path}") if raw is not None else {}
    shown = ABSENT if said == numbers.ABSENT else said
    return h.span(class_=f"m m{number}")[
        before, h.span(".value", found)[shown], after, h.small[f" {measure.unit}"] if measure.unit else None
    ]


def about(one: Placed) -> str:
    """Say in a line what became of a cell and what its numbers rest on."""
    row, values = one.row, one.values
    said = [f"{name_of(row)}: {WORDS[row.status]}. {safe(row.reason, _REASON_LIMIT)}".rstrip(" .")]
    if values is None:
        said.append(MEANING[row.status])
        late = row.ready_deadline_s
        if row.status is CellStatus.not_ready and late is not None:
            said.append(f"it had {numbers.rough(late)}")
    else:
        if values.ttft is not None and values.ttft.n:
            warmth = "" if values.warmth is None else f", {warm_words(values.warmth)}"
            said.append(f"TTFT of {numbers.count(values.ttft.n, 'request')}{warmth}")
        if values.window_s is not None:
            said.append(f"measured for {numbers.duration(values.window_s * 1e9)}")
    said += [safe(note, _REASON_LIMIT) for note in row.notes]
    return "; ".join(said)


def pattern(status: CellStatus) -> str:
    """Return the class of the pattern of a cell without a number."""
    if status in _NOT_RUN:
        return "p-not-run"
    return "p-broken" if status in _BROKEN else "p-void"


def _scale(measures: Sequence[Measure], spans: Sequence[Span | None]) -> h.Node:
    lines = []
    for number, (measure, span) in enumerate(zip(measures, spans, strict=True), 1):
        if span is None:
            continue
        write = numbers.brief_rate if measure.better == "more" else numbers.brief
        pale, strong = (span.low, span.high) if measure.better == "more" else (span.high, span.low)
        lines.append(
            h.p(class_=f"scale s-m{number}")[
                f"{measure.name}: {write(pale)}",
                h.span(".ramp", role="img", aria_label="pale to strong"),
                f"{write(strong)}; the stronger the better, by logarithm",
            ]
        )
    return lines


def _legend(cells: Sequence[Placed], warmths: Counter[Warmth]) -> h.Element:
    by_status = Counter(one.row.status for one in cells)
    entries: list[h.Node] = []
    for status in CellStatus:
        count = by_status.get(status)
        if not count:
            continue
        entries.append(
            h.li[
                h.span(class_=f"swatch {'valid' if status is CellStatus.valid else pattern(status)}"),
                h.strong[f"{WORDS[status]} ({count:,})"],
                f" {MEANING[status]}",
            ]
        )
    marks = [
        (f"{WARMTH_MARK[one]} ({count:,})", f"{warm_words(one)}: {WARMTH_MEANING[one]}")
        for one, count in sorted(warmths.items())
    ]
    estimated = sum(one.values is not None and one.values.estimated for one in cells)
    if estimated:
        marks.append((f"{ESTIMATED} ({estimated:,})", "estimated: the server does not count tokens along"))
    noted = sum(one.values is not None and bool(one.row.notes) for one in cells)
    if noted:
        marks.append((f"{NOTED} ({noted:,})", "valid, with a note below"))
    entries += [h.li[h.span(".swatch.mark"), h.strong[mark], f" {said}"] for mark, said in marks]
    return h.ul(".legend", aria_label="Legend")[entries]
