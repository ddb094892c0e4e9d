"""Empirical distributions: the share of a sample that came within a time, thinned exactly at ranks.

At the value of rank k of n the curve stands at k/n. Requests that never came to a value keep it below 1. Where a
sample has more values than a figure has room for, some ranks are shown and each of them exactly; none is averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from nameplate.contract.slo import Slo
from nameplate.pages.chart import Panel, axis, colour, panel
from nameplate.pages.scale import TimeScale
from nameplate.report import numbers

# More points than this change no pixel of a panel.
POINTS = 300
# Values that differ by more than this factor are read on a logarithmic axis.
_LOG_FACTOR = 50


class Ecdf(Struct, frozen=True, kw_only=True):
    """Hold one sample's curve: `points` are (value, share of n at or below it), ascending, each exact.

    `n` counts all members, `never` those without a value.
    """

    n: int
    never: int
    points: tuple[tuple[float, float], ...]


class Curve(Struct, frozen=True, kw_only=True):
    """Hold one named curve of a panel."""

    name: str
    group: str
    ecdf: Ecdf


class Mark(Struct, frozen=True, kw_only=True):
    """Hold one marked point of a panel: a value at a share, and what it is."""

    value: float
    share: float
    said: str


def ecdf(values: Iterable[float], never: int = 0, most: int = POINTS, shares: Sequence[float] = ()) -> Ecdf:
    """Return the distribution of values and of `never` further members that stand beyond all of them.

    At most some `most` ranks are kept: the first, the last, those around each of `shares`, and others evenly.
    """
    ordered = sorted(values)
    n = len(ordered) + never
    if not ordered:
        return Ecdf(n=n, never=never, points=())
    last = len(ordered) - 1
    if last < most:
        ranks: Iterable[int] = range(last + 1)
    else:
        kept = {round(at * last / (most - 1)) for at in range(most)}
        for share in shares:
            low = int(share * (n - 1))
            kept |= {rank for rank in (low, low + 1) if rank <= last}
        ranks = sorted(kept)
    points: dict[float, float] = {}
    for rank in ranks:
        # Equal values are one step, as high as the last of them.
        value = ordered[rank]
        points[value] = max(points.get(value, 0.0), (_last_of(ordered, rank) + 1) / n)
    return Ecdf(n=n, never=never, points=tuple(points.items()))


def _last_of(ordered: Sequence[float], rank: int) -> int:
    value, low, high = ordered[rank], rank, len(ordered) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if ordered[middle] == value:
            low = middle
        else:
            high = middle - 1
    return low


def ecdf_panel(
    curves: Sequence[Curve],
    name: str,
    about: str,
    scale: TimeScale,
    *,
    limit: Slo | None = None,
    at_share: float | None = None,
    marks: Sequence[Mark] = (),
    colours: Mapping[str, str],
    title: str | None = None,
    lowest: float = 0.0,
    share_of: str = "request",
    height: int = 220,
    kind: str = "",
) -> Panel:
    """Return curves in one panel, with the limit as a rule and marked points; `colours` are those of the groups.

    Values are in nanoseconds; `limit` is an SLO's, `at_share` draws a line across, shares below `lowest` are cut off.
    `title` heads the legend, which a single curve does not need. ValueError where no curve has a point.
    """
    drawn = [curve for curve in curves if curve.ecdf.points]
    if not drawn:
        raise ValueError("no curve has a point")
    log = _is_log([value for curve in drawn for value, _ in curve.ecdf.points])
    held = [
        {
            "c": curve.name,
            "g": curve.group,
            "points": [
                (scale.of(value), float(f"{share:.4g}"))
                # The step up to the first value belongs to the curve.
                for value, share in ((curve.ecdf.points[0][0], 0.0), *curve.ecdf.points)
                if not log or value > 0
            ],
        }
        for curve in drawn
    ]
    place = axis(
        "x", f"{name}, {scale.unit}", scale={"type": "log"} if log else {"zero": False, "nice": True}
    )
    share_axis = axis(
        "y",
        f"share of {numbers.count(drawn[0].ecdf.n, share_of)}",
        scale={"domain": [lowest, 1]},
        axis={"format": "%"},
    )
    groups = list(dict.fromkeys(curve.group for curve in drawn))
    several = len(groups) > 1
    layers: list[dict[str, object]] = []
    if limit is not None and limit.limit_ns is not None:
        layers.append(_limit(limit, scale, lowest))
    if at_share is not None:
        layers.append(
            {
                "data": {"values": [{"y": at_share}]},
                "mark": {"type": "rule", "strokeDash": [2, 3], "color": "var(--soft)"},
                "encoding": {"y": share_axis},
            }
        )
    layers.append(
        {
            "mark": {
                "type": "line",
                "interpolate": "step-after",
                "strokeWidth": 1.8,
                "clip": True,
                "point": {"opacity": 0, "size": 50},
            },
            "encoding": {
                "x": place,
                "y": share_axis,
                "detail": {"field": "c", "type": "nominal"},
                "color": {
                    **colour("g", groups, [colours[group] for group in groups], title),
                    **({} if several else {"legend": None}),
                },
                "tooltip": [
                    {"field": "c", "title": "sample"},
                    {"field": "x", "title": f"{name}, {scale.unit}"},
                    {"field": "y", "title": "share at or below", "format": ".2%"},
                ],
            },
        }
    )
    if marks:
        layers.append(
            _marked(marks, scale, [value for curve in drawn for value, _ in curve.ecdf.points], log)
        )
    if kind:
        # Only those with the same layers resemble each other.
        kind = f"{kind}-{len(layers)}{int(log)}"
    return panel((), about, height=height, kind=kind, data={"curves": held}, layer=layers)


def _is_log(values: Sequence[float]) -> bool:
    above = [value for value in values if value > 0]
    # Gaps of zero, of events that came in one read, would have no place on it; the curve then begins above them.
    return bool(above) and max(above) > _LOG_FACTOR * min(above)


def _limit(slo: Slo, scale: TimeScale, lowest: float) -> dict[str, object]:
    place = {"field": "limit", "type": "quantitative"}
    return {
        "data": {
            "values": [{"limit": scale.of(slo.limit_ns), "said": f"limit {numbers.limit(slo.limit_ns)}"}]
        },
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [5, 4], "color": "var(--ink)"}, "encoding": {"x": place}},
            {
                "mark": {
                    "type": "text",
                    "color": "var(--soft)",
                    "align": "right",
                    "dx": -5,
                    "baseline": "bottom",
                },
                "encoding": {
                    "x": place,
                    "y": {"datum": lowest + 0.02 * (1 - lowest)},
                    "text": {"field": "said"},
                },
            },
        ],
    }


def _marked(marks: Sequence[Mark], scale: TimeScale, values: Sequence[float], log: bool) -> dict[str, object]:
    """Return the marked points, with their words on the side that has room for them."""
    above = [value for value in values if value > 0] or [1.0]
    middle = math.sqrt(min(above) * max(above)) if log else (min(values) + max(values)) / 2
    left = all(mark.value > middle for mark in marks)
    side = {"align": "right", "dx": -8, "dy": -7} if left else {"align": "left", "dx": 9, "dy": 12}
    encoding = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}}
    rows = [{"x": scale.of(mark.value), "y": mark.share, "said": mark.said} for mark in marks]
    return {
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 75, "color": "var(--ink)"},
                "encoding": {**encoding, "tooltip": [{"field": "said", "title": "judged"}]},
            },
            {
                "mark": {"type": "text", "fontWeight": 600, **side},
                "encoding": {**encoding, "text": {"field": "said"}},
            },
        ],
    }
