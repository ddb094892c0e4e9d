"""A comparison of two sides: the answer first, then what differs in the contract, then load by load with verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.compare.answering import rated_said
from nameplate.compare.document import (
    CellCompared,
    Compared,
    Comparison,
    Condition,
    Interval,
    RatedCompared,
    Sample,
    SideDocument,
)
from nameplate.compare.terms import Difference
from nameplate.report import numbers
from nameplate.report.layout import bulleted, facts, heading, indented, stacked
from nameplate.report.safe import safe, safe_text
from nameplate.report.style import style_of
from nameplate.report.table import Cell, Column, FittingTable, rows_of

_LIMIT = 600
_VALUE_LIMIT = 60
# More loads than these share one table.
_CELLS_WHOLE = 4
# What stands beside the measures that the comparison is about, unless all are asked for.
BRIEF = (
    "ttft p50", "ttft p95", "itl p50", "itl p95", "e2e p50", "e2e p95", "longest_gap p95", "per_user p50",
    "output_rate", "request_rate", "goodput", "error_rate", "prefill_rate", "decode_rate",
)  # fmt: skip
_STYLES = {
    "worse": style_of("fail"),
    "better": style_of("pass"),
    "equal": "",
    "not known": style_of("unknown"),
}
_OVERALL = {**_STYLES, "mixed": style_of("unknown"), "equal": style_of("pass")}
_OUTCOMES = {"broken": style_of("fail"), "held": style_of("pass"), "not known": style_of("unknown")}
_KINDS = {
    "refused": "must be alike",
    "allowed": "is the point (--vary)",
    "harmless": "changes no number",
    "unknown": "one side does not tell",
}


def comparison_summary(told: Comparison, *, everything: bool = False) -> RenderableType:
    """Return a comparison; with `everything` every measure, and every term that differs."""
    return stacked(
        [
            Text(safe(told.answer.sentence, _LIMIT), style=_OVERALL[told.answer.verdict] or "bold"),
            _conditions(told.conditions),
            _sides(told),
            differences_table(told.differences, everything=everything),
            _rated(told.rated),
            *_cells(told, everything=everything),
            _apart(told),
            _notes(told),
            _legend(told),
        ]
    )


def differences_table(found: Sequence[Difference], *, everything: bool = True) -> RenderableType | None:
    """Return what differs between the sides; what changes no number only with `everything`."""
    order = list(_KINDS)
    shown = sorted(
        (one for one in found if everything or one.kind != "harmless"), key=lambda one: order.index(one.kind)
    )
    hidden = [one.name for one in found if one not in shown]
    if not found:
        return None
    rows = [
        (
            safe(one.name, 60),
            safe(" | ".join(one.a), _VALUE_LIMIT),
            safe(" | ".join(one.b), _VALUE_LIMIT),
            Text(_KINDS[one.kind], style=style_of("fail") if one.kind == "refused" else ""),
            safe(one.vary if one.kind == "refused" and one.name != "contradiction" else one.where, 60),
        )
        for one in shown
    ]
    columns = [Column(head, side="left") for head in ("term", "A", "B", "", "")]
    parts: list[RenderableType] = [heading("What differs beside the numbers")]
    parts += [FittingTable(columns, rows, wraps=(1, 2))] if rows else []
    if hidden:
        parts.append(Text(f"and, changing no number: {safe(', '.join(hidden), _LIMIT)} (--all)", style="dim"))
    return Group(*parts)


def value_said(one: Compared, sample: Sample) -> str:
    """Write one side of a measure: the mean of its trials, or in how many of them it is never reached."""
    if sample.typical is not None:
        said = unit_said(one.unit, sample.typical)
        return f"{said}{numbers.UNSUPPORTED}" if one.unsupported else said
    if sample.infinite:
        return numbers.NEVER if sample.infinite == sample.trials else f"{numbers.NEVER} in {sample.infinite}"
    return numbers.ABSENT


def unit_said(unit: str, value: float | None) -> str:
    """Write a value in its unit."""
    if unit == "ns":
        return numbers.duration(value)
    if unit == "share":
        return numbers.share(value, 2)
    return numbers.rate(value)


def change_cells(one: Compared) -> tuple[str, str, str]:
    """Write a measure's difference: absolute, relative, and the interval of what its verdict is made of."""
    absolute, relative = one.absolute, one.relative
    if one.unit == "share":
        points = "" if absolute is None else f"{absolute.estimate * 100:+.2f} pp"
        return points, "", bounds_said(absolute, " pp")
    plain = (
        ""
        if absolute is None
        else f"{'-' if absolute.estimate < 0 else '+'}{unit_said(one.unit, abs(absolute.estimate))}"
    )
    if relative is None:
        return plain, "", ""
    return plain, f"{relative.estimate * 100:+.1f}%", bounds_said(relative, "%")


