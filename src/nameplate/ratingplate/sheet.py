"""A sheet that is drawn on: SVG elements built as a tree, so that foreign text is only ever text.

Every text carries its width by the plate's own faces as `textLength`: a viewer without them fits its letters in.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nameplate.ratingplate.face import BOLD, FAMILY, MEDIUM, face
from nameplate.ratingplate.fit import Fitted
from nameplate.report.safe import safe

SVG = "http://www.w3.org/2000/svg"
FAMILIES = f"'{FAMILY}', 'Roboto Condensed', 'Arial Narrow', 'DejaVu Sans Condensed', 'Noto Sans', sans-serif"
# A text with letters that ours has not is set in one font that has most of the world's.
FOREIGN_FAMILIES = (
    "'Noto Sans', 'DejaVu Sans Condensed', 'DejaVu Sans', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
)
LEADING = 1.16

INK, QUIET, RULE, BAND, PALE, STAMP, STAMP_ON_BAND = (
    "#15191c",
    "#4b5157",
    "#868c92",
    "#1f252a",
    "#eef0f1",
    "#a3211a",
    "#ff9c88",
)


def number(value: float) -> str:
    """Write a coordinate: two decimals, without zeros that nobody needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


class Sheet:
    """Collect the elements of a drawing in the order in which they are painted."""

    def __init__(self, root: ET.Element) -> None:
        self._at = root

    def group(self, **attributes: str) -> Sheet:
        """Begin a group, and return the sheet that draws into it."""
        return Sheet(self._add("g", attributes))

    def rect(
        self, x: float, y: float, width: float, height: float, radius: float = 0.0, **attributes: str
    ) -> None:
        """Draw a rectangle."""
        place = {"x": x, "y": y, "width": width, "height": height, **({"rx": radius} if radius else {})}
        self._add("rect", {**{name: number(at) for name, at in place.items()}, **attributes})

    def path(self, d: str, **attributes: str) -> None:
        """Draw a path."""
        self._add("path", {"d": d, **attributes})

    def rule(self, x1: float, y1: float, x2: float, y2: float, width: float = 0.9, ink: str = RULE) -> None:
        """Draw a thin line."""
        place = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        line = {name: number(at) for name, at in place.items()}
        self._add("line", {**line, "stroke": ink, "stroke-width": number(width)})

    def circle(self, x: float, y: float, radius: float, **attributes: str) -> None:
        """Draw a circle."""
        self._add("circle", {"cx": number(x), "cy": number(y), "r": number(radius), **attributes})

    def text(
        self,
        x: float,
        y: float,
        said: str,
        size: float,
        *,
        weight: int = MEDIUM,
        ink: str = INK,
        anchor: str = "start",
        tracking: float = 0.0,
        value: float | None = None,
    ) -> float:
        """Write one line of text with its baseline at y, and return its width; `value` is the number it stands for."""
        said = safe(said, None)
        width = face(weight).reading(said).width(said, size, tracking)
        attributes = {"x": number(x), "y": number(y), "font-size": number(size), "font-weight": str(weight)}
        attributes["fill"] = ink
        if anchor != "start":
            attributes["text-anchor"] = anchor
        if tracking:
            attributes["letter-spacing"] = number(tracking)
        elif said.strip():
            attributes |= {"textLength": number(width), "lengthAdjust": "spacingAndGlyphs"}
        if value is not None:
            attributes["data-value"] = repr(value)
        self._add("text", attributes).text = said
        return width

    def lines(
        self,
        x: float,
        y: float,
        fitted: Fitted,
        *,
        weight: int = MEDIUM,
        ink: str = INK,
    ) -> float:
        """Write fitted lines with the first baseline at y; return the last baseline."""
        for at, line in enumerate(fitted.lines):
            below = y + at * fitted.size * LEADING
            if fitted.foreign:
                self._foreign(x, below, line, fitted, weight, ink)
            else:
                self.text(x, below, line, fitted.size, weight=weight, ink=ink)
        return y + max(0, len(fitted.lines) - 1) * fitted.size * LEADING

    def _foreign(self, x: float, y: float, line: str, fitted: Fitted, weight: int, ink: str) -> None:
        """Write a line whose true width nobody knows here: it is cut at the edge of its place."""
        left, top, width, height = map(number, (x, y - 1.1 * fitted.size, fitted.width, 1.45 * fitted.size))
        place = {"x": left, "y": top, "width": width, "height": height}
        view = self._add("svg", {**place, "viewBox": f"{left} {top} {width} {height}"})
        how = {"font-size": number(fitted.size), "font-weight": str(weight), "fill": ink}
        text = Sheet(view)._add(
            "text", {"x": number(x), "y": number(y), "font-family": FOREIGN_FAMILIES, **how}
        )
        text.text = safe(line, None)

    def label(self, x: float, y: float, said: str, ink: str = QUIET) -> None:
        """Write a field's name: small spaced capitals."""
        self.text(x, y, said.upper(), 11.5, weight=MEDIUM, ink=ink, tracking=0.95)

    def stamp(
        self, x: float, y: float, word: str, size: float, *, ink: str = STAMP, turn: float = 0.0
    ) -> None:
        """Stamp a word in a double frame around a centre, turned by so many degrees."""
        width, height = stamp_size(word, size)
        inner = (
            self.group(transform=f"rotate({number(turn)} {number(x)} {number(y)})") if turn else self.group()
        )
        left, top, line = x - width / 2, y - height / 2, max(1.1, size / 19)
        frame = {"fill": "none", "stroke": ink}
        inner.rect(left, top, width, height, 3, **frame, **{"stroke-width": number(line * 1.5)})
        gap = line * 2.2
        inner.rect(
            left + gap,
            top + gap,
            width - 2 * gap,
            height - 2 * gap,
            1.5,
            **frame,
            **{"stroke-width": number(line / 2)},
        )
        tracking = size / 10
        # What follows the last letter is no part of the word.
        centre = x + tracking / 2
        inner.text(
            centre, y + size * 0.35, word, size, weight=BOLD, ink=ink, anchor="middle", tracking=tracking
        )

    def _add(self, tag: str, attributes: dict[str, str]) -> ET.Element:
        return ET.SubElement(
            self._at, tag, {name.replace("_", "-"): said for name, said in attributes.items()}
        )


def stamp_size(word: str, size: float) -> tuple[float, float]:
    """Return width and height of a stamp around a word."""
    return face(BOLD).width(word, size, size / 10) + size * 1.3, size * 1.75
