"""`plate.svg`: the rating plate as a drawing that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import xml.etree.ElementTree as ET

from nameplate.ratingplate import ratings
from nameplate.ratingplate.cells import row
from nameplate.ratingplate.face import BOLD, FAMILY, FILES, MEDIUM, face
from nameplate.ratingplate.fit import fit
from nameplate.ratingplate.metal import BAND_BOTTOM, INSET, LEFT, RIGHT, WIDTH, definitions, plate
from nameplate.ratingplate.model import Field, RatingPlate
from nameplate.ratingplate.sheet import FAMILIES, PALE, STAMP_ON_BAND, SVG, Sheet, number, stamp_size
from nameplate.ratingplate.words import described, evidence, sentence

_PROMISE = "Promise"
_SHORT_DIGEST = 16


def draw(held: RatingPlate, *, embed_fonts: bool = True) -> str:
    """Draw a plate as SVG; with `embed_fonts` its faces are part of it (some 35 KB), else viewers take their own."""
    body = ET.Element("g", {"font-family": FAMILIES})
    sheet = Sheet(body)
    _title(sheet, held)
    height = _content(sheet, held) + INSET
    name = f"plate-{hashlib.sha256(described(held).encode()).hexdigest()[:8]}"
    root = ET.Element(
        "svg",
        {
            "xmlns": SVG,
            "width": number(WIDTH),
            "height": number(height),
            "viewBox": f"0 0 {number(WIDTH)} {number(height)}",
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-desc",
        },
    )
    ET.SubElement(root, "title", {"id": f"{name}-title"}).text = sentence(held)
    ET.SubElement(root, "desc", {"id": f"{name}-desc"}).text = described(held)
    if embed_fonts:
        ET.SubElement(root, "style").text = "".join(_face(weight) for weight in FILES)
    definitions(root, name)
    plate(Sheet(root), height, name)
    root.append(body)
    return ET.tostring(root, encoding="unicode") + "\n"


def _face(weight: int) -> str:
    data = base64.b64encode(FILES[weight].with_suffix(".woff2").read_bytes()).decode("ascii")
    return (
        f"@font-face{{font-family:'{FAMILY}';font-weight:{weight};src:url(data:font/woff2;base64,{data})"
        f"format('woff2')}}"
    )


def _title(sheet: Sheet, held: RatingPlate) -> None:
    """Write the title into the band, and at its right the stamps, or the maker's name."""
    right, middle = RIGHT - 14, (BAND_BOTTOM + INSET + 3.6) / 2
    for word in reversed(held.stamps):
        width, _ = stamp_size(word, 17)
        sheet.stamp(right - width / 2, middle, word, 17, ink=STAMP_ON_BAND, turn=-3)
        right -= width + 12
    if not held.stamps:
        sheet.text(RIGHT - 14, middle + 5, "NAMEPLATE", 14, ink="#aab1b7", anchor="end", tracking=3.2)
        right -= 110
    title = fit(held.title.upper(), face(BOLD), (right - LEFT - 30) / 1.13, 27, 14)
    sheet.text(
        LEFT + 14,
        middle + 0.36 * title.size,
        title.lines[0],
        title.size,
        weight=BOLD,
        ink=PALE,
        tracking=0.075 * title.size,
    )


def _content(sheet: Sheet, held: RatingPlate) -> float:
    """Draw everything below the band; return where it ends."""
    model, hardware, engine, *others = held.machine
    y = row(sheet, BAND_BOTTOM + 1, [model], size=24, least=14)
    y = _ruled(sheet, y)
    y = row(sheet, y, [hardware, engine], shares=(3, 2))
    y = _ruled(sheet, y)
    y = row(sheet, y, others, size=16)
    y = _ruled(sheet, y, 1.8)
    promise = next((term for term in held.terms if term.name == _PROMISE), None)
    rest = [term for term in held.terms if term is not promise]
    if len(held.ratings) == 1:
        y = ratings.single(sheet, y, held.ratings[0], promise, held.verb)
    else:
        if promise is not None:
            y = _ruled(sheet, row(sheet, y, [promise], size=20, least=13))
        y = ratings.table(sheet, y + 2, held.ratings)
    y = _ruled(sheet, y, 1.8)
    for term in rest:
        y = _ruled(sheet, row(sheet, y, [term], size=14.5, least=12, weight=MEDIUM))
    last = [
        Field("Date", held.date),
        Field("Evidence", evidence(held, _SHORT_DIGEST)),
        Field("Measured by", held.tool),
    ]
    return row(sheet, y, last, shares=(5, 9, 7), size=16, lines=1) + 10


def _ruled(sheet: Sheet, y: float, width: float = 0.9) -> float:
    sheet.rule(
        INSET + (0 if width > 1 else LEFT - INSET),
        y,
        WIDTH - INSET - (0 if width > 1 else LEFT - INSET),
        y,
        width,
    )
    return y
