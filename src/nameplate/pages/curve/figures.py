"""The figures of a curve: throughput and latency by level, and one against the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import htpy as h

from nameplate.measure.curve_result import CurveResult
from nameplate.pages.chart import Panel, axis, colour, figure, fixed, panel
from nameplate.pages.curve.answer import plan_of
from nameplate.pages.curve.points import Placed, name_of, placed
from nameplate.pages.scale import TimeScale, time_scale

_TINTS = ("s1", "s2", "s3", "s4", "s5", "s6")
_LEVEL = {
    "concurrency": "clients (C)",
    "rate": "requests a second",
    "input": "input tokens",
}
# Levels that span more than this are drawn by doublings.
_LOG_FROM = 8.0


def together_figure(result: CurveResult) -> h.Node:
    """Return output and TTFT by level, two panels with scales of their own and the knee marked; None for a climb."""
    points = placed(result)
    if plan_of(result).kind == "input" or not points:
        return None
    scale = time_scale(held for one in points for held in (one.sample.ttft.p50, one.sample.ttft.p95))
    rows = [_row(result, one, scale) for one in points]
    x = _level_axis(result, points)
    output = panel(
        rows,
        "Output tokens a second by level",
        layer=[
            *_knees(result),
            *_lines(result, rows, x, "output", "output, tok/s"),
        ],
    )
    waits = [
        {**row, "which": which, "value": row[which]}
        for row in rows
        for which in ("p50", "p95")
        if row[which] is not None
    ]
    ttft = panel(
        waits,
        "TTFT p50 and p95 by level",
        layer=[*_knees(result), *_waiting(result, waits, x, scale)],
    )
    return figure(
        "More load: what it gives, and what it costs those who wait",
        "Each panel has a scale of its own. "
        + (
            "Each point is a trial, the line goes through the middle one of each level. "
            if any(not one.middle for one in points)
            else "Each point is the trial of a level. "
        )
        + ("The dashed line is the knee." if _has_knee(result) else "No knee is marked: none was found."),
        (output, ttft),
        h.p["Every trial is a row of the ", h.a(href="#levels")["table of levels"], "."],
    )


def _has_knee(result: CurveResult) -> bool:
    return any(curve.knee.level is not None for curve in result.curves)


def against_figure(result: CurveResult) -> h.Node:
    """Return throughput against latency, a point a level in the order of load; None for a climb or single level."""
    points = [one for one in placed(result) if one.middle and one.sample.ttft.p50 is not None]
    if plan_of(result).kind == "input" or len(points) < 2:
        return None
    scale = time_scale(one.sample.ttft.p50 for one in points)
    rows = [_row(result, one, scale) for one in points]
    values = [row["p50"] for row in rows if isinstance(row["p50"], float)]
    log = bool(values) and min(values) > 0 and max(values) > _LOG_FROM * min(values)
    x = axis(
        "p50",
        f"TTFT p50, {scale.unit}{' (logarithmic)' if log else ''}",
        scale={"type": "log", "nice": False, "padding": 24} if log else {"zero": True, "padding": 24},
    )
    y = axis("output", "output, tok/s", scale={"zero": True})
    colouring = _colouring(result)
    path: dict[str, object] = {"x": x, "y": y, "order": {"field": "level"}, "color": colouring}
    # Without a knee a layer of its own would have no extent.
    knee = any(one.knee for one in points)
    ring = {
        "transform": [{"filter": "datum.knee"}],
        "mark": {
            "type": "point",
            "size": 260,
            "filled": False,
            "strokeWidth": 2,
            "color": "var(--ink)",
        },
        "encoding": {"x": x, "y": y},
    }
    drawn = panel(
        rows,
        "Output tokens a second against median TTFT, one point a level, joined in the order of load",
        height=300,
        layer=[
            {
                "mark": {"type": "line", "strokeWidth": 1.2, "opacity": 0.6},
                "encoding": {**path, "detail": {"field": "curve"}},
            },
            {
                "mark": {"type": "point", "size": 70},
                "encoding": {"x": x, "y": y, "color": colouring, "tooltip": _hover(scale)},
            },
            *([ring] if knee else []),
            {
                "mark": {"type": "text", "dy": -13, "color": "var(--soft)"},
                "encoding": {"x": x, "y": y, "text": {"field": "said"}},
            },
        ],
    )
    return figure(
        "Throughput against latency",
        f"Up is more output, right is a longer wait for the first token. Where the line turns right, more load only "
        f"adds waiting.{' The ring is the knee.' if knee else ''}",
        (drawn,),
        h.p["Every point is a row of the ", h.a(href="#levels")["table of levels"], "."],
    )


def users_figure(result: CurveResult) -> h.Node:
    """Return what one user gets, and which share of the server's requests waits; None where neither is known."""
    points = placed(result)
    if plan_of(result).kind == "input" or not points:
        return None
    scale = time_scale(one.sample.ttft.p50 for one in points)
    rows = [_row(result, one, scale) for one in points]
    x = _level_axis(result, points)
    panels: list[Panel] = []
    if any(row["user"] is not None for row in rows):
        panels.append(
            panel(
                rows,
                "Output tokens a second that one user gets, by level",
                layer=[*_knees(result), *_lines(result, rows, x, "user", "tok/s per user, p50")],
            )
        )
    if any(row["waiting"] is not None for row in rows):
        panels.append(
            panel(
                rows,
                "Share of the server's requests that wait, by level",
                layer=[
                    *_knees(result),
                    *_lines(
                        result,
                        rows,
                        x,
                        "waiting",
                        "share of requests that wait",
                        {"domain": [0, 1]},
                        {"format": "%"},
                    ),
                ],
            )
        )
    if not panels:
        return None
    return figure(
        "What one user gets, and how many of them wait",
        "Per user is 1 / ITL of a request, never the aggregate divided by the clients. Waiting is the server's own "
        "gauge over running and waiting together, sampled once a second.",
        panels,
        h.p["Every trial is a row of the ", h.a(href="#levels")["table of levels"], "."],
    )


