"""The windows of a soak as a table: a row each, every number with where it stands in the record."""

from __future__ import annotations

import htpy as h

from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.window import Spread, WindowResult
from nameplate.pages.soak.course import windows_shown
from nameplate.pages.table import Cell, Column, Row, table
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.report.soak_windows import note_words
from nameplate.report.soak_words import moment
from nameplate.statistics.percentile import Distribution


def windows_section(result: SoakResult, *, opened: bool) -> h.Node:
    """Return the table of windows; in an open loop TTFT counts from the schedule."""
    shown = windows_shown(result)
    if not shown.windows:
        return None
    places = {segment.segment: at for at, segment in enumerate(result.segments)}
    metric = "ttft_from_schedule" if opened else "ttft"
    rows = []
    last = None
    for segment, at, window in shown.windows:
        path = f"result.segments.{places[segment.segment]}.windows.{at}"
        begins = last is not None and last != segment.segment
        rows.append(Row(_cells(result, window, path, metric), begins=begins))
        last = segment.segment
    columns = (
        Column("from", "from, s"),
        Column("out\ntok/s", "output tok/s"),
        Column("TTFT\np50", f"{metric} p50, ns"),
        Column("TTFT\np95", f"{metric} p95, ns"),
        Column("n", "TTFT n"),
        Column("ITL\np50", "ITL p50, ns"),
        Column("E2E\np50", "E2E p50, ns"),
        Column("ok"),
        Column("failed"),
        Column("out-\nstanding", "outstanding, mean"),
        Column("running", "running, mean"),
        Column("waiting", "waiting, mean"),
        Column("KV\nmost", "KV use, most"),
        Column("queue\nmean", "queue mean, s"),
        Column("prefill\nmean", "prefill mean, s"),
        Column("in\ntok/s", "input tok/s"),
        Column("preempt-\nions", "preemptions"),
        Column("note", kind="text"),
    )
    partial = any(window.partial for _, _, window in shown.windows)
    note = "; ".join(
        [
            numbers.UNSUPPORTED_NOTE,
            *(["~ a window that was not observed as a whole"] if partial else []),
        ]
    )
    of = f" (one of {shown.every} of {shown.whole:,})" if shown.every > 1 else ""
    return h.section(aria_label="Windows", id="windows")[
        h.h2["Windows"],
        h.p[
            "Tokens by when they arrived, TTFT by the first output, ITL, E2E and ok by their end. Queue and "
            "prefill are the server's own means of what it finished in the window."
        ],
        table(columns, rows, f"Windows{of}", note=note),
    ]


def _cells(result: SoakResult, window: WindowResult, path: str, metric: str) -> list[Cell | str]:
    server = window.server
    ttft: Distribution = getattr(window, metric)
    at_s = (window.begin_wall_ns - result.began_wall_ns) / 1e9
    failed = sum(window.failed.values())
    usage = server.kv_usage
    return [
        Cell(f"{moment(at_s)}{'~' if window.partial else ''}", at_s),
        Cell(
            numbers.brief_rate(window.output_tokens_per_s),
            window.output_tokens_per_s,
            f"{path}.output_tokens_per_s",
        ),
        _quantile(ttft, "p50", f"{path}.{metric}"),
        _quantile(ttft, "p95", f"{path}.{metric}"),
        Cell(f"{ttft.n:,}", ttft.n, f"{path}.{metric}.n"),
        _quantile(window.itl, "p50", f"{path}.itl"),
        _quantile(window.e2e, "p50", f"{path}.e2e"),
        Cell(f"{window.completed:,}", window.completed, f"{path}.completed"),
        Cell(f"{failed:,}", failed, None, "tone-bad status" if failed else ""),
        _mean(window.outstanding, f"{path}.outstanding.mean"),
        _mean(server.running, f"{path}.server.running.mean"),
        _mean(server.waiting, f"{path}.server.waiting.mean"),
        Cell(None)
        if usage is None
        else Cell(numbers.share(usage.max), usage.max, f"{path}.server.kv_usage.max"),
        _seconds(server.queue_mean_s, f"{path}.server.queue_mean_s"),
        _seconds(server.prefill_mean_s, f"{path}.server.prefill_mean_s"),
        Cell(
            numbers.brief_rate(window.input_tokens_per_s),
            window.input_tokens_per_s,
            f"{path}.input_tokens_per_s",
        ),
        Cell(numbers.count(server.preemptions), server.preemptions, f"{path}.server.preemptions"),
        Cell(safe(note_words(window), 60), classes="words" if window.notes else ""),
    ]


def _quantile(held: Distribution, name: str, path: str) -> Cell:
    raw: float | None = getattr(held, name)
    if held.n == 0:
        return Cell(None)
    said = numbers.NEVER if raw is None else numbers.brief(raw)
    weak = name in held.unsupported
    return Cell(
        f"{said}{numbers.UNSUPPORTED}" if weak else said, raw, f"{path}.{name}", "unsupported" if weak else ""
    )


def _mean(held: Spread | None, path: str) -> Cell:
    return Cell(None) if held is None else Cell(numbers.count(round(held.mean, 1)), held.mean, path)


def _seconds(mean_s: float | None, path: str) -> Cell:
    return Cell(numbers.brief(None if mean_s is None else mean_s * 1e9), mean_s, path)
