"""The curves of a speed study: prefill by context, and decode by simultaneous requests, a line a context.

A cell without a number is a gap in its line: nothing is drawn across it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import htpy as h
from msgspec import Struct

from nameplate.measure.speed_result import CellValues
from nameplate.pages.chart import Panel, axis, figure, fixed, panel
from nameplate.pages.scale import TimeScale, time_scale
from nameplate.pages.speed.columns import rows_table
from nameplate.pages.speed.placed import Placed
from nameplate.pages.subject import SpeedSubject
from nameplate.report import numbers
from nameplate.report.cells import label_of, per_user

_COLOURS = ("s1", "s2", "s3", "s4", "s5", "s6")
# Contexts beyond six repeat the colours with another shape.
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
# Room beside the outermost points of a logarithmic axis, as a factor.
_ROOM = 1.2
# Contexts by thousands of 1,024 as their labels say them; the one just below a server's limit reads as the limit.
_CONTEXT_LABEL = (
    "datum.value % 1024 === 0 ? format(datum.value / 1024, ',') + 'K' : "
    "datum.value % 1024 === 1008 ? format((datum.value + 16) / 1024, ',') + 'K' : format(datum.value, ',')"
)
_BREAKS = {"type": "line", "invalid": "break-paths-show-domains"}


def _log_x(field: str, title: str, known: Sequence[int], label: str | None = None) -> dict[str, object]:
    """Return a logarithmic axis with a tick at each value that was planned."""
    ticks = sorted(set(known))
    held = {
        "values": ticks,
        "grid": False,
        "labelOverlap": "greedy",
        **({"labelExpr": label} if label else {"format": ",d"}),
    }
    domain = [ticks[0] / _ROOM, ticks[-1] * _ROOM]
    return axis(field, title, scale={"type": "log", "base": 2, "domain": domain, "nice": False}, axis=held)


def _log_y(field: str, title: str, values: Sequence[float]) -> dict[str, object]:
    """Return a logarithmic axis around these values; a linear one from zero where they span little."""
    known = [value for value in values if value > 0]
    if not known or max(known) < 20 * min(known):
        return axis(field, title, scale={"zero": True})
    low, high = min(known) / _ROOM, max(known) * _ROOM
    scale = {"type": "log", "domain": [low, high], "nice": False}
    return axis(field, f"{title} (log)", scale=scale, axis={"values": _log_ticks(low, high)})


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 of each power of ten between two values."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{step}e{power}") for power in powers for step in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def prefill_figure(cells: Sequence[Placed]) -> h.Node:
    """Return prompt tok/s and TTFT by context, two panels, with every sample and the range."""
    valid = [one for one in cells if one.values is not None]
    if not valid:
        return None
    scale = time_scale(_ttft(one) for one in valid)
    medians, samples = (
        [_median(one, scale) for one in cells],
        [row for one in valid for row in _samples(one, scale)],
    )
    known = [one.row.context_tokens for one in cells]
    x = _log_x("context", "context, tokens", known, _CONTEXT_LABEL)
    rates = [float(r) for row in (*medians, *samples) if isinstance(r := row["rate"], int | float)]
    times = [float(t) for row in (*medians, *samples) if isinstance(t := row["ttft"], int | float)]
    hover = [
        {"field": "label", "title": "context"},
        {"field": "counted", "title": "prompt tokens"},
        {"field": "by", "title": "tokens"},
        {"field": "rate", "title": "prompt tok/s", "format": ",.4~r"},
        {"field": "ttft", "title": f"TTFT, {scale.unit}", "format": ",.4~r"},
        {"field": "n", "title": "n"},
    ]

    def drawn(field: str, title: str, values: Sequence[float], about: str, *, log: bool) -> Panel:
        y = _log_y(field, title, values) if log else axis(field, title, scale={"zero": True})
        return panel(
            [*medians, *samples],
            about,
            layer=[
                {
                    "transform": [{"filter": "datum.of === 'sample'"}],
                    "mark": {"type": "point", "filled": False, "size": 30, "opacity": 0.7},
                    "encoding": {"x": x, "y": y, "color": fixed("s2"), "tooltip": hover},
                },
                {
                    "transform": [{"filter": "datum.of === 'median'"}],
                    "mark": _BREAKS,
                    "encoding": {"x": x, "y": y, "color": fixed("s1")},
                },
                {
                    "transform": [{"filter": f"datum.of === 'median' && datum.{field} !== null"}],
                    "mark": {"type": "point", "filled": True},
                    "encoding": {"x": x, "y": y, "color": fixed("s1"), "tooltip": hover},
                },
            ],
        )

    most = max(
        sum(row["of"] == "sample" and row["label"] == label_of(one.row) for row in samples) for one in valid
    )
    rings = " Rings are the samples, filled points their medians." if most > 1 else ""
    asked = sum(row["by"] != "counted" for row in medians if row["rate"] is not None)
    nominal = f" Of {asked:,} contexts tokens are nominal: as asked for, not counted." if asked else ""
    gaps = len(cells) - len(valid)
    missing = f" {numbers.count(gaps, 'context')} without a number." if gaps else ""
    return figure(
        _prefill_title(valid),
        f"(Prompt - cached tokens) / TTFT of one request at a time.{rings}{nominal}{missing}",
        (
            drawn("rate", "prompt tok/s", rates, "Prompt tokens a second by context length", log=False),
            drawn("ttft", f"TTFT, {scale.unit}", times, "Time to first token by context length", log=True),
        ),
    )


def _prefill_title(valid: Sequence[Placed]) -> str:
    known = [(rate, one) for one in valid if one.values is not None and (rate := one.values.tokens_per_s)]
    if not known:
        return "Prefill by context"
    rate, best = max(known, key=lambda pair: pair[0])
    if len(known) == 1:
        return f"Prefill at {label_of(best.row)}: {numbers.brief_rate(rate)} tok/s"
    low, worst = min(known, key=lambda pair: pair[0])
    return (
        f"Prefill is fastest at {label_of(best.row)} with {numbers.brief_rate(rate)} tok/s, "
        f"slowest at {label_of(worst.row)} with {numbers.brief_rate(low)}"
    )


def _ttft(one: Placed) -> float | None:
    values = one.values
    if values is None:
        return None
    if values.prefill is not None:
        return values.prefill.ttft_median_ns
    return None if values.ttft is None else values.ttft.p50


def _median(one: Placed, scale: TimeScale) -> dict[str, object]:
    values, prompts = one.values, one.row.prompt_tokens
    prefill = None if values is None else values.prefill
    nominal = prefill is not None and any(sample.nominal for sample in prefill.samples)
    return {
        "of": "median",
        "label": label_of(one.row),
        "context": one.row.context_tokens,
        "counted": None if prompts is None else numbers.between(f"{prompts.low:,}", f"{prompts.high:,}"),
        "by": "nominal" if nominal or prompts is None else "counted",
        "rate": None if values is None else values.tokens_per_s,
        "ttft": scale.of(_ttft(one)),
        "n": None if prefill is None else prefill.n,
    }


def _samples(one: Placed, scale: TimeScale) -> list[dict[str, object]]:
    prefill = None if one.values is None else one.values.prefill
    if prefill is None or prefill.n < 2:
        return []
    return [
        {
            "of": "sample",
            "label": label_of(one.row),
            "context": one.row.context_tokens,
            "counted": f"{sample.prompt_tokens:,}",
            "by": "nominal" if sample.nominal else "counted",
            "rate": sample.rate,
            "ttft": scale.of(sample.ttft_ns),
            "n": 1,
        }
        for sample in prefill.samples
    ]


class Drawn(Struct, frozen=True):
    """Hold a measure that is drawn by simultaneous requests: name, unit, value; `time` is in nanoseconds."""

    name: str
    unit: str
    of: Callable[[CellValues], float | None]
    time: bool = False


_TOTAL = Drawn("total", "tok/s", lambda v: v.tokens_per_s)
_USER = Drawn("per user, median", "tok/s", per_user)
_TTFT = Drawn("TTFT, median", "", lambda v: None if v.ttft is None else v.ttft.p50, time=True)
_POWER = Drawn("GPU power, mean", "W", lambda v: None if v.gpu is None else v.gpu.all_gpus.power_mean_w)
_ENERGY = Drawn("energy", "J a token", lambda v: v.energy_per_token_j)
_SHOWN = ("context", "prompts", "requests", "status", "total", "user", "itl", "ttft", "n")


def decode_figure(subject: SpeedSubject, cells: Sequence[Placed]) -> h.Node:
    """Return rates and latencies of decode by simultaneous requests, a line a context."""
    if len({one.row.concurrency for one in cells if one.values is not None}) < 2:
        return None
    gaps = sum(one.values is None for one in cells)
    broken = f" {numbers.count(gaps, 'cell')} without a number: nothing is drawn across them." if gaps else ""
    return _figure(
        subject,
        cells,
        (_TOTAL, _USER, _TTFT),
        _decode_title(cells),
        f"A line a context, a point a valid cell. Per user is 1 / ITL.{broken}",
        _SHOWN,
    )


def _decode_title(cells: Sequence[Placed]) -> str:
    """Say what more requests at once do at the context that has most numbers."""
    lines: dict[int, list[Placed]] = {}
    for one in cells:
        if one.values is not None and one.values.tokens_per_s:
            lines.setdefault(one.row.context_tokens, []).append(one)
    held = max(lines.values(), key=len, default=[])
    if len(held) < 2:
        return "Decode by requests at once"
    few, *_, many = sorted(held, key=lambda one: one.row.concurrency)
    assert few.values is not None and many.values is not None
    total = (many.values.tokens_per_s or 0) / (few.values.tokens_per_s or 1)
    said = f"At {label_of(few.row)}, {many.row.concurrency:,} requests at once give {total:.1f} times the output of "
    said += f"{few.row.concurrency:,}"
    alone, shared = per_user(few.values), per_user(many.values)
    return said if not alone or shared is None else f"{said}, and each user {shared / alone:.0%} of its rate"


def power_figure(subject: SpeedSubject, cells: Sequence[Placed]) -> h.Node:
    """Return GPU power and energy a token by simultaneous requests; nothing where nobody looked."""
    measures = [
        one
        for one in (_POWER, _ENERGY)
        if any(cell.values is not None and one.of(cell.values) is not None for cell in cells)
    ]
    if not measures:
        return None
    return _figure(
        subject,
        cells,
        measures,
        "What a token costs the GPUs",
        "All of the server's GPUs, over the cell's window.",
        ("context", "requests", "status", "total", "power", "energy"),
    )


def _figure(
    subject: SpeedSubject,
    cells: Sequence[Placed],
    measures: Sequence[Drawn],
    title: str,
    about: str,
    keys: Sequence[str],
) -> h.Node:
    drawn = [panel for one in measures if (panel := _lines(cells, one)) is not None]
    if not drawn:
        return None
    return figure(title, about, drawn, rows_table(subject, cells, title, keys))


def _lines(cells: Sequence[Placed], measure: Drawn) -> Panel | None:
    values = [None if one.values is None else measure.of(one.values) for one in cells]
    known = [value for value in values if value is not None]
    if not known:
        return None
    scale = time_scale(known) if measure.time else None
    unit = measure.unit if scale is None else scale.unit
    shown = [value if scale is None else scale.of(value) for value in values]
    contexts = {one.row.context_tokens: label_of(one.row) for one in cells}
    order = list(dict.fromkeys(contexts.values()))
    rows: list[Mapping[str, object]] = [
        {
            "at": one.row.concurrency,
            "context": label_of(one.row),
            "value": value,
            "status": one.row.status.value,
        }
        for one, value in zip(cells, shown, strict=True)
    ]
    x = _log_x("at", "requests at once", [one.row.concurrency for one in cells])
    y = _log_y("value", f"{measure.name}, {unit}", [value for value in shown if value is not None])
    return panel(
        rows,
        f"{measure.name}, {unit}, by requests at once, one line for each context",
        height=220,
        encoding={"x": x, "y": y, "color": _cycled(order, _colours(len(order)))},
        layer=[
            {"mark": _BREAKS},
            {
                "transform": [{"filter": "datum.value !== null"}],
                "mark": {"type": "point", "filled": True},
                "encoding": {
                    "shape": _cycled(
                        order, [_SHAPES[at // len(_COLOURS) % len(_SHAPES)] for at in range(len(order))]
                    ),
                    "tooltip": [
                        {"field": "context", "title": "context"},
                        {"field": "at", "title": "requests at once"},
                        {"field": "value", "title": f"{measure.name}, {unit}", "format": ",.4~r"},
                    ],
                },
            },
        ],
    )


def _colours(count: int) -> list[str]:
    return [f"var(--{_COLOURS[at % len(_COLOURS)]})" for at in range(count)]


def _cycled(order: Sequence[str], steps: Sequence[str]) -> dict[str, object]:
    """Return an encoding of the context; equal ones of colour and shape share a legend."""
    scale = {"domain": list(order), "range": list(steps)}
    return {
        "field": "context",
        "type": "nominal",
        "title": "context",
        "sort": None,
        "scale": scale,
        "legend": {"columns": 4},
    }