def bounds_said(interval: Interval | None, unit: str) -> str:
    """Write an interval's bounds, which are shares."""
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"{interval.low * 100:+.1f}{unit} to {interval.high * 100:+.1f}{unit}"


def loaded_first(cells: Sequence[CellCompared]) -> list[CellCompared]:
    """Return the cells with the baselines last: one request at a time is no load that anybody asks about first."""
    return sorted(cells, key=lambda cell: cell.group == "baseline")


def shown_measures(cell: CellCompared, *, everything: bool) -> tuple[Compared, ...]:
    """Return the measures to show: what the comparison is about, what differs, and the usual ones; the first first."""
    shown = [
        one
        for one in cell.measures
        if everything or one.gated or one.verdict in ("better", "worse") or one.statistic in BRIEF
    ]
    return tuple(sorted(shown, key=lambda one: not one.gated))


def _conditions(conditions: Sequence[Condition]) -> RenderableType | None:
    if not conditions:
        return None
    lines: list[tuple[str, RenderableType]] = [
        (
            safe(one.text, 60),
            Text.assemble(
                (one.outcome, _OUTCOMES[one.outcome]), "  ", safe_text("; ".join(one.details), "dim", _LIMIT)
            ),
        )
        for one in conditions
    ]
    return Group(heading("Fail if"), facts(lines))


def _sides(told: Comparison) -> RenderableType:
    return facts([("A", _side(told.a)), ("B", _side(told.b))])


def _side(side: SideDocument) -> Text:
    results = side.results
    kinds = ", ".join(dict.fromkeys(one.kind for one in results))
    tools = ", ".join(dict.fromkeys(safe(one.tool, 60) for one in results))
    many = f"{len(results)} results ({kinds})" if len(results) != 1 else kinds
    text = safe_text(side.path, "bold")
    text.append(
        f"  {many}, {numbers.count(sum(one.trials for one in results), 'trial')}, {tools}", style="not bold"
    )
    for note in (*side.notes, *(f"left out: {said}" for said in side.left_out[:4])):
        text.append(f"\n{safe(note, 200)}", style="dim not bold")
    if len(side.left_out) > 4:
        text.append(f"\nand {len(side.left_out) - 4} more left out", style="dim not bold")
    return text


def _rated(rated: Sequence[RatedCompared]) -> RenderableType | None:
    if not rated:
        return None
    rows = [
        (
            safe(one.shape, 40), rated_said(one), one.unit, f"{one.a.status}, {one.b.status}",
            Text(one.verdict, style=_STYLES[one.verdict]), safe(one.reason, 120),
        )
        for one in rated
    ]  # fmt: skip
    columns = [
        Column("shape", side="left"), Column("A -> B", side="left"), Column("", side="left"),
        Column("status", side="left", rank=2), Column("verdict", side="left"),
        Column("", side="left", rank=1, name="why"),
    ]  # fmt: skip
    return Group(heading("Rated"), FittingTable(columns, rows))


def _cells(told: Comparison, *, everything: bool) -> Iterator[RenderableType]:
    cells = loaded_first(told.cells)
    if everything or len(cells) <= _CELLS_WHOLE:
        for cell in cells:
            yield _cell(cell, told, everything=everything)
    else:
        yield _overview(cells, told)


def _overview(cells: Sequence[CellCompared], told: Comparison) -> RenderableType:
    """Return many loads in one table: of each what the comparison is about, and what differs."""
    groups: list[list[list[Cell]]] = []
    for cell in cells:
        sizes = f"{len(cell.trials_a)}, {len(cell.trials_b)}"
        shown = [one for one in cell.measures if one.gated or one.verdict in ("better", "worse")]
        firsts = [(safe(cell.cell, 60), sizes), *[("", "")] * len(shown)]
        groups.append([[*first, *_row(one)] for first, one in zip(firsts, shown, strict=False)])
    columns = [Column("load", side="left"), Column("trials", rank=1), *_columns(told)]
    every = [one for cell in cells for one in cell.measures]
    return Group(
        FittingTable(columns, list(rows_of(groups))),
        *_reasons([one for one in every if one.gated]),
        Text(f"{numbers.count(len(every), 'measure')} in all (--all)", style="dim"),
    )


