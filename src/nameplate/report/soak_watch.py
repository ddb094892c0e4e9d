"""A soak as somebody sees it who looks on: whether it lives, where it is, and what is known so far."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.evidence.soak_events import OUTSTANDING_LIMIT
from nameplate.measure.soak.result import SoakResult
from nameplate.report import numbers
from nameplate.report.layout import facts, heading, stacked
from nameplate.report.safe import safe
from nameplate.report.soak import answer, ending
from nameplate.report.soak_fates import FATE, disturbances
from nameplate.report.soak_windows import series, windows_table
from nameplate.report.soak_words import SERIES, change, load_of
from nameplate.report.style import style_of
from nameplate.studies.soak_sight import SoakSight

# On one screen.
LATEST = 12


def watch_page(sight: SoakSight) -> RenderableType:
    """Return what is known of a soak now; of one that has ended, that it has, and how."""
    record, result = sight.record, sight.record.result
    parts: list[RenderableType | None] = [_life(sight)]
    if result is None:
        parts.append(Text(f"Nothing was measured yet of {load_of(record.contract)}."))
    else:
        if sight.state == "ended":
            parts.append(answer(record, result))
        parts += [
            series(result),
            windows_table(result, latest=LATEST),
            _requests(result, ended=sight.state != "running"),
            disturbances(result),
            _drift(result),
        ]
    parts.append(ending(record, sight.directory))
    return stacked(parts)


def _life(sight: SoakSight) -> RenderableType:
    said = {
        "running": "running",
        "ended": "ended",
        "killed": "killed: no process holds it, and nothing sealed it",
        "unknown": "not known to run: this file system does not tell who holds it",
    }[sight.state]
    line = Text("soak ", style="bold").append(
        said, style=style_of("ok" if sight.state == "running" else "interrupted")
    )
    line.append(f": {load_of(sight.record.contract)}", style="bold")
    result = sight.record.result
    lines = [line]
    if result is not None:
        done = f"{numbers.rough(result.submitted_s)} submitted"
        left = numbers.rough(sight.left_ns / 1e9) if sight.left_ns else "nothing"
        lines.append(Text(f"  {done}, {left} left{_draining(result, sight)}"))
    if sight.heartbeat_s is not None and sight.state != "ended":
        lines.append(Text(f"  last written {numbers.rough(sight.heartbeat_s)} ago"))
    if sight.state == "killed" and sight.left_ns:
        lines.append(Text("  What it recorded is intact; go on with nameplate soak --resume."))
    return Group(*lines)


def _draining(result: SoakResult, sight: SoakSight) -> str:
    last = result.segments[-1]
    if sight.state != "running" or last.submit_ended_ns is None or last.drained_ns is not None:
        return ""
    why = "; its limit of unanswered requests ended submission" if last.ended_by == OUTSTANDING_LIMIT else ""
    return f"{why}; draining for {numbers.rough((last.observed_ns - last.submit_ended_ns) / 1e9)} so far"


def _requests(result: SoakResult, *, ended: bool) -> RenderableType:
    held = result.counts
    out = Counter(request.fate for segment in result.segments for request in segment.unfinished)
    lines: list[tuple[str, RenderableType]] = [
        (
            "Requests",
            f"{held.sent:,} sent, {held.ok:,} ok, {held.failed:,} failed, {held.cancelled:,} cancelled",
        )
    ]
    failed = ", ".join(f"{count:,} {safe(name, 40)}" for name, count in sorted(held.failed_by.items()))
    if failed:
        lines.append(("Failed by", failed))
    if out:
        said = ", ".join(f"{count:,} {FATE[fate]}" for fate, count in out.items())
        lines.append(("Left" if ended else "Out now", said))
    return Group(heading("Requests so far"), facts(lines))


def _drift(result: SoakResult) -> RenderableType:
    lines: list[tuple[str, RenderableType]] = []
    for found in result.drift.series:
        share = "" if found.change_share is None else f" ({found.change_share:+.1%})"
        said = f"{found.conclusion}: {change(found)}{share}" if found.change is not None else found.conclusion
        lines.append((SERIES.get(found.series, found.series), said))
    return Group(heading(f"Drift so far: {result.drift.conclusion}"), facts(lines))
