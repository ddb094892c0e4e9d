"""What a server is, what works on it, and how to turn on what is missing."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.engines.capability import HINTS, ProbeReport
from nameplate.report import numbers
from nameplate.report.identity import identity_table
from nameplate.report.layout import bulleted, heading, indented, stacked
from nameplate.report.safe import safe
from nameplate.report.style import status
from nameplate.report.table import Column, FittingTable

_DETAIL_LIMIT = 300


def probe_table(report: ProbeReport) -> RenderableType:
    """Return a probe's findings: the answer, what works, what is missing and how to get it, the identity."""
    return stacked(
        (
            _answer(report),
            _works(report),
            _missing(report),
            _identity(report),
            _conflicts(report),
            _requests(report),
        )
    )


def _answer(report: ProbeReport) -> RenderableType:
    missing = len(report.missing)
    model = safe(report.target.model, 200) or "a model"
    said = f"{safe(report.engine, 60)} at {safe(report.target.url)} serves {model}"
    works = f"{len(report.capabilities) - missing} of {len(report.capabilities)} things work"
    lines: list[RenderableType] = [
        Text(f"{said}; {works}.", style="bold"),
        Text(f"Recognised by {safe(report.detected_by, _DETAIL_LIMIT)}."),
    ]
    return Group(*lines)


def _works(report: ProbeReport) -> RenderableType | None:
    if not report.capabilities:
        return None
    rows = [
        (safe(one.name, 60), status(one.status), safe(one.detail, _DETAIL_LIMIT))
        for one in report.capabilities
    ]
    columns = [
        Column("feature", side="left"),
        Column("works", side="left"),
        Column("what was seen", side="left"),
    ]
    return FittingTable(columns, rows, wraps=(2,))


def _missing(report: ProbeReport) -> RenderableType | None:
    lines: list[RenderableType] = []
    for one in report.missing:
        how = one.how_to_enable or HINTS.get(one.name, "")
        if how:
            text = Text(safe(one.name, 60), style="bold")
            lines.append(
                indented(bulleted("-", "", text.append(f": {safe(how, _DETAIL_LIMIT)}", style="not bold")))
            )
    if report.dropped:
        names = ", ".join(safe(name, 60) for name in report.dropped)
        lines.append(
            indented(bulleted("-", "", Text(f"refused request fields, left out from now on: {names}")))
        )
    return Group(heading("What is missing, and how to get it"), *lines) if lines else None


def _identity(report: ProbeReport) -> RenderableType:
    parts: list[RenderableType] = [heading("Identity")]
    if report.identity.facts:
        parts.append(indented(identity_table(report.identity.facts)))
    missing = report.identity.missing
    if missing:
        names = ", ".join(missing)
        parts.append(indented(Text(f"Unknown, so a plate would not be portable: {names}.")))
    return Group(*parts)


def _conflicts(report: ProbeReport) -> RenderableType | None:
    if not report.conflicts:
        return None
    lines = [
        indented(bulleted("!", "bold yellow", Text(safe(one, _DETAIL_LIMIT)))) for one in report.conflicts
    ]
    return Group(heading("Sources that contradict each other"), *lines)


def _requests(report: ProbeReport) -> Text:
    floor = (
        "how many tokens the chat template shares is unknown"
        if report.floor_tokens is None
        else f"any two prompts share {numbers.count(report.floor_tokens, 'token')} of the chat template"
    )
    return Text(
        f"The probe sent {numbers.count(len(report.requests), 'request')}; {floor}; the output limit is sent as "
        f"{report.limit_field}.",
        style="dim",
    )
