"""`plate.txt`: the rating plate in letters of one width, within eighty columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells

from nameplate.ratingplate.model import Field, Rating, RatingPlate
from nameplate.ratingplate.words import evidence, said
from nameplate.report.safe import safe

COLUMNS = 78
# What a frame and its blanks leave to the text, and how wide the names before it are.
_INSIDE, _NAMES = COLUMNS - 4, 15
# Terminals do not agree on how wide joined letters are; apart they have their columns.
_JOINERS = {0x200C: None, 0x200D: None}


def as_text(held: RatingPlate) -> str:
    """Write a plate as plain text with a frame."""
    lines = [_edge("╔", "═", "╗"), _title(held), _edge("╠", "═", "╣")]
    lines += _fields(held.machine)
    for rating in held.ratings:
        lines.append(_edge("╟", "─", "╢"))
        lines += _rating(rating, held.verb)
    lines.append(_edge("╟", "─", "╢"))
    lines += _fields(held.terms)
    lines.append(_edge("╟", "─", "╢"))
    lines += _fields(
        (Field("Date", held.date), Field("Evidence", evidence(held)), Field("Measured by", held.tool or None))
    )
    lines.append(_edge("╚", "═", "╝"))
    return "\n".join(lines) + "\n"


def _title(held: RatingPlate) -> str:
    stamps = "  ".join(f"** {safe(stamp)} **" for stamp in held.stamps)
    title = safe(held.title).upper()
    room = max(1, _INSIDE - cell_len(title) - cell_len(stamps))
    return _line(f"{title}{' ' * room}{stamps}")


def _rating(rating: Rating, verb: str) -> list[str]:
    number = Field(verb, said(rating))
    if rating.stamp is not None:
        number = Field(f"Not {verb.lower()}", f"** {rating.stamp} **")
    lines = _fields((number, Field("For", rating.subject)))
    if rating.stamp is not None and rating.reason:
        lines += _fields((Field("Because", rating.reason),))
    if rating.contract:
        lines += _fields((Field("How", rating.contract),))
    return lines + _fields(rating.notes)


def _fields(fields: Iterable[Field]) -> list[str]:
    found = []
    for field in fields:
        text, name = safe(field.told).translate(_JOINERS), safe(field.name)
        rows = _wrapped(text, _INSIDE - _NAMES) or [""]
        if _INSIDE - _NAMES < cell_len(text) <= _INSIDE and " " not in text:
            # A digest is copied whole.
            found += [_line(name), _line(text)]
            continue
        if cell_len(name) > _NAMES - 1:
            found.append(_line(name))
            name = ""
        for at, row in enumerate(rows):
            head = name if at == 0 else ""
            found.append(_line(head + " " * (_NAMES - cell_len(head)) + row))
    return found


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text at its blanks, and a word that is longer than a line anywhere."""
    rows: list[str] = []
    row = ""
    for word in text.split():
        for part in _parts(word, width):
            if row and cell_len(row) + 1 + cell_len(part) <= width:
                row += f" {part}"
                continue
            if row:
                rows.append(row)
            row = part
    return [*rows, row] if row else rows


def _parts(word: str, width: int) -> Sequence[str]:
    return [word] if cell_len(word) <= width else chop_cells(word, width)


def _line(text: str) -> str:
    """Frame one line; what is too wide for it is cut."""
    if cell_len(text) > _INSIDE:
        text = chop_cells(text, _INSIDE)[0]
    return f"║ {text}{' ' * (_INSIDE - cell_len(text))} ║"


def _edge(left: str, middle: str, right: str) -> str:
    return left + middle * (COLUMNS - 2) + right