def climb_figure(result: CurveResult) -> h.Node:
    """Return TTFT and prefill speed of single requests by their length; None for a curve of clients or rates."""
    points = placed(result)
    if plan_of(result).kind != "input" or not points:
        return None
    scale = time_scale(one.point.whole.ttft.max for one in points)
    rows = []
    for one in points:
        ttft, alone, usage = one.point.whole.ttft, one.point.alone, one.point.kv_usage
        rows.append(
            {
                "level": one.row.load,
                "said": one.said,
                "p50": scale.of(ttft.p50),
                "low": scale.of(ttft.min),
                "high": scale.of(ttft.max),
                "prefill": None if alone is None else _six(alone.prefill_counted.p50),
                "used": None if usage is None or not usage.max else _six(usage.max),
                "resident": _six(one.point.resident_share),
                "curve": "",
            }
        )
    x = _level_axis(result, points)
    waits = panel(
        rows,
        "Median TTFT of single cold prompts by length, with lowest and highest",
        layer=[
            *_border(result),
            {
                "mark": {"type": "rule", "color": "var(--s2)"},
                "encoding": {"x": x, "y": axis("low", f"TTFT, {scale.unit}"), "y2": {"field": "high"}},
            },
            *_lines(result, rows, x, "p50", f"TTFT, {scale.unit}", tint="s2"),
        ],
    )
    speed = panel(
        rows,
        "Prefill tokens a second by length",
        layer=[*_border(result), *_lines(result, rows, x, "prefill", "prefill, tok/s")],
    )
    panels = [waits, speed]
    if any(row["resident"] is not None for row in rows):
        share = axis("resident", "share of the KV pool", scale={"zero": True}, axis={"format": ".1%"})
        panels.append(
            panel(
                rows,
                "Share of the KV pool: what one request's tokens are of it, and the most that was sampled in use",
                layer=[
                    *_border(result),
                    {
                        "mark": {"type": "line", "point": {"color": "var(--s4)"}, "color": "var(--s4)"},
                        "encoding": {"x": x, "y": share},
                    },
                    {
                        "transform": [{"filter": "isValid(datum.used)"}],
                        "mark": {"type": "point", "shape": "cross", "color": "var(--s5)"},
                        "encoding": {"x": x, "y": {**share, "field": "used"}},
                    },
                ],
            )
        )
    border = " The dashed line is where the context ends." if _border(result) else ""
    return figure(
        "One request at a time: the longer the prompt, the longer the wait",
        f"Lines from lowest to highest of the prompts of each length. Crosses are the KV pool's use as sampled once a "
        f"second: a short request can pass unseen.{border}",
        panels,
        h.p["Every length is a row of the ", h.a(href="#levels")["table of levels"], "."],
    )


def _row(result: CurveResult, one: Placed, scale: TimeScale) -> dict[str, object]:
    point, sample = one.point, one.sample
    share = None
    if point.running is not None and point.waiting is not None:
        both = point.running.mean + point.waiting.mean
        share = point.waiting.mean / both if both else None
    return {
        "level": one.row.load,
        "said": one.said,
        "trial": point.trial,
        "curve": name_of(result, one.curve),
        "middle": one.middle,
        "knee": one.knee,
        "output": _six(sample.output_per_s),
        "p50": scale.of(sample.ttft.p50),
        "p95": scale.of(sample.ttft.p95),
        "user": _six(sample.per_user.p50),
        "waiting": _six(share),
    }


