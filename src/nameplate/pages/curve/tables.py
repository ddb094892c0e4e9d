"""The tables of a curve: every level with its trials, what each step adds, and what came in between."""

from __future__ import annotations

import htpy as h

from nameplate.contract.curve import say_load
from nameplate.measure.curve_result import CurveResult
from nameplate.measure.server_side import Gauge
from nameplate.measure.waits import Part
from nameplate.pages.curve.answer import plan_of
from nameplate.pages.curve.points import Placed, name_of, placed
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.statistics.percentile import Distribution


def levels_table(result: CurveResult) -> h.Element:
    """Return every level: a row a trial, or its status and reason where it has no number."""
    climb = plan_of(result).kind == "input"
    columns = _CLIMB if climb else _LOADS
    by_row: dict[int, list[Placed]] = {}
    for one in placed(result):
        by_row.setdefault(int(one.path.split(".")[1]), []).append(one)
    rows = []
    for at, row in enumerate(result.rows):
        said = Cell(say_load(plan_of(result).kind, row.load), row.load, f"rows.{at}.load")
        state = Cell(status(row.status.value), row.status.value, f"rows.{at}.status")
        for one in by_row.get(at, ()):
            cells = _climb_cells(one) if climb else _load_cells(one)
            rows.append(Row([said, state, *cells, _note(result, one)]))
        if at not in by_row:
            reason = Cell(safe(row.reason, 1000), row.reason, f"rows.{at}.reason", "words")
            trials = ", ".join(row.trials)
            # A level without a trial of its own has no name to show.
            name = Cell(safe(trials, 200), trials) if trials else Cell(None)
            rows.append(Row([said, state, name, *[Cell(None)] * (len(columns) - 4), reason]))
    return h.section(aria_label="Levels", id="levels")[
        h.h2["Every level, every trial"],
        table(columns, rows, "Levels and their trials", note=numbers.UNSUPPORTED_NOTE),
    ]


_LOADS = (
    Column("level"),
    Column("status", kind="text"),
    Column("trial", kind="text"),
    Column("output\ntok/s", "output tok/s"),
    Column("req/s"),
    Column("TTFT\np50", "TTFT p50, ns"),
    Column("TTFT\np95", "TTFT p95, ns"),
    Column("ITL\np50", "ITL p50, ns"),
    Column("E2E\np50", "E2E p50, ns"),
    Column("tok/s\na user", "tok/s per user, p50"),
    Column("queue\nmean", "queue mean, ns"),
    Column("prefill\nmean", "prefill mean, ns"),
    Column("in flight\nmean", "in flight, mean"),
    Column("running\nmost", "running, most"),
    Column("running\nlimit", "running limit"),
    Column("waiting\nmean", "waiting, mean"),
    Column("KV\nmost", "KV use, most"),
    Column("n"),
    Column("took", "took, s"),
    Column("whole run\ntok/s", "whole run tok/s"),
    Column("note", kind="text"),
)
_CLIMB = (
    Column("input\ntokens", "input tokens"),
    Column("status", kind="text"),
    Column("trial", kind="text"),
    Column("TTFT\np50", "TTFT p50, ns"),
    Column("lowest", "TTFT lowest, ns"),
    Column("highest", "TTFT highest, ns"),
    Column("prefill\ntok/s", "prefill tok/s"),
    Column("decode\ntok/s", "decode tok/s"),
    Column("KV\nmost", "KV use, most"),
    Column("tokens of\nthe pool", "tokens of the pool"),
    Column("output\ntokens", "output tokens, mean"),
    Column("n"),
    Column("took", "took, s"),
    Column("note", kind="text"),
)


def _load_cells(one: Placed) -> list[Cell]:
    point, sample, path, at = one.point, one.sample, one.path, one.sample_path
    flight = "in_flight" if at.endswith("whole") else "in_flight_steady"
    held: float | None = getattr(point, flight)
    waits = point.waits
    return [
        Cell(safe(point.trial, 120), point.trial, f"{path}.trial", "nowrap"),
        Cell(numbers.rate(sample.output_per_s), sample.output_per_s, f"{at}.output_per_s"),
        Cell(numbers.brief_rate(sample.requests_per_s), sample.requests_per_s, f"{at}.requests_per_s"),
        _quantile(sample.ttft, "p50", f"{at}.ttft"),
        _quantile(sample.ttft, "p95", f"{at}.ttft"),
        _quantile(sample.itl, "p50", f"{at}.itl"),
        _quantile(sample.e2e, "p50", f"{at}.e2e"),
        _quantile(sample.per_user, "p50", f"{at}.per_user"),
        _part(None if waits is None else waits.queue, f"{path}.waits.queue"),
        _part(None if waits is None else waits.prefill, f"{path}.waits.prefill"),
        Cell(None if held is None else f"{held:.1f}", held, f"{path}.{flight}"),
        _most(point.running, f"{path}.running", share=False),
        Cell(numbers.count(point.running_limit), point.running_limit, f"{path}.running_limit"),
        Cell(None)
        if point.waiting is None
        else Cell(f"{point.waiting.mean:.1f}", point.waiting.mean, f"{path}.waiting.mean"),
        _most(point.kv_usage, f"{path}.kv_usage", share=True),
        Cell(numbers.count(sample.n), sample.n, f"{at}.n"),
        Cell(numbers.rough(point.duration_s), point.duration_s, f"{path}.duration_s"),
        Cell(numbers.rate(point.whole.output_per_s), point.whole.output_per_s, f"{path}.whole.output_per_s"),
    ]