def _columns(told: Comparison) -> list[Column]:
    return [
        Column("", side="left"), Column("A"), Column("B"), Column("B - A", rank=2), Column("", name="relative"),
        Column(f"{told.terms.confidence * 100:g}% interval"), Column("verdict", side="left"),
    ]  # fmt: skip


def _cell(cell: CellCompared, told: Comparison, *, everything: bool) -> RenderableType:
    shown = shown_measures(cell, everything=everything)
    hidden = len(cell.measures) - len(shown)
    sizes = f"{len(cell.trials_a)} and {len(cell.trials_b)} trials" + (", paired" if cell.paired else "")
    title = heading(safe(cell.cell, 100))
    title.append(f"  {sizes}", style="dim not bold")
    parts: list[RenderableType] = [title]
    if shown:
        parts += [FittingTable(_columns(told), [_row(one) for one in shown]), *_reasons(shown)]
    if hidden:
        words = sorted({one.verdict for one in cell.measures if one not in shown})
        parts.append(Text(f"{hidden} more, each {' or '.join(words)} (--all)", style="dim"))
    if not cell.measures and not cell.not_compared:
        parts.append(Text("no trial of this load counts on both sides", style="dim"))
    parts += [Text(safe(note, 200), style="dim") for note in cell.notes]
    return Group(*parts)


def _row(one: Compared) -> list[Cell]:
    plain, relative, bounds = change_cells(one)
    name = Text(one.says, style="bold" if one.gated else "")
    return [
        name, value_said(one, one.a), value_said(one, one.b), plain, relative, bounds,
        Text(one.verdict, style=_STYLES[one.verdict]),
    ]  # fmt: skip


def _reasons(shown: Sequence[Compared]) -> Iterator[RenderableType]:
    """Say why what is not known is not, each reason once."""
    found: dict[str, list[str]] = {}
    for one in shown:
        if one.verdict == "not known":
            found.setdefault(one.reason, []).append(one.says)
    for reason, names in found.items():
        whose = (
            "none is known" if len(names) == len(shown) else f"{', '.join(dict.fromkeys(names))} not known"
        )
        yield Text(f"{whose}: {safe(reason, 200)}", style="dim")


def _apart(told: Comparison) -> RenderableType | None:
    lines: list[tuple[str, RenderableType]] = []
    for cell in told.cells:
        lines += [
            (safe(one.statistic, 40), safe_text("; ".join(one.reasons), "", _LIMIT))
            for one in cell.not_compared
        ]
    unique = list({(name, str(said)): (name, said) for name, said in lines}.values())
    parts: list[RenderableType] = [heading("Not compared"), facts(unique)] if unique else []
    alone = [f"only A: {safe(name, 80)}" for name in told.only_a] + [
        f"only B: {safe(name, 80)}" for name in told.only_b
    ]
    if alone:
        parts += [Text(""), *_few(alone)] if parts else _few(alone)
    return Group(*parts) if parts else None


def _few(lines: Sequence[str]) -> list[RenderableType]:
    said = "; ".join(lines[:12]) + (f"; and {len(lines) - 12} more" if len(lines) > 12 else "")
    return [heading("Loads that one side has alone"), indented(Text(said))]


def _notes(told: Comparison) -> RenderableType | None:
    if not told.notes:
        return None
    return Group(*(bulleted("-", "", safe_text(note, "", _LIMIT)) for note in told.notes))


def _legend(told: Comparison) -> Text:
    terms, margin = told.terms, f"{told.terms.margin * 100:g}%"
    said = (
        f"Bold is what the comparison is about. A value is the geometric mean of its trials' values; the trial is the "
        f"sample. equal: the whole {terms.confidence * 100:g}% interval lies within {margin} (--margin); better, "
        f"worse: it lies to one side of zero, its middle beyond {margin}, and stands among all measures at once. "
        f"Method: {'; '.join(terms.methods) or 'none, for want of trials'}."
    )
    if any(one.unsupported for cell in told.cells for one in cell.measures):
        said += f" {numbers.UNSUPPORTED_NOTE}."
    return Text(said, style="dim")
