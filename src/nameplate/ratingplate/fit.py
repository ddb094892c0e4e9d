"""Making a text fit its place: smaller first, then over several lines, and in the end with an ellipsis."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from nameplate.ratingplate.face import FOREIGN, Face
from nameplate.report.safe import safe

ELLIPSIS = "…"
_STEP = 0.5
# No plate has room for more; what lies beyond is left to the description.
_MOST_LETTERS = 400
# A line may end behind a blank and behind the marks between the words of a name, but not within a number.
_WORDS = re.compile(r"(?:[^ /_,;:.+-]|[,.:](?=\d))*[ /_,;:.+-]?")
# A limit, its number and its unit stay on one line, by blanks that do not break.
_UNIT = re.compile(r" (?=<|p\d)|(?<=<) |(?<=\d) (?=(?:us|ms|s|min|h|tokens?|tok/s|req/s|requests/s)\b)")


class _Word(NamedTuple):
    """Hold a word with its blank, and its width in ems where the line goes on and where it ends."""

    text: str
    goes_on: float
    ends: float


class Fitted(Struct, frozen=True):
    """Hold lines of text at a size within a width; `whole` says whether nothing was left out.

    `foreign` says that they are set in whatever font has their letters, so that their width is an estimate.
    """

    lines: tuple[str, ...]
    size: float
    whole: bool
    width: float
    foreign: bool = False


def fit(text: str, face: Face, width: float, size: float, least: float, lines: int = 1) -> Fitted:
    """Fit a text into a width: at `size` where it can be, never below `least`, on at most so many lines.

    A line more is taken before letters shrink below four fifths of their size.
    """
    said = _UNIT.sub("\u00a0", " ".join(safe(text, _MOST_LETTERS).split()))
    face = face.reading(said)
    words = [
        _Word(word, face.width(word, 1.0), face.width(word.rstrip(), 1.0)) for word in _WORDS.findall(said)
    ]
    middle = max(least, 0.8 * size)
    for low, high in ((middle, size), (least, middle)):
        for count in range(1, lines + 1):
            at = high
            while at >= low:
                broken = _wrapped(words, width / at, count)
                if broken is not None:
                    return Fitted(tuple(broken), at, True, width, face is FOREIGN)
                at -= _STEP
    return _cut(said, face, width, least, lines)


def _wrapped(words: Sequence[_Word], ems: float, lines: int) -> list[str] | None:
    """Break words into lines of at most so many ems; None where so many lines do not hold them."""
    found: list[str] = []
    line, used = "", 0.0
    for word in words:
        if used + word.ends <= ems:
            line, used = line + word.text, used + word.goes_on
            continue
        if not line or len(found) + 1 == lines or word.ends > ems:
            return None
        found.append(line.rstrip())
        line, used = word.text, word.goes_on
    return [*found, line.rstrip()]


def _cut(text: str, face: Face, width: float, size: float, lines: int) -> Fitted:
    """Fill lines to their last letter, and end the last one with an ellipsis."""
    found: list[str] = []
    rest = text
    while len(found) < lines:
        if face.width(rest, size) <= width:
            return Fitted((*found, rest), size, True, width, face is FOREIGN)
        last = len(found) + 1 == lines
        room = width - (face.width(ELLIPSIS, size) if last else 0.0)
        end = _letters(rest, face, room, size)
        found.append(rest[:end].rstrip() + (ELLIPSIS if last else ""))
        rest = rest[end:].lstrip()
    return Fitted(tuple(found), size, False, width, face is FOREIGN)


def _letters(text: str, face: Face, width: float, size: float) -> int:
    """Return how many letters fit, at least one; a mark is not taken from its letter."""
    end = 1
    while end < len(text) and face.width(text[: end + 1], size) <= width:
        end += 1
    while 1 < end < len(text) and unicodedata.category(text[end]) in ("Mn", "Me", "Cf"):
        end -= 1
    return end
