"""The waterfall: a row a request over time, with what it waited for, what it got, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import htpy as h

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.latency import gaps_of
from nameplate.pages.chart import Alike, Spec, axis, data_of, figure, panel, shared
from nameplate.pages.scale import TimeScale, time_scale
from nameplate.pages.table import Column, shared_table
from nameplate.pages.trial.choosing import Chosen, choose, start_ns
from nameplate.pages.trial.rows import TrialRows
from nameplate.report.safe import safe
from nameplate.wire.outcome import Outcome

# So many rows are told apart on a screen.
MOST_ROWS = 400
# A gap is marked where it is this many times the request's own mean gap: every request has a longest one.
GAP_TIMES = 3
# Of more rows than this, moving within the figure is worth its words.
_FEW = 60
# A warm-up that takes longer than this share of the rest would leave the rest no room.
_WARMUP_SHARE = 0.3

# Each part of a request: from and to when, in which colour, and of which requests.
_PARTS = (
    ("not yet sent", "due", "sent", "s6", "isValid(datum.sent)"),
    ("to first output", "sent", "first", "s2", "isValid(datum.first)"),
    ("no output came", "sent", "ended", "none", "isValid(datum.sent) && !isValid(datum.first)"),
    ("decode", "first", "last", "s1", "isValid(datum.last)"),
    ("no more output", "last", "ended", "warn", "isValid(datum.last) && datum.end !== 'ok'"),
    ("longest gap", "gap", "gap_end", "s5", "isValid(datum.gap)"),
)
_WORDS = ("phase", "end", "outcome")
_ENDS = (
    ("ok", "good", "circle"),
    ("failed", "bad", "cross"),
    ("cancelled", "warn", "triangle-up"),
    ("unfinished", "warn", "triangle-right"),
)
_PHASES = (("warmup", "none"), ("ramp", "s6"), ("opening", "s4"), ("steady", "s3"), ("arrival", "s5"))

_TIMES = ("due", "sent", "first", "last", "ended")
COLUMNS = (
    "request",
    "phase",
    "end",
    "outcome",
    "due",
    "sent",
    "first",
    "last",
    "ended",
    "gap",
    "lag_ms",
    "ttft_ms",
    "itl_ms",
    "e2e_ms",
    "gap_ms",
    "prompt",
    "output",
)


def waterfall(
    read: TrialRows, plan: TrialPlan, name: str, most: int = MOST_ROWS, alike: Alike | None = None
) -> h.Node:
    """Return the waterfall of a trial's requests with its data and its table; `name` is unique on the page.

    Among others `alike`, folded within a study's page, it needs fewer words.
    """
    rows, left_out = _without_long_warmup(read)
    if not rows:
        return None
    chosen = choose(rows, plan, most)
    opened = plan.arrivals is not None
    begin_ns = min((start_ns(row, opened) for row in rows if row.measured), default=start_ns(rows[0], opened))
    ends = [row.end_ns or read.until_ns for row in chosen.rows]
    scale = time_scale([*(end - begin_ns for end in ends)])
    table = dataset(chosen.rows, read, begin_ns, scale)
    count = len(chosen.rows)
    about = f"Each request as a bar over time, in order of start: {chosen.said}"
    drawn = panel((), about, height=_height(count), kind=_kind(table), **_spec(name, scale, table))
    return h.fragment[
        shared(name, COLUMNS, table, _WORDS),
        figure(
            "Every request over time"
            if count == len(rows)
            else f"{count:,} of {len(rows):,} requests over time",
            _words(chosen, left_out, opened, alike is not None, read.timelines is not None),
            (drawn,),
            _table(name),
            numbers_title="The requests of this figure",
            alike=alike,
        ),
    ]


def _without_long_warmup(read: TrialRows) -> tuple[list[RequestRow], int]:
    """Return the rows to show; a warm-up that would fill the figure is left out, and counted."""
    warm = [row for row in read.rows if row.phase == "warmup"]
    rest = [row for row in read.rows if row.phase != "warmup"]
    if not warm or not rest:
        return list(read.rows), 0
    begin = min(row.scheduled_ns for row in rest)
    length = max((row.end_ns or read.until_ns for row in rest), default=begin) - begin
    ahead = begin - min(row.scheduled_ns for row in warm)
    return (rest, len(warm)) if ahead > _WARMUP_SHARE * length else (list(read.rows), 0)


def dataset(
    rows: Sequence[RequestRow], read: TrialRows, begin_ns: int, scale: TimeScale
) -> list[list[object]]:
    """Return a line a request in the order of `COLUMNS`; times are in the scale's unit from `begin_ns` on.

    They are exact to a ten thousandth of the whole, and durations, `_ms`, to a microsecond. What is absent is null.
    """
    # A screen is some thousand points wide.
    length_ns = max((row.end_ns or read.until_ns for row in rows), default=begin_ns) - begin_ns
    digits = max(0, 4 - math.floor(math.log10(max(1.0, length_ns) / scale.ns)))

    def at(t_ns: int | None) -> float | None:
        return None if t_ns is None else round((t_ns - begin_ns) / scale.ns, digits)

    found: list[list[object]] = []
    for row in rows:
        end_ns = row.end_ns if row.end_ns is not None else read.until_ns
        gap = _gap((read.timelines or {}).get(row.index))
        lag_ns = None if row.sent_ns is None else row.sent_ns - row.scheduled_ns
        found.append(
            [
                row.index,
                safe(row.phase, 20),
                _end_of(row),
                safe(row.outcome, 60),
                at(row.scheduled_ns),
                at(row.sent_ns),
                at(row.first_output_ns),
                at(row.last_output_ns),
                at(end_ns),
                at(gap),
                *(_ms(value) for value in (lag_ns, row.ttft_ns, row.itl_ns, row.e2e_ns, row.longest_gap_ns)),
                row.prompt_tokens,
                row.output_tokens,
            ]
        )
    return found


def _ms(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _end_of(row: RequestRow) -> str:
    if row.outcome in (Outcome.ok.value, Outcome.cancelled.value, Outcome.unfinished.value):
        return row.outcome
    return "failed"


def _gap(timeline: Timeline | None) -> int | None:
    """Return when a request's longest gap began, if it stands out from its other gaps and its timeline tells."""
    if timeline is None or len(timeline.times_ns) < 3:
        return None
    times, gaps = timeline.times_ns, gaps_of(timeline)
    length = max(gaps)
    at = gaps.index(length)
    return times[at] if length * len(gaps) >= GAP_TIMES * (times[-1] - times[0]) else None


