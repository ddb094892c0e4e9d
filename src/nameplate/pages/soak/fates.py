"""What became of every request of a soak: the sum, drawn and in numbers, and each one without an end by its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import htpy as h

from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.segment import Counts, Unfinished
from nameplate.pages.chart import Panel, axis, figure, panel
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.values import value
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_fates import FATE, at_end_words
from nameplate.report.soak_words import moment
from nameplate.verdict.gate import MEANING, Gate

# Rows of the table of those without an end; the others are named by their numbers alone.
MOST_LEFT = 500
# Runs of numbers that are spelled out before the rest is counted.
MOST_RUNS = 500
_PATH = "result.counts"
# Failures of several names, the first in the colour of failure.
_FAILURES = ("bad", "s5", "s2", "s4", "s6")


def fates_section(result: SoakResult) -> h.Element:
    """Return the sum of all requests, and every request that was left without an end."""
    return h.section(aria_label="The fate of every request")[
        h.h2["The fate of every request"],
        _sum(result.counts),
        _bars(result),
        _left(result),
    ]


def _sum(counts: Counts) -> h.Element:
    def part(name: str) -> h.Element:
        held: int = getattr(counts, name)
        return h.span[value(f"{held:,}", held, f"{_PATH}.{name}"), f" {name}"]

    return h.p[
        h.strong[
            part("sent"),
            " = ",
            part("ok"),
            " + ",
            part("failed"),
            " + ",
            part("cancelled"),
            " + ",
            part("unfinished"),
        ],
        h.span(".soft")[
            " Nothing is left over: ended well, failed, cut by us, or alive when observation ended."
            if counts.balanced
            else " The sum does not hold: the evidence is damaged."
        ],
    ]


def _parts(result: SoakResult) -> list[tuple[str, str, int, str, str]]:
    """Return (what, meaning, count, colour, path) of every fate that occurs; failures by name."""
    counts = result.counts
    found = [("ok", "ended well, with all of its output", counts.ok, "good", f"{_PATH}.ok")]
    for name, count in counts.failed_by.items():
        meaning = MEANING[Gate(name)] if name in set(Gate) else ""
        found.append((f"failed: {_words(name)}", meaning, count, "bad", f"{_PATH}.failed_by.{name}"))
    left = Counter(
        ("cancelled" if request.outcome == "cancelled" else "unfinished", request.fate)
        for segment in result.segments
        for request in segment.unfinished
    )
    for name, count, colour in (
        ("cancelled", counts.cancelled, "warn"),
        ("unfinished", counts.unfinished, "none"),
    ):
        said = ", ".join(f"{number:,} {FATE[fate]}" for (end, fate), number in left.items() if end == name)
        meaning = {
            "cancelled": "cut by our own client when the drain was over",
            "unfinished": "alive when observation ended",
        }[name]
        found.append(
            (name, f"{meaning}{f' ({said})' if said and count else ''}", count, colour, f"{_PATH}.{name}")
        )
    return found


def _words(name: str) -> str:
    return safe(name, 60).replace("_", " ")


def _bars(result: SoakResult) -> h.Node:
    parts = [part for part in _parts(result) if part[2] or part[0] in ("ok", "cancelled", "unfinished")]
    sent = result.counts.sent
    drawn = [(name, count, colour) for name, _, count, colour, _ in parts if count]
    panels = [_bar(drawn, f"All {sent:,} requests by what became of them", "requests sent")] if drawn else []
    rest = [part for part in drawn if part[0] != "ok"]
    if rest and len(rest) < len(drawn):
        count = sum(part[1] for part in rest)
        panels.append(_bar(rest, f"The {count:,} that did not end well, alone", "of these alone"))
    columns = (
        Column("fate", kind="text"),
        Column("requests"),
        Column("share of\nsent", "share of sent"),
        Column("meaning", kind="text"),
    )
    rows: list[list[Cell | str]] = [
        [
            name,
            Cell(f"{count:,}", count, path),
            Cell(numbers.share(count / sent, 2) if sent else None, count / sent if sent else None),
            Cell(safe(meaning, 400), classes="words"),
        ]
        for name, meaning, count, _, path in parts
    ]
    counts = result.counts
    for name, meaning in (
        ("recovered", "of these ended, but their rows were lost with the process and rebuilt from raw reads"),
        ("never_sent", "were due and not sent when the process ended; in no sum"),
        ("untraced", "indices with neither row nor record, of a killed process' last second"),
        ("duplicates", "further rows of one request: there must be none"),
    ):
        held: int = getattr(counts, name)
        if held:
            rows.append([_words(name), Cell(f"{held:,}", held, f"{_PATH}.{name}"), Cell(None), meaning])
    numbers_table = table(columns, rows, "Requests by what became of them", sortable=False)
    if not panels:
        return numbers_table
    return h.fragment[
        figure(
            f"{numbers.share(counts.ok / sent, 2)} of {sent:,} requests ended well",
            "Sent = ok + failed + cancelled + unfinished. The second bar draws those that did not end well alone."
            if len(panels) > 1
            else "Sent = ok + failed + cancelled + unfinished.",
            panels,
            wide=True,
        ),
        numbers_table,
    ]


def _bar(parts: Sequence[tuple[str, int, str]], about: str, title: str) -> Panel:
    failures = 0
    values, names, colours = [], [], []
    for order, (name, count, tint) in enumerate(parts):
        values.append({"fate": name, "n": count, "order": order})
        names.append(name)
        if tint == "bad":
            tint = _FAILURES[failures % len(_FAILURES)]
            failures += 1
        colours.append(f"var(--{tint})")
    scale = {"domain": names, "range": colours}
    legend = {"title": None, "columns": 3}
    return panel(
        values,
        about,
        height=34,
        mark={"type": "bar", "stroke": "var(--card)"},
        encoding={
            "x": axis("n", title, stack="zero", scale={"nice": False}, axis={"format": ",d", "tickCount": 5}),
            "color": {"field": "fate", "type": "nominal", "scale": scale, "legend": legend},
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [
                {"field": "fate", "title": "fate"},
                {"field": "n", "title": "requests", "format": ","},
            ],
        },
    )


def _left(result: SoakResult) -> h.Node:
    """Name every request that had no end; those beyond the table's rows by their numbers."""
    left = [
        (f"result.segments.{at}.unfinished.{place}", request)
        for at, segment in enumerate(result.segments)
        for place, request in enumerate(segment.unfinished)
    ]
    if not left:
        return h.p["Every request came to an end of its own: none was left when observation ended."]
    columns = (
        *((Column("segment", kind="text"),) if len(result.segments) > 1 else ()),
        Column("request"),
        Column("sent at"),
        Column("waited", "waited, ns"),
        Column("fate", kind="text"),
        Column("tokens\nso far", "tokens so far"),
        Column("ended as", kind="text"),
        Column("known from", kind="text"),
    )
    rows = [_row(result, request, path) for path, request in left[:MOST_LEFT]]
    more = left[MOST_LEFT:]
    return h.div[
        h.h3[f"Left without an end: {numbers.count(len(left), 'request')}"],
        [h.p[safe(said, 400)] for said in at_end_words(result)],
        table(columns, rows, "Requests without an end"),
        _named([request for _, request in more]) if more else None,
    ]


