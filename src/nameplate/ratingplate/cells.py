"""Fields in cells: a small name above a text, several beside each other between thin lines."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.ratingplate.face import BOLD, MEDIUM, face
from nameplate.ratingplate.fit import fit
from nameplate.ratingplate.metal import LEFT, RIGHT
from nameplate.ratingplate.model import Field
from nameplate.ratingplate.sheet import INK, QUIET, Sheet

_PAD = 11.0
_FADED = "#62686e"


def row(
    sheet: Sheet,
    y: float,
    fields: Sequence[Field],
    *,
    shares: Sequence[float] = (),
    size: float = 17.0,
    least: float = 12.0,
    lines: int = 2,
    weight: int = BOLD,
) -> float:
    """Draw fields beside each other below y, each with its share of the width; return where the row ends."""
    parts = list(shares) or [1.0] * len(fields)
    total, x, bottoms, edges = sum(parts), LEFT, [], []
    for at, (held, part) in enumerate(zip(fields, parts, strict=True)):
        width = (RIGHT - LEFT) * part / total
        inner = width - (_PAD if at + 1 < len(fields) else 0.0) - (_PAD if at else 0.0)
        start = x + (_PAD if at else 0.0)
        bottoms.append(
            field(sheet, start, y + 17, held, inner, size=size, least=least, lines=lines, weight=weight)
        )
        x += width
        edges.append(x)
    bottom = max(bottoms) + 9
    for edge in edges[:-1]:
        sheet.rule(edge, y, edge, bottom)
    return bottom


def field(
    sheet: Sheet,
    x: float,
    y: float,
    held: Field,
    width: float,
    *,
    size: float,
    least: float,
    lines: int,
    weight: int = BOLD,
) -> float:
    """Draw one field with the baseline of its name at y; return the last baseline of its text."""
    sheet.label(x, y, held.name)
    stated = held.text is not None
    shown = weight if stated else MEDIUM
    fitted = fit(held.told, face(shown), width, size, least, lines)
    ink = INK if stated and weight == BOLD else QUIET if stated else _FADED
    return sheet.lines(x, y + 4 + fitted.size, fitted, weight=shown, ink=ink)