def _height(count: int) -> int:
    return max(90, min(720, 12 * count))


def _spec(name: str, scale: TimeScale, table: Sequence[Sequence[object]]) -> Spec:
    count = len(table)
    held = {column: [row[at] for row in table] for at, column in enumerate(COLUMNS)}
    thick = max(1.4, min(7.0, 0.72 * _height(count) / max(1, count)))
    place = {
        "field": "at",
        "type": "quantitative",
        "scale": {"domain": [-0.7, count - 0.3], "reverse": True, "nice": False},
        "axis": None,
    }
    domain = _domain([value for column in _TIMES for value in held[column] if isinstance(value, float)])
    time = axis(
        "due",
        f"{scale.unit} from the first measured request on",
        scale={"domain": domain, "nice": False},
        axis={"tickCount": 12},
    )
    dim = {
        "condition": {"test": "datum.phase === 'warmup' || datum.phase === 'ramp'", "value": 0.4},
        "value": 1,
    }
    drawn = [part for part in _PARTS if _has(part[0], held)]
    colours = {
        "domain": [part for part, *_ in drawn],
        "range": [f"var(--{colour})" for _, _, _, colour, _ in drawn],
    }
    layers: list[dict[str, object]] = [
        {
            "transform": [{"filter": of}],
            "mark": {"type": "rule", "strokeWidth": thick, "strokeCap": "butt", "clip": True},
            "encoding": {
                "x": {**time, "field": begins},
                "x2": {"field": ends},
                "color": {"datum": part, "type": "nominal", "scale": colours, "title": "part"},
            },
        }
        for part, begins, ends, _, of in drawn
    ]
    ends = [one for one in _ENDS if one[0] in held["end"]]
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 9 * thick, "clip": True},
            "encoding": {
                "x": {**time, "field": "ended"},
                "shape": _coded("end", [(end, shape) for end, _, shape in ends], "how it ended"),
                "fill": _coded("end", [(end, f"var(--{colour})") for end, colour, _ in ends], "how it ended"),
            },
        }
    )
    phases = [(phase, f"var(--{colour})") for phase, colour in _PHASES if phase in held["phase"]]
    layers.append(
        {
            "mark": {"type": "point", "shape": "square", "filled": False, "strokeWidth": thick, "size": 4},
            "encoding": {"x": {"value": 3}, "stroke": _coded("phase", phases, "phase")},
        }
    )
    if count > _FEW:
        layers[0]["params"] = [_zoom()]
    shared_by_all = {"y": place, "opacity": dim, "tooltip": _hover(scale)}
    gap_end = f"datum.gap + datum.gap_ms / {scale.ns / 1e6:.12g}"
    return {
        "data": data_of(name),
        "transform": [{"calculate": gap_end, "as": "gap_end"}],
        "encoding": shared_by_all,
        "layer": layers,
    }


