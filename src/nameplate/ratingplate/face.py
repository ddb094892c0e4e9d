"""Widths of text in the plate's own faces, read from the font files themselves.

A TrueType file is a table of contents and tables; `head` has the units an em, `hhea` and `hmtx` the advances, and a
`cmap` of format 4 maps characters to glyphs (the OpenType specification, tables of those names).
"""

from __future__ import annotations

import struct
import unicodedata
from functools import cache
from pathlib import Path

from msgspec import Struct

FAMILY = "Barlow Condensed"
FOLDER = Path(__file__).parent / "fonts"
MEDIUM, BOLD = 500, 700
FILES = {MEDIUM: FOLDER / "medium.ttf", BOLD: FOLDER / "bold.ttf"}

# What a character of another font takes, in ems: East Asian ones fill a square, others are a bold sans serif's.
_WIDE, _OTHER = 1.0, 0.66


class Face(Struct, frozen=True):
    """Hold the advance of every character that a face has, in ems; those of others are estimated."""

    advances: dict[str, float]

    def has(self, text: str) -> bool:
        """Tell whether the face has all characters of a text."""
        return all(letter in self.advances for letter in text)

    def reading(self, text: str) -> Face:
        """Return the face that a text is set in: a text with letters of other fonts is all of such a one."""
        return self if self.has(text) else FOREIGN

    def width(self, text: str, size: float, tracking: float = 0.0) -> float:
        """Return the width of a text at a size, with `tracking` between its letters."""
        return sum(self._advance(letter) for letter in text) * size + tracking * max(0, len(text) - 1)

    def _advance(self, letter: str) -> float:
        known = self.advances.get(letter)
        if known is not None:
            return known
        if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
            return 0.0
        return _WIDE if unicodedata.east_asian_width(letter) in ("W", "F") else _OTHER


FOREIGN = Face({})


@cache
def face(weight: int) -> Face:
    """Read a face; its file is part of the package."""
    data = FILES[weight].read_bytes()
    tables = {}
    for at in range(int.from_bytes(data[4:6], "big")):
        tag, _, offset, length = struct.unpack_from(">4sIII", data, 12 + 16 * at)
        tables[tag] = data[offset : offset + length]
    (em,) = struct.unpack_from(">H", tables[b"head"], 18)
    (measured,) = struct.unpack_from(">H", tables[b"hhea"], 34)
    widths = [struct.unpack_from(">H", tables[b"hmtx"], 4 * glyph)[0] for glyph in range(measured)]
    # Glyphs behind the last measured one are as wide as that.
    return Face(
        {
            chr(code): widths[min(glyph, measured - 1)] / em
            for code, glyph in _characters(tables[b"cmap"]).items()
        }
    )


def _characters(cmap: bytes) -> dict[int, int]:
    for at in range(int.from_bytes(cmap[2:4], "big")):
        (offset,) = struct.unpack_from(">I", cmap, 8 + 8 * at)
        if int.from_bytes(cmap[offset : offset + 2], "big") == 4:
            return _segments(cmap[offset:])
    raise ValueError("the font has no character map of format 4")


def _segments(table: bytes) -> dict[int, int]:
    (doubled,) = struct.unpack_from(">H", table, 6)
    count = doubled // 2
    ends = struct.unpack_from(f">{count}H", table, 14)
    starts = struct.unpack_from(f">{count}H", table, 16 + doubled)
    deltas = struct.unpack_from(f">{count}h", table, 16 + 2 * doubled)
    offsets_at = 16 + 3 * doubled
    offsets = struct.unpack_from(f">{count}H", table, offsets_at)
    found = {}
    for segment in range(count):
        for code in range(starts[segment], min(ends[segment], 0xFFFE) + 1):
            glyph = code
            if offsets[segment]:
                where = offsets_at + 2 * segment + offsets[segment] + 2 * (code - starts[segment])
                (glyph,) = struct.unpack_from(">H", table, where)
                if glyph == 0:
                    continue
            found[code] = (glyph + deltas[segment]) & 0xFFFF
    return found
