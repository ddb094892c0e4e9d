"""What a speed result means, in sentences: the answer first, notes grouped, methods in short."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.matrix import Kind
from nameplate.measure.speed_result import CellRow, CellValues, Method, SpeedResult
from nameplate.report import numbers
from nameplate.report.cells import label_of, name_of, per_user, tally, values_of
from nameplate.report.layout import bulleted, facts, heading, indented
from nameplate.report.safe import safe, safe_text
from nameplate.verdict.cell import CellStatus

_NOTE_LIMIT = 600
# Notes of one kind that are quoted in full; the other cells are only named.
_QUOTED = 2
# A server that words every note differently fills no terminal.
_KINDS = 30
_NOUNS: dict[Kind, tuple[str, str]] = {
    "decode": ("decode cell", "decode cells"),
    "prefill": ("prefill", "prefills"),
    "burst": ("burst", "bursts"),
    "mixed": ("mixed prefill", "mixed prefills"),
}
_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+%?")


def answer(result: SpeedResult) -> str:
    """Say what one user reads and the most that the server gave, of valid cells only."""
    return " ".join(answers(result))


def answers(result: SpeedResult) -> tuple[str, ...]:
    """Return the sentences of the answer: of decode, and of prefill."""
    if not result.rows:
        return ("Nothing was planned, so there is no rate.",)
    if not any(row.status is CellStatus.valid for row in result.rows):
        planned = len(result.rows)
        one = "the one planned cell is not" if planned == 1 else f"none of {planned:,} planned cells is"
        return (f"No rate: {one} valid.",)
    return _decode(result), _prefill(result)


def coverage(result: SpeedResult) -> str:
    """Say how many of the planned cells are valid, and what became of the others."""
    parts = []
    for kind, (one, several) in _NOUNS.items():
        rows = result.rows_of(kind)
        if rows:
            valid = sum(row.status is CellStatus.valid for row in rows)
            parts.append(f"{valid:,} of {numbers.count(len(rows), one, several)}")
    said = f"Valid: {', '.join(parts)}." if parts else ""
    others = [row for row in result.rows if row.status is not CellStatus.valid]
    if others:
        said += f" Without a number: {tally(others)}."
    if not result.finished and result.origin is None:
        said = f"Not finished: not every planned cell has its final status. {said}"
    return said.strip()


def _decode(result: SpeedResult) -> str:
    valid = [
        (row, values)
        for row in result.rows_of("decode")
        if (values := values_of(row)) is not None and values.tokens_per_s is not None
    ]
    if not valid:
        planned = result.rows_of("decode")
        return f"Decode: no cell is valid ({tally(planned)})." if planned else "Decode was not measured."
    first = min(valid, key=lambda pair: (pair[0].concurrency, pair[0].context_tokens))
    most = max(valid, key=lambda pair: (pair[1].tokens_per_s or 0.0, -pair[0].concurrency))
    row, values = first
    reads = per_user(values)
    about = "about " if values.estimated else ""
    if row.concurrency == 1:
        rate = numbers.brief_rate(reads if reads is not None else values.tokens_per_s)
        said = f"One user at {label_of(row)} reads {about}{rate} tok/s"
    else:
        rate = numbers.brief_rate(reads)
        each = f"each of {row.concurrency:,} users at {label_of(row)} reads {about}{rate} tok/s"
        alone = any(one.concurrency == 1 for one in result.rows_of("decode"))
        said = ("No cell with one user is valid; " if alone else "") + each
        said = said[:1].upper() + said[1:]
    if len(valid) == 1:
        if row.concurrency > 1:
            said += f", {about}{numbers.brief_rate(values.tokens_per_s)} tok/s in all"
        return f"{said}; no other cell is valid." if len(result.rows_of("decode")) > 1 else f"{said}."
    peak_row, peak = most
    rate = ("about " if peak.estimated else "") + numbers.brief_rate(peak.tokens_per_s)
    users = numbers.count(peak_row.concurrency, "user")
    share = numbers.brief_rate(per_user(peak)) if peak_row.concurrency > 1 else numbers.ABSENT
    each = "" if share == numbers.ABSENT else f", each reading {share}"
    return f"{said}; the most this server gave was {rate} tok/s, {users} at {label_of(peak_row)}{each}."


def _prefill(result: SpeedResult) -> str:
    rows = sorted(result.rows_of("prefill"), key=lambda row: row.context_tokens)
    valid = [
        (row, values.tokens_per_s)
        for row in rows
        if (values := values_of(row)) is not None and values.tokens_per_s is not None
    ]
    if not rows:
        return "Prefill was not measured."
    if not valid:
        return f"Prefill: no cell is valid ({tally(rows)})."
    (first, low_rate), (last, high_rate) = valid[0], valid[-1]
    said = f"Prompts are read at {numbers.brief_rate(low_rate)} tok/s at {label_of(first)}"
    if last is not first:
        said += f" and {numbers.brief_rate(high_rate)} at {label_of(last)}"
    return f"{said}."


def notes(result: SpeedResult) -> RenderableType | None:
    """Return the notes of all cells, those of one kind together, and the warnings of the whole; None without any."""
    items = [indented(bulleted("!", "bold yellow", safe_text(said, "", 2000))) for said in result.warnings]
    items += [indented(bulleted("!", "bold yellow", said)) for said in grouped_notes(result.rows)]
    return Group(heading("Notes and warnings"), *items) if items else None


def grouped_notes(rows: Iterable[CellRow]) -> list[Text]:
    """Say the notes of cells, those of one kind together."""
    kinds: dict[str, list[tuple[CellRow, str]]] = {}
    for row in rows:
        for note in row.notes:
            # Notes that differ in their numbers only are of one kind.
            kinds.setdefault(_NUMBER.sub("#", note), []).append((row, note))
    said = []
    for held in kinds.values():
        alike = len({note for _, note in held}) == 1
        quoted = held[:1] if alike else held[:_QUOTED]
        text = Text()
        if alike:
            text.append(safe(held[0][1], _NOTE_LIMIT)).append(
                f" ({_cells([row for row, _ in held])})", style="dim"
            )
        else:
            text.append("; ".join(f"{_where(row)}: {safe(note, _NOTE_LIMIT)}" for row, note in quoted))
            if len(held) > _QUOTED:
                text.append(f"; likewise {_cells([row for row, _ in held[_QUOTED:]])}", style="dim")
        said.append(text)
    if len(said) > _KINDS:
        said[_KINDS:] = [Text(f"and {len(said) - _KINDS:,} more kinds of notes in result.json", style="dim")]
    return said


def _where(row: CellRow) -> str:
    return name_of(row) if row.kind == "decode" else f"{row.kind} {name_of(row)}"


def _cells(rows: Sequence[CellRow]) -> str:
    shown = ", ".join(_where(row) for row in rows[:8])
    return shown if len(rows) <= 8 else f"{shown} and {len(rows) - 8:,} more"


def methodology(result: SpeedResult) -> RenderableType | None:
    """Return what each measure that occurs is, in a compact block; None where the result tells none.

    The methods' notes stay in the result's file.
    """
    lines: list[tuple[str, RenderableType]] = []
    for method in methods_that_occur(result):
        unit = f" [{safe(method.unit, 40)}]" if method.unit else ""
        said = Text(f"{safe(method.formula, _NOTE_LIMIT)}{unit}", style="dim")
        lines.append((safe(method.name, 40), said))
    if not lines:
        return None
    title = heading("What each number is").append(
        "  more in result.json, under methodology", style="not bold dim"
    )
    return Group(title, facts(lines, styles=["dim"] * len(lines)))


def methods_that_occur(result: SpeedResult) -> list[Method]:
    """Return the methods of those measures that this result has numbers of."""
    absent = {name for name, there in _OCCURS.items() if not there(result)}
    return [method for method in result.methodology if method.name not in absent]


def _any(found: Callable[[CellValues], object]) -> Callable[[SpeedResult], bool]:
    return lambda result: any(
        values is not None and found(values) is not None for row in result.rows for values in (row.values,)
    )


# A measure that this result has no number of needs no explanation.
_OCCURS: dict[str, Callable[[SpeedResult], bool]] = {
    "prefill rate": lambda result: bool(result.rows_of("prefill")),
    "burst rate": lambda result: bool(result.rows_of("burst")),
    "mixed prefill slowdown": lambda result: bool(result.rows_of("mixed")),
    "speculative acceptance": _any(lambda values: values.speculation),
    "energy a token": _any(lambda values: values.energy_per_token_j),
    "E2E rate per user": _any(lambda values: values.e2e_per_user),
}