def _kind(table: Sequence[Sequence[object]]) -> str:
    """Return what names waterfalls of the same parts, ends and phases."""
    held = {column: [row[at] for row in table] for at, column in enumerate(COLUMNS)}
    has = [_has(part, held) for part, *_ in _PARTS]
    has += [end in held["end"] for end, *_ in _ENDS] + [phase in held["phase"] for phase, _ in _PHASES]
    return "waterfall-" + "".join(str(int(one)) for one in (*has, len(table) > _FEW))


def _domain(times: Sequence[float]) -> list[float]:
    """Return the ends of the time axis, with a little room ahead for the marks of the phases."""
    low, high = min(times, default=0.0), max(times, default=1.0)
    length = (high - low) or 1.0
    return [low - 0.015 * length, high + 0.005 * length]


def _has(part: str, held: Mapping[str, Sequence[object]]) -> bool:
    """Tell whether any request has such a part, of a length that is more than nothing."""
    if part == "longest gap":
        return any(value is not None for value in held["gap"])
    if part == "no more output":
        return any(
            end != "ok" and isinstance(last, float) and isinstance(ended, float) and ended > last
            for end, last, ended in zip(held["end"], held["last"], held["ended"], strict=True)
        )
    if part == "no output came":
        return any(
            first is None and sent is not None
            for first, sent in zip(held["first"], held["sent"], strict=True)
        )
    _, begins, ends, *_ = next(one for one in _PARTS if one[0] == part)
    return any(
        isinstance(begin, float) and isinstance(end, float) and end > begin
        for begin, end in zip(held[begins], held[ends], strict=True)
    )


def _hover(scale: TimeScale) -> list[dict[str, str]]:
    return [
        {"field": "request", "title": "request"},
        {"field": "phase"},
        {"field": "outcome"},
        {"field": "due", "title": f"due, {scale.unit}"},
        {"field": "lag_ms", "title": "send lag, ms"},
        {"field": "ttft_ms", "title": "TTFT, ms"},
        {"field": "itl_ms", "title": "ITL, ms"},
        {"field": "gap_ms", "title": "longest gap, ms"},
        {"field": "e2e_ms", "title": "E2E, ms"},
        {"field": "prompt", "title": "prompt tokens"},
        {"field": "output", "title": "output tokens"},
    ]


def _coded(field: str, codes: Sequence[tuple[str, str]], title: str) -> dict[str, object]:
    return {
        "field": field,
        "type": "nominal",
        "title": title,
        "scale": {"domain": [value for value, _ in codes], "range": [code for _, code in codes]},
    }


def _zoom() -> dict[str, object]:
    """Return zooming by Shift, so that a page still scrolls over the figure."""
    return {
        "name": "zoom",
        "select": {
            "type": "interval",
            "encodings": ["x"],
            "zoom": "wheel![event.shiftKey]",
            "translate": "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!",
        },
        "bind": "scales",
    }


def _words(chosen: Chosen, left_out: int, opened: bool, folded: bool, events: bool) -> str:
    said = [f"Shown: {chosen.said}, in the order in which they " + ("were due." if opened else "were sent.")]
    if left_out:
        said.append(f"The {left_out:,} of the warm-up came long before and are not drawn.")
    if folded:
        return " ".join(said)
    said.append(
        "How much of a request's wait for its first output was queue and how much prefill, nobody outside the server "
        "sees: the server's own means stand with the waits."
    )
    said.append(
        f"A longest gap is marked where it is {GAP_TIMES} times the request's mean gap or more."
        if events
        else "Where the longest gaps were is not read here; the trial's own page shows it."
    )
    if len(chosen.rows) > _FEW:
        said.append(
            "Shift with the wheel zooms, Shift with the pointer moves, a double click shows all again."
        )
    return " ".join(said)


def _table(name: str) -> h.Element:
    columns = (
        Column("request", field="request"),
        Column("phase", kind="text", field="phase"),
        Column("outcome", kind="text", field="outcome"),
        Column("send lag\nms", "send lag, ms", field="lag_ms"),
        Column("TTFT\nms", "TTFT, ms", field="ttft_ms"),
        Column("ITL\nms", "ITL, ms", field="itl_ms"),
        Column("longest gap\nms", "longest gap, ms", field="gap_ms"),
        Column("E2E\nms", "E2E, ms", field="e2e_ms"),
        Column("prompt\ntokens", "prompt tokens", field="prompt"),
        Column("output\ntokens", "output tokens", field="output"),
    )
    return shared_table(
        columns, name, "The requests of this figure", "Times in milliseconds, to a microsecond."
    )