def _row(result: SoakResult, request: Unfinished, path: str) -> list[Cell | str]:
    at_s = None if request.sent_wall_ns is None else (request.sent_wall_ns - result.began_wall_ns) / 1e9
    tokens = numbers.count(request.tokens)
    if request.tokens is not None and not request.counted:
        tokens = f"{tokens} events"
    fate = FATE[request.fate] if request.bytes_kept else f"at least: {FATE[request.fate]}"
    own: list[Cell | str] = []
    if len(result.segments) > 1:
        own.append(Cell(safe(request.segment.rpartition(".")[2], 40), request.segment))
    return [
        *own,
        Cell(f"{request.index:,}", request.index, f"{path}.index"),
        Cell(moment(at_s), at_s),
        Cell(numbers.brief(request.waited_ns), request.waited_ns, f"{path}.waited_ns"),
        Cell(fate, request.fate, f"{path}.fate"),
        Cell(tokens, request.tokens, f"{path}.tokens"),
        Cell(safe(request.outcome, 40), request.outcome, f"{path}.outcome"),
        "raw reads" if request.rebuilt else "its row",
    ]


def _named(requests: Sequence[Unfinished]) -> h.Element:
    """Name further requests by their numbers, by segment and fate."""
    groups: dict[tuple[str, str], list[int]] = {}
    for request in requests:
        groups.setdefault((request.segment, request.fate), []).append(request.index)
    return h.details[
        h.summary[f"The other {len(requests):,}, by their numbers"],
        [
            h.p[f"{safe(segment, 60)}, {FATE.get(fate, fate)}: {ranges(indices)}"]
            for (segment, fate), indices in groups.items()
        ],
    ]


def ranges(indices: Iterable[int]) -> str:
    """Write numbers as runs: `3, 7-12, 40`; beyond MOST_RUNS runs the rest is counted."""
    runs: list[list[int]] = []
    for index in sorted(set(indices)):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    said = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs[:MOST_RUNS])
    rest = sum(high - low + 1 for low, high in runs[MOST_RUNS:])
    return f"{said} and {rest:,} more (`unfinished` in soak.json)" if rest else said
