"""What a limit is made of: the mean wait of each level, taken apart by the server's own histograms."""

from __future__ import annotations

from collections.abc import Mapping

import htpy as h

from nameplate.contract.levels import Levels
from nameplate.measure.level_figures import LevelFigures
from nameplate.measure.limit import Limit
from nameplate.measure.plate import PlateShape
from nameplate.pages.chart import axis, colour, figure, panel
from nameplate.pages.scale import time_scale
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import paragraphs
from nameplate.report import numbers
from nameplate.report.limit import limit_words
from nameplate.report.waits import between

_PARTS = ("queue", "prefill", "rest")
_COLOURS = ("s2", "s1", "none")


def limit_section(shape: PlateShape, levels: Levels, path: str) -> h.Node:
    """Return what the wait is made of, in words, as bars and as a table; nothing where no level failed."""
    limit = shape.limit
    if limit is None:
        return None
    names = level_names(shape, levels)
    words = limit_words(limit, names.get("fail", "the failing level"))
    return [
        h.h3["What the limit is made of"],
        paragraphs(words),
        _figure(limit, names, path)
        if any(level.split for level in limit.levels)
        else _table(limit, names, path),
    ]


def level_names(shape: PlateShape, levels: Levels) -> dict[str, str]:
    """Return what people call the sides of a limit: alone, the passing level, the failing level."""
    found = {"pass": shape.pass_level, "fail": shape.fail_level}
    return {"alone": "alone", **{side: levels.name(at) for side, at in found.items() if at is not None}}


def _parts(level: LevelFigures) -> tuple[int | None, ...]:
    return level.queue_mean_ns, level.prefill_mean_ns, level.rest_mean_ns


def _figure(limit: Limit, names: Mapping[str, str], path: str) -> h.Element:
    split = [level for level in limit.levels if level.split]
    scale = time_scale([level.ttft_mean_ns for level in split])
    order = [names.get(level.side, level.side) for level in split]
    values = [
        {"level": name, "part": part, "mean": scale.of(max(ns, 0)), "place": place, "n": level.n}
        for level, name in zip(split, order, strict=True)
        for place, (part, ns) in enumerate(zip(_PARTS, _parts(level), strict=True))
        if ns is not None
    ]
    drawn = panel(
        values,
        "Mean time to first token of each level as queue, prefill and rest",
        height=44 * len(order) + 10,
        mark={"type": "bar", "height": {"band": 0.62}},
        encoding={
            "x": axis("mean", f"mean TTFT, {scale.unit}", stack="zero"),
            "y": {"field": "level", "type": "nominal", "sort": order, "title": None},
            "color": colour("part", _PARTS, _COLOURS, "part"),
            "order": {"field": "place", "type": "quantitative"},
            "tooltip": [
                {"field": "level"},
                {"field": "part"},
                {"field": "mean", "title": f"mean, {scale.unit}"},
                {"field": "n", "title": "requests"},
            ],
        },
    )
    return figure(
        "Where the wait for the first token goes",
        "Means add up, quantiles do not, so means are shown. Queue and prefill are the server's own "
        "histograms; the rest is "
        "network, client and the server's front.",
        (drawn,),
        _table(limit, names, path),
    )


def _table(limit: Limit, names: Mapping[str, str], path: str) -> h.Element:
    columns = (
        Column("level", kind="text"),
        Column("n"),
        Column("mean TTFT", "mean TTFT, ns"),
        Column("queue", "queue, ns"),
        Column("prefill", "prefill, ns"),
        Column("rest", "rest, ns"),
        Column("queue p95\nwithin", kind="text"),
        Column("running\nmean, most", kind="text"),
        Column("waiting\nmean, most", kind="text"),
        Column("KV most", "KV most, share"),
        Column("preempted"),
    )
    rows: list[tuple[Cell | str, ...]] = []
    for at, level in enumerate(limit.levels):
        here = f"{path}.limit.levels.{at}"
        rows.append(
            (
                names.get(level.side, level.side),
                Cell(f"{level.n:,}", level.n, f"{here}.n"),
                *(
                    Cell(numbers.duration(getattr(level, name)), getattr(level, name), f"{here}.{name}")
                    for name in ("ttft_mean_ns", "queue_mean_ns", "prefill_mean_ns", "rest_mean_ns")
                ),
                between(level.queue_p95),
                "" if level.running is None else f"{level.running.mean:.1f}, {level.running.max:,.0f}",
                "" if level.waiting is None else f"{level.waiting.mean:.1f}, {level.waiting.max:,.0f}",
                Cell(
                    None if level.kv_usage is None else numbers.share(level.kv_usage.max),
                    None if level.kv_usage is None else level.kv_usage.max,
                ),
                Cell(numbers.count(level.preemptions), level.preemptions, f"{here}.preemptions"),
            )
        )
    return table(columns, rows, "What each level's wait is made of")
