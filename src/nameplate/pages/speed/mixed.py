"""Mixed prefill: what one long prompt costs the streams beside it, and they cost it."""

from __future__ import annotations

from collections.abc import Sequence

import htpy as h

from nameplate.measure.mixed import Mixed, Part
from nameplate.measure.speed_result import CellValues
from nameplate.pages.chart import axis, figure, fixed, panel
from nameplate.pages.speed.heat import about
from nameplate.pages.speed.placed import Placed
from nameplate.pages.subject import SpeedSubject
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.values import ABSENT, value
from nameplate.pages.words import badge, facts
from nameplate.report import numbers
from nameplate.report.cells import name_of
from nameplate.report.matrix import ESTIMATED
from nameplate.report.mixed import setting

_PARTS = ("before", "during", "after")


def mixed_section(subject: SpeedSubject, cells: Sequence[Placed]) -> h.Node:
    """Return what happened when a long prompt came among decoding streams; nothing where that was not planned."""
    if not cells:
        return None
    said = setting(subject.result, cells[0].row)
    return h.section(aria_label="Mixed prefill")[
        h.h2["Mixed prefill"],
        h.p[f"{said[:1].upper()}{said[1:]}."],
        [_cell(one) for one in cells],
    ]


def _cell(one: Placed) -> h.Node:
    values = one.values
    if values is None or values.mixed is None:
        return h.p[badge(one.row.status.value), " ", about(one)]
    return [_facts(one, values, values.mixed), _timeline(one, values.mixed)]


def _facts(one: Placed, values: CellValues, mixed: Mixed) -> h.Element:
    at = f"{one.path}.values"
    cached = mixed.arrival_cached_tokens
    prompt: list[h.Node] = [
        "TTFT ",
        value(numbers.duration(mixed.ttft_ns), mixed.ttft_ns, f"{at}.mixed.ttft_ns"),
        " under load, ",
        value(numbers.duration(values.alone_ttft_ns), values.alone_ttft_ns, f"{at}.alone_ttft_ns"),
        " alone",
    ]
    if values.slowdown is not None:
        prompt += [": ", value(f"{values.slowdown:.2f}", values.slowdown, f"{at}.slowdown"), " times as long"]
    counted = mixed.arrival_prompt_tokens
    return facts(
        [
            ("The long prompt", prompt),
            (
                "Its tokens",
                ABSENT
                if counted is None
                else [
                    value(f"{counted:,}", counted, f"{at}.mixed.arrival_prompt_tokens"),
                    "" if cached is None else f", {cached:,} of them cached",
                ],
            ),
            *((f"All streams {name}", _part(mixed, name, at)) for name in _PARTS),
        ]
    )


def _part(mixed: Mixed, name: str, at: str) -> h.Node:
    part: Part | None = getattr(mixed, name)
    if part is None:
        return ABSENT
    said = (ESTIMATED if mixed.estimated else "") + numbers.rate(part.rate, "tok/s")
    before = mixed.before
    share = "" if before is None or part is before or not before.rate else f" ({part.rate / before.rate:.0%})"
    return [value(said, part.rate, f"{at}.mixed.{name}.rate"), share]


def _timeline(one: Placed, mixed: Mixed) -> h.Node:
    if not mixed.timeline or mixed.before is None:
        return None
    slice_s = mixed.slice_ns / 1e9
    rows = [
        {"s": at * slice_s, "end": (at + 1) * slice_s, "rate": rate} for at, rate in enumerate(mixed.timeline)
    ]
    # Room above the bars for the words.
    top = max(*mixed.timeline, 1.0) * 1.2
    zero = mixed.before.window.begin_ns
    marks = [
        {"s": (part.window.begin_ns - zero) / 1e9, "what": words}
        for part, words in ((mixed.during, "long prompt sent"), (mixed.after, "its first output"))
        if part is not None
    ]
    # The two lines can be close: one has its words at its left, the other at its right.
    sides = (({"align": "right", "dx": -4}, marks[:1]), ({"align": "left", "dx": 4}, marks[1:]))
    x = axis("s", "seconds since the streams were ready", scale={"nice": False}, axis={"tickCount": 8})
    drawn = panel(
        rows,
        "Output tokens a second of all streams over time, and when the long prompt was sent and answered",
        height=180,
        layer=[
            {
                "mark": {"type": "bar", "binSpacing": 0},
                "encoding": {
                    "x": x,
                    "x2": {"field": "end"},
                    "y": axis("rate", "all streams, tok/s", scale={"domain": [0, top]}),
                    "y2": {"datum": 0},
                    "color": fixed("s1"),
                    "tooltip": [
                        {"field": "s", "title": "from, s"},
                        {"field": "rate", "title": "tok/s", "format": ",.4~r"},
                    ],
                },
            },
            {
                "data": {"values": marks},
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"x": x, "color": fixed("bad")},
            },
            *(
                {
                    "data": {"values": some},
                    "mark": {"type": "text", "baseline": "top", **side},
                    "encoding": {"x": x, "y": {"value": 2}, "text": {"field": "what"}, "color": fixed("ink")},
                }
                for side, some in sides
            ),
        ],
    )
    each = numbers.limit(mixed.slice_ns)
    numbers_of = table(
        (Column("from, s"), Column("tok/s")),
        [
            [
                Cell(f"{at * slice_s:.2f}", at * slice_s),
                Cell(numbers.rate(rate), rate, f"{one.path}.values.mixed.timeline.{at}"),
            ]
            for at, rate in enumerate(mixed.timeline)
        ],
        f"All streams of {name_of(one.row)} over time",
    )
    return figure(_title(mixed), f"Output of all streams in slices of {each}.", (drawn,), numbers_of)


def _title(mixed: Mixed) -> str:
    if mixed.during is None or mixed.before is None or not mixed.before.rate:
        return "The streams around the long prompt"
    return f"While the long prompt is read, the streams keep {mixed.during.rate / mixed.before.rate:.0%} of their rate"