def _level_axis(result: CurveResult, points: Sequence[Placed]) -> dict[str, object]:
    loads = sorted({one.row.load for one in points})
    log = loads[0] > 0 and loads[-1] > _LOG_FROM * loads[0]
    ticks: dict[str, object] = {"values": loads} if log and len(loads) <= 12 else {}
    return axis(
        "level",
        _LEVEL[plan_of(result).kind],
        scale={"type": "log", "base": 2, "nice": False, "padding": 14}
        if log
        else {"zero": False, "padding": 14},
        axis={**ticks, "format": ",~g"},
    )


def _colouring(result: CurveResult, tint: str = "s1") -> dict[str, object]:
    names = [name_of(result, at) for at in range(len(result.curves))]
    if len(names) < 2:
        return dict(fixed(tint))
    return colour("curve", names, [_TINTS[at % len(_TINTS)] for at in range(len(names))], "limits")


def _lines(
    result: CurveResult,
    rows: Sequence[dict[str, object]],
    x: dict[str, object],
    field: str,
    title: str,
    scale: dict[str, object] | None = None,
    ticks: dict[str, object] | None = None,
    tint: str = "s1",
) -> list[dict[str, object]]:
    """Return a value by level: a line through the middle trials and every trial as a point."""
    y = axis(field, title, scale=scale or {"zero": True})
    if ticks:
        y["axis"] = ticks
    colouring = _colouring(result, tint)
    encoding = {"x": x, "y": y, "color": colouring}
    middle = [{"filter": "datum.middle"}] if any("middle" in row for row in rows) else []
    known = {"filter": f"isValid(datum.{field})"}
    hover = [{"field": "said", "title": "level"}, {"field": field, "title": title, "format": ",.4~g"}]
    return [
        {
            "transform": [known, *middle],
            "mark": {"type": "line"},
            "encoding": {**encoding, "detail": {"field": "curve"}},
        },
        {"transform": [known], "mark": {"type": "point"}, "encoding": {**encoding, "tooltip": hover}},
    ]


def _waiting(
    result: CurveResult, rows: Sequence[dict[str, object]], x: dict[str, object], scale: TimeScale
) -> list[dict[str, object]]:
    """Return TTFT p50 and p95: two lines, the p95 dashed."""
    values = [value for row in rows if isinstance(value := row["value"], float)]
    log = bool(values) and min(values) > 0 and max(values) > _LOG_FROM * min(values)
    y = axis(
        "value",
        f"TTFT, {scale.unit}{' (logarithmic)' if log else ''}",
        scale={"type": "log"} if log else {"zero": True},
    )
    dash = {
        "field": "which",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["p50", "p95"], "range": [[1, 0], [5, 3]]},
    }
    encoding = {"x": x, "y": y, "color": _colouring(result, "s2")}
    return [
        {
            "transform": [{"filter": "datum.middle"}],
            "mark": {"type": "line"},
            "encoding": {**encoding, "strokeDash": dash, "detail": {"field": "curve"}},
        },
        {"mark": {"type": "point"}, "encoding": {**encoding, "tooltip": _hover(scale)}},
    ]


def _hover(scale: TimeScale) -> list[dict[str, object]]:
    return [
        {"field": "said", "title": "level"},
        {"field": "trial", "title": "trial"},
        {"field": "output", "title": "output, tok/s", "format": ",.4~g"},
        {"field": "p50", "title": f"TTFT p50, {scale.unit}", "format": ",.4~g"},
        {"field": "p95", "title": f"TTFT p95, {scale.unit}", "format": ",.4~g"},
    ]


def _knees(result: CurveResult) -> list[dict[str, object]]:
    """Return each curve's knee as a dashed line across its panel."""
    levels = sorted({curve.knee.level for curve in result.curves if curve.knee.level is not None})
    return _rule([(level, "knee") for level in levels])


def _border(result: CurveResult) -> list[dict[str, object]]:
    border, plan = result.border, plan_of(result)
    if border is None:
        return []
    end = border.refused_tokens
    if border.source == "told" and border.context_tokens is not None:
        end = plan.longest_input(border.context_tokens)
    return [] if end is None else _rule([(float(end), "context")])


def _rule(marks: Sequence[tuple[float, str]]) -> list[dict[str, object]]:
    if not marks:
        return []
    place = {"x": {"field": "at", "type": "quantitative"}}
    words = {"type": "text", "align": "right", "baseline": "top", "dx": -5, "color": "var(--soft)"}
    layer: list[dict[str, object]] = [
        {"mark": {"type": "rule", "strokeDash": [5, 4], "color": "var(--ink)"}, "encoding": place},
        {"mark": words, "encoding": {**place, "y": {"value": 0}, "text": {"field": "said"}}},
    ]
    return [{"data": {"values": [{"at": at, "said": said} for at, said in marks]}, "layer": layer}]


def _six(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


FIGURES: tuple[Callable[[CurveResult], h.Node], ...] = (
    together_figure,
    against_figure,
    users_figure,
    climb_figure,
)