def _climb_cells(one: Placed) -> list[Cell]:
    point, path = one.point, one.path
    ttft, alone = point.whole.ttft, point.alone
    return [
        Cell(safe(point.trial, 120), point.trial, f"{path}.trial", "nowrap"),
        _quantile(ttft, "p50", f"{path}.whole.ttft"),
        Cell(numbers.brief(ttft.min), ttft.min, f"{path}.whole.ttft.min"),
        Cell(numbers.brief(ttft.max), ttft.max, f"{path}.whole.ttft.max"),
        Cell(None)
        if alone is None
        else Cell(
            numbers.rate(alone.prefill_counted.p50),
            alone.prefill_counted.p50,
            f"{path}.alone.prefill_counted.p50",
        ),
        Cell(None)
        if alone is None
        else Cell(numbers.rate(alone.decode), alone.decode, f"{path}.alone.decode"),
        _most(point.kv_usage, f"{path}.kv_usage", share=True),
        Cell(numbers.share(point.resident_share), point.resident_share, f"{path}.resident_share"),
        Cell(
            None if point.output_tokens_mean is None else f"{point.output_tokens_mean:,.0f}",
            point.output_tokens_mean,
            f"{path}.output_tokens_mean",
        ),
        Cell(numbers.count(point.ok), point.ok, f"{path}.ok"),
        Cell(numbers.rough(point.duration_s), point.duration_s, f"{path}.duration_s"),
    ]


def _note(result: CurveResult, one: Placed) -> Cell:
    said = [
        name_of(result, one.curve),
        "knee" if one.knee else "",
        "queue grew" if one.point.queue == "rising" else "",
        "estimated" if one.point.estimated else "",
    ]
    return Cell(", ".join(word for word in said if word))


def _quantile(held: Distribution, name: str, path: str) -> Cell:
    raw: float | None = getattr(held, name)
    weak = name in held.unsupported
    return Cell(numbers.percentile(held, name), raw, f"{path}.{name}", "unsupported" if weak else "")


def _part(held: Part | None, path: str) -> Cell:
    return Cell(None) if held is None else Cell(numbers.brief(held.mean_ns), held.mean_ns, f"{path}.mean_ns")


def _most(gauge: Gauge | None, path: str, *, share: bool) -> Cell:
    # Sampled once a second: none of the samples met a request.
    if gauge is None or (share and not gauge.max):
        return Cell(None)
    return Cell(numbers.share(gauge.max) if share else f"{gauge.max:,.0f}", gauge.max, f"{path}.max")


def steps_table(result: CurveResult) -> h.Node:
    """Return what each step from one level to the next gains, and by what latency grows; None for a single level."""
    kind = plan_of(result).kind
    columns = (
        Column("from"),
        Column("to"),
        Column("output"),
        Column("a doubling", "output gained a doubling"),
        Column("TTFT p50", "TTFT factor"),
        Column("ITL p50", "ITL factor"),
        Column("E2E p50", "E2E factor"),
        Column("curve", kind="text"),
    )
    rows: list[Row] = []
    for at, curve in enumerate(result.curves):
        for place, step in enumerate(curve.steps):
            path = f"curves.{at}.steps.{place}"
            factors = [
                Cell(None if held is None else f"x {held:.3g}", held, f"{path}.{name}")
                for name, held in (
                    ("ttft_factor", step.ttft_factor),
                    ("itl_factor", step.itl_factor),
                    ("e2e_factor", step.e2e_factor),
                )
            ]
            rows.append(
                Row(
                    [
                        Cell(say_load(kind, step.below), step.below, f"{path}.below"),
                        Cell(say_load(kind, step.above), step.above, f"{path}.above"),
                        Cell(f"{step.output_gain:+.1%}", step.output_gain, f"{path}.output_gain"),
                        Cell(
                            f"{step.gain_per_doubling:+.1%}",
                            step.gain_per_doubling,
                            f"{path}.gain_per_doubling",
                        ),
                        *factors,
                        name_of(result, at) or "the only one",
                    ],
                    begins=bool(rows) and place == 0,
                )
            )
    if not rows or kind == "input":
        return None
    hardly = f"{100 * plan_of(result).hardly:.3g}%"
    return table(
        columns,
        rows,
        "What each step adds, by the middle trial of each level",
        note=f"below {hardly} a doubling at every higher level, more load gives hardly any output: the knee",
    )


def probes_table(result: CurveResult) -> h.Node:
    """Return the single requests that looked for the end of the context; None where there were none."""
    if not result.probes:
        return None
    columns = (
        Column("input\ntokens", "input tokens"),
        Column("answer", kind="text"),
        Column("trial", kind="text"),
        Column("reason", kind="text"),
    )
    rows = [
        [
            Cell(f"{probe.input_tokens:,}", probe.input_tokens, f"probes.{at}.input_tokens"),
            Cell(status("ok" if probe.accepted else "refused"), probe.accepted, f"probes.{at}.accepted"),
            Cell(safe(probe.trial, 120), probe.trial, f"probes.{at}.trial") if probe.trial else Cell(None),
            Cell(safe(probe.reason, 600), probe.reason, f"probes.{at}.reason", "words"),
        ]
        for at, probe in enumerate(result.probes)
    ]
    return table(columns, rows, "Requests that looked for where the context ends")
