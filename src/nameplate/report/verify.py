"""What a verification found: a line a check, what was counted, and the sentence that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.report import numbers
from nameplate.report.layout import Cell, heading, indented, stacked
from nameplate.report.safe import safe
from nameplate.report.style import status, style_of
from nameplate.report.table import Column, FittingTable, rows_of
from nameplate.verify.check import Check, Report

_DETAIL_LIMIT = 300
_NAMES = {"raw_bytes": "raw bytes", "output_bytes": "UTF-8 bytes of output"}


def verify_table(report: Report) -> RenderableType:
    """Return a verification, the answer first; of a study also one line a trial and what is wrong in each."""
    parts: list[RenderableType | None] = [_sentence(report), _checks(report.checks)]
    if report.trials:
        parts.append(_trials(report.trials))
        parts += [_troubles(trial) for trial in report.trials]
    parts.append(_counts(report))
    return stacked(parts)


def _sentence(report: Report) -> Text:
    checks = report.all_checks()
    failed = [one for one in checks if one.status == "fail"]
    open_ = [one for one in checks if one.status == "unverified"]
    where = f"the {report.kind} in {safe(report.directory)}"
    recomputed = f"; its verdict recomputes to {safe(report.verdict, 60)}" if report.verdict else ""
    if failed:
        return Text(
            f"Not what it claims to be: {numbers.count(len(failed), 'check')} of {len(checks)} failed in {where}: "
            f"{_named(failed)}.",
            style=style_of("failed"),
        )
    if open_:
        return Text(
            f"Nothing contradicts {where}{recomputed}; {len(open_)} of {len(checks)} checks could not be made, "
            f"because what they need was not kept: {_named(open_)}.",
            style=style_of("unverified"),
        )
    return Text(f"All {len(checks)} checks hold for {where}{recomputed}.", style=style_of("confirmed"))


def _named(checks: Iterable[Check]) -> str:
    names = list(dict.fromkeys(str(check.name) for check in checks))
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _checks(checks: Sequence[Check]) -> RenderableType | None:
    if not checks:
        return None
    groups: dict[str, list[Sequence[Cell]]] = {}
    for check in checks:
        detail = safe(check.detail, _DETAIL_LIMIT)
        if check.says and check.says != check.status and not check.detail.startswith(check.says):
            detail = (
                f"the gate says {safe(check.says, 60)}; {detail}"
                if detail
                else f"the gate says {safe(check.says)}"
            )
        groups.setdefault(check.group, []).append(
            (safe(check.name), status(check.status), numbers.count(check.counted), detail)
        )
    parts: list[RenderableType] = []
    for name, rows in groups.items():
        if parts:
            parts.append(Text(""))
        parts += [
            heading(str(name).capitalize()),
            indented(FittingTable(_COLUMNS, list(rows_of([rows])), wraps=(3,))),
        ]
    return Group(*parts)


_STATUSES = ("pass", "unverified", "invalid", "fail")

_COLUMNS = (
    Column("check", side="left"),
    Column("status", side="left"),
    Column("counted"),
    Column("what was found", side="left"),
)


def _trials(trials: Sequence[Report]) -> RenderableType:
    rows = []
    for trial in trials:
        tally = [
            sum(check.status == kind for check in trial.checks)
            for kind in ("pass", "unverified", "invalid", "fail")
        ]
        rows.append(
            (
                safe(trial.directory.rstrip("/").rpartition("/")[2]),
                status(str(trial.verdict)) if trial.verdict else numbers.ABSENT,
                *(numbers.count(one) for one in tally),
                numbers.count(trial.counts.streams),
                numbers.count(trial.counts.output_tokens),
            )
        )
    columns = [
        Column("trial", side="left"),
        Column("recomputed\nverdict", side="left"),
        Column("checks\nhold"),
        Column("not\nverified"),
        Column("invalid"),
        Column("checks\nfailed"),
        Column("streams", rank=1),
        Column("output\ntokens", rank=2),
    ]
    return Group(heading("Trials"), indented(FittingTable(columns, rows)))


def _troubles(trial: Report) -> RenderableType | None:
    """Return the checks of one trial that do not pass; None where all do."""
    found = [check for check in trial.checks if check.status != "pass"]
    if not found:
        return None
    rows = [
        (safe(one.name), status(one.status), numbers.count(one.counted), safe(one.detail, _DETAIL_LIMIT))
        for one in found
    ]
    name = safe(trial.directory.rstrip("/").rpartition("/")[2])
    return Group(heading(name), indented(FittingTable(_COLUMNS, rows, wraps=(3,))))


def _counts(report: Report) -> Text:
    counts = report.counts
    said = [
        f"{numbers.count(getattr(counts, name))} {_NAMES.get(name, name.replace('_', ' '))}"
        for name in counts.__struct_fields__
    ]
    return Text(f"Counted: {', '.join(said)}.")
