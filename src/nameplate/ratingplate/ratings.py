"""The rated numbers: one stands large beside its contract, several stand in lines."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.ratingplate.cells import field
from nameplate.ratingplate.face import BOLD, FOREIGN, MEDIUM, face
from nameplate.ratingplate.fit import fit
from nameplate.ratingplate.metal import LEFT, RIGHT
from nameplate.ratingplate.model import Field, Rating
from nameplate.ratingplate.sheet import INK, LEADING, QUIET, Sheet, stamp_size

# Where the number of a single rating ends and its contract begins.
_MIDDLE = 278.0
_GAP = 22.0
# How tall a single number or stamp is, and its whole block at least.
_TALL, _LEAST = 100.0, 178.0
# How much of a line belongs to its number, and how wide a stamp there may be.
_NUMBER = 204.0


def single(sheet: Sheet, y: float, rating: Rating, promise: Field | None, verb: str) -> float:
    """Draw one rating below y: the number at the left, what it stands for at the right; return where it ends."""
    x, width = _MIDDLE + _GAP, RIGHT - _MIDDLE - _GAP
    at = y + 19
    fields = [] if promise is None else [(promise, 20.0, 13.0, 3, BOLD)]
    if rating.contract:
        fields.append((Field("How", rating.contract), 15.0, 12.0, 2, MEDIUM))
    if rating.stamp is not None:
        fields.append((Field("Status", rating.reason or rating.stamp.lower()), 15.0, 12.0, 6, MEDIUM))
    for note in rating.notes:
        short = note.text is not None and len(note.text) < 10
        fields.append((note, 20.0 if short else 15.0, 12.0, 3, BOLD if short else MEDIUM))
    for held, size, least, lines, weight in fields:
        at = field(sheet, x, at, held, width, size=size, least=least, lines=lines, weight=weight) + 22
    bottom = max(at - 22, y + _LEAST) + 14
    _number(sheet, y, bottom, rating, verb)
    sheet.rule(_MIDDLE, y, _MIDDLE, bottom)
    return bottom


def _number(sheet: Sheet, y: float, bottom: float, rating: Rating, verb: str) -> None:
    """Draw a single rating's number or stamp, with its unit and subject, in the middle of its height."""
    width, centre = _MIDDLE - LEFT - _GAP / 2, LEFT + (_MIDDLE - LEFT - _GAP / 2) / 2
    sheet.label(LEFT, y + 19, verb if rating.stamp is None else f"Not {verb.lower()}")
    unit, subject = (
        fit(rating.unit, face(BOLD), width, 21, 13, 2),
        fit(rating.subject, face(MEDIUM), width, 18, 12, 2),
    )
    below = len(unit.lines) * unit.size * LEADING + len(subject.lines) * subject.size * LEADING + 4
    top = y + 26 + max(0.0, (bottom - 10 - y - 26 - _TALL - below) / 2)
    if rating.stamp is not None:
        size = _stamp_size(rating.stamp, width - 8, 40.0)
        sheet.stamp(centre, top + _TALL / 2 - 4, rating.stamp, size, turn=-6)
    else:
        fitted = fit(rating.value or "", face(BOLD), width, 116, 30)
        baseline = top + _TALL / 2 + 0.35 * fitted.size
        sheet.text(LEFT - 2, baseline, fitted.lines[0], fitted.size, weight=BOLD, value=rating.number)
    baseline = sheet.lines(LEFT, top + _TALL + unit.size, unit, weight=BOLD)
    sheet.lines(LEFT, baseline + 4 + subject.size, subject, ink=QUIET)


def table(sheet: Sheet, y: float, ratings: Sequence[Rating]) -> float:
    """Draw ratings as lines below y, each with a number or a stamp at its right; return where they end."""
    for at, rating in enumerate(ratings):
        if at:
            sheet.rule(LEFT, y, RIGHT, y, 0.6)
        y = _line(sheet, y, rating)
    return y


def _line(sheet: Sheet, y: float, rating: Rating) -> float:
    width = RIGHT - LEFT - _NUMBER - 16
    subject = fit(rating.subject, face(BOLD), width, 17.5, 12, 2)
    baseline = sheet.lines(LEFT, y + 10 + 0.75 * subject.size, subject, weight=BOLD)
    details = fit(_details(rating), face(MEDIUM), width, 13.5, 11.5, 4)
    if details.lines != ("",):
        baseline = sheet.lines(LEFT, baseline + 3 + details.size * LEADING, details, ink=QUIET)
    bottom = max(baseline + 11, y + 50)
    middle = y + 25 if bottom - y < 56 else (y + bottom) / 2
    if rating.stamp is not None:
        size = _stamp_size(rating.stamp, _NUMBER, 19)
        sheet.stamp(RIGHT - stamp_size(rating.stamp, size)[0] / 2 - 2, middle, rating.stamp, size, turn=-3)
        return bottom
    unit = fit(rating.unit, face(MEDIUM), 84, 14.5, 11, 2)
    known = FOREIGN if unit.foreign else face(MEDIUM)
    unit_width = max(known.width(line, unit.size) for line in unit.lines)
    value = fit(rating.value or "", face(BOLD), _NUMBER - unit_width - 7, 37, 16)
    base = middle + 0.36 * value.size
    lines = len(unit.lines)
    sheet.lines(RIGHT - unit_width, base - (lines - 1) * unit.size * LEADING, unit, ink=QUIET)
    sheet.text(
        RIGHT - unit_width - 7,
        base,
        value.lines[0],
        value.size,
        weight=BOLD,
        ink=INK,
        anchor="end",
        value=rating.number,
    )
    return bottom


def _details(rating: Rating) -> str:
    """Say in one text what stands below a rating's subject."""
    said = [rating.reason.rstrip(".")] if rating.stamp is not None and rating.reason else []
    said += [rating.contract] if rating.contract else []
    said += [f"{_lower(note.name)}{':' if ' ' in note.told else ''} {note.told}" for note in rating.notes]
    return " · ".join(said)


def _lower(name: str) -> str:
    """Write a field's name within a text: `operate at`, but `TTFT p50`."""
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


def _stamp_size(word: str, width: float, most: float) -> float:
    """Return the size at which a stamp is no wider than a width."""
    return min(most, most * width / stamp_size(word, most)[0])
