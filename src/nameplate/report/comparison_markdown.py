"""A comparison as Markdown for a comment on a pull request: a sentence that answers, then tables.

Names come from files and servers: what means something in GitHub's Markdown is written by its number, so that no name
ends a cell, opens a tag, links anywhere, or calls a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nameplate.compare.answering import rated_said
from nameplate.compare.comparing import Refused
from nameplate.compare.document import CellCompared, Compared, Comparison
from nameplate.contract.errors import NameplateError
from nameplate.report import numbers
from nameplate.report.comparison import change_cells, loaded_first, shown_measures, value_said
from nameplate.report.safe import safe

_LIMIT = 300
# A comment may hold 65,536 characters (GitHub); what is over is counted.
_ROWS_LIMIT = 150
_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~@&$]|://|www\.|^\s*[-+=]|^\s*\d+[.)]", re.IGNORECASE)
_MARKS = {"worse": "🔴 worse", "better": "🟢 better", "equal": "⚪ equal", "not known": "❔ not known"}
_KINDS = {
    "refused": "must be alike",
    "allowed": "is the point",
    "unknown": "one side does not tell",
    "harmless": "changes no number",
}
_OUTCOMES = {"broken": "🔴 broken", "held": "🟢 held", "not known": "❔ not known"}


def comparison_markdown(told: Comparison, *, everything: bool = False) -> str:
    """Return the comparison as Markdown with a final line feed."""
    return "\n".join(_lines(told, everything=everything)) + "\n"


def refusal_markdown(error: NameplateError) -> str:
    """Return as Markdown why nothing is compared: what differs, and the option that would allow each."""
    return "\n".join(_refusal(error)) + "\n"


def escaped(value: object, limit: int = _LIMIT) -> str:
    """Write text from elsewhere as text: one line, in which nothing is markup, a link or a mention."""
    return _SPECIAL.sub(_by_number, safe(value, limit))


def _by_number(found: re.Match[str]) -> str:
    return "".join(
        letter if letter.isalnum() or letter.isspace() else f"&#{ord(letter)};" for letter in found[0]
    )


def _lines(told: Comparison, *, everything: bool) -> Iterator[str]:
    yield f"**{escaped(told.answer.sentence, 600)}**"
    yield ""
    if told.conditions:
        yield from ("| fail if | outcome | |", "|---|---|---|")
        for one in told.conditions:
            yield f"| {escaped(one.text)} | {_OUTCOMES[one.outcome]} | {escaped('; '.join(one.details))} |"
        yield ""
    yield f"A is {_side(told, 'a')}, B is {_side(told, 'b')}."
    yield ""
    if told.rated:
        yield from ("| rated | A → B | verdict | |", "|---|---|---|---|")
        for rated in told.rated:
            arrow = rated_said(rated).replace("->", "→")
            yield (
                f"| {escaped(rated.shape)} | {arrow} {escaped(rated.unit)} | {_MARKS[rated.verdict]} | "
                f"{escaped(rated.reason)} |"
            )
        yield ""
    yield from _measures(told, everything=everything)
    yield from _points(told)
    yield from _rest(told)


def _refusal(error: NameplateError) -> Iterator[str]:
    yield f"**{escaped(error.what, 600)}**"
    yield ""
    if not isinstance(error, Refused):
        for said in (error.why, error.hint):
            if said:
                yield from (escaped(said, 1200), "")
        return
    shown = [one for one in error.differences if one.kind != "harmless"]
    shown.sort(key=lambda one: one.kind != "refused")
    yield from ("| differs | A | B | | allowed by |", "|---|---|---|---|---|")
    for one in shown[:_ROWS_LIMIT]:
        values = (escaped(" | ".join(side), 80) for side in (one.a, one.b))
        refused = one.kind == "refused"
        option = ""
        if refused and one.name != "contradiction":
            # Written by their numbers, lest two hyphens become a dash.
            option = f"&#45;&#45;vary {escaped(one.name)}"
        what = _KINDS[one.kind] + (f", at {escaped(one.where, 80)}" if one.where else "")
        yield f"| {escaped(one.name)} | {' | '.join(values)} | {what} | {option} |"
    yield ""
    if len(shown) > _ROWS_LIMIT:
        yield from (f"{len(shown) - _ROWS_LIMIT:,} more are not shown.", "")
    harmless = [one.name for one in error.differences if one.kind == "harmless"]
    if harmless:
        yield from (f"Changing no number: {escaped(', '.join(harmless), 600)}.", "")
    if error.hint:
        yield from (escaped(error.hint, 600), "")


def _measures(told: Comparison, *, everything: bool) -> Iterator[str]:
    rows = [
        (cell, one)
        for cell in loaded_first(told.cells)
        for one in shown_measures(cell, everything=everything)
    ]
    if not rows:
        return
    sure = f"{told.terms.confidence * 100:g}% interval"
    yield f"| load | measure | A | B | B - A | relative | {sure} | verdict |"
    yield "|---|---|--:|--:|--:|--:|--:|---|"
    for cell, one in rows[:_ROWS_LIMIT]:
        yield _row(cell, one)
    yield ""
    if len(rows) > _ROWS_LIMIT:
        yield f"{len(rows) - _ROWS_LIMIT:,} more rows are not shown."
        yield ""


def _row(cell: CellCompared, one: Compared) -> str:
    plain, relative, bounds = change_cells(one)
    name = f"**{escaped(one.says)}**" if one.gated else escaped(one.says)
    cells = (
        escaped(cell.cell, 80),
        name,
        value_said(one, one.a),
        value_said(one, one.b),
        plain,
        relative,
        bounds,
    )
    # The mark of an unsupported percentile is a star, which would begin emphasis.
    said = [text if text.startswith("**") else text.replace("*", "&#42;") for text in cells]
    return f"| {' | '.join(said)} | {_MARKS[one.verdict]} |"


def _points(told: Comparison) -> Iterator[str]:
    points = [one for one in told.differences if one.kind in ("allowed", "unknown")]
    if points:
        yield from ("| differs | A | B | |", "|---|---|---|---|")
        for one in points:
            values = (escaped(" | ".join(side), 80) for side in (one.a, one.b))
            yield f"| {escaped(one.name)} | {' | '.join(values)} | {_KINDS[one.kind]} |"
        yield ""


def _rest(told: Comparison) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for cell in told.cells:
        for one in cell.measures:
            if one.verdict == "not known" and one.gated:
                reasons.setdefault(one.reason, []).append(f"{one.says} at {cell.cell}")
        for apart in cell.not_compared:
            reasons.setdefault("not compared: " + "; ".join(apart.reasons), []).append(apart.statistic)
    yield "<details><summary>How this was judged</summary>"
    yield ""
    for reason, names in reasons.items():
        yield f"- {escaped(', '.join(dict.fromkeys(names)))}: {escaped(reason, 600)}"
    for note in told.notes:
        yield f"- {escaped(note, 600)}"
    margin = f"{told.terms.margin * 100:g}%"
    yield (
        f"- Bold is what the comparison is about. The trial is the sample. *equal*: the whole interval lies within "
        f"{margin}; *better*, *worse*: it lies to one side of zero, its middle beyond {margin}, and stands among "
        f"all measures at once. {escaped('; '.join(told.terms.methods))}"
    )
    if any(one.unsupported for cell in told.cells for one in cell.measures):
        yield f"- {escaped(numbers.UNSUPPORTED_NOTE)}"
    yield ""
    yield "</details>"


def _side(told: Comparison, name: str) -> str:
    side = told.a if name == "a" else told.b
    kinds = ", ".join(dict.fromkeys(one.kind for one in side.results))
    tools = ", ".join(dict.fromkeys(one.tool for one in side.results))
    trials = numbers.count(sum(one.trials for one in side.results), "trial")
    return f"{escaped(side.path)} ({escaped(kinds)}, {trials}, {escaped(tools, 80)})"
