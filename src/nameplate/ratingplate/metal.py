"""The plate itself: metal, an engraved frame with room for four rivets, and a dark band for the title."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from nameplate.ratingplate.sheet import BAND, INK, Sheet, number

WIDTH = 640.0
# From the plate's edge to its frame, and how much of each corner of the frame belongs to a rivet.
INSET, CORNER = 13.0, 19.0
LEFT, RIGHT = 34.0, WIDTH - 34.0
BAND_BOTTOM = 70.0
_RIVET = INSET + 5.0
# Brushed metal: lines that come again every few units, each with its first place, height, colour and opacity.
_PITCH = 7.0
_BRUSH = (
    (4.0, 0.5, "#ffffff", 0.34),
    (6.0, 0.5, "#6b7278", 0.07),
    (7.5, 0.5, "#ffffff", 0.22),
    (9.5, 0.5, "#6b7278", 0.05),
)


def definitions(root: ET.Element, name: str) -> None:
    """Define what metal and rivets are filled with, below ids that begin with `name`."""
    defs = ET.SubElement(root, "defs")
    metal = ET.SubElement(
        defs, "linearGradient", {"id": f"{name}-metal", "x1": "0", "y1": "0", "x2": "1", "y2": "0"}
    )
    for offset, colour in (
        (0, "#f3f4f5"),
        (0.3, "#dfe2e4"),
        (0.52, "#eef0f1"),
        (0.78, "#d3d7da"),
        (1, "#e2e5e7"),
    ):
        ET.SubElement(metal, "stop", {"offset": number(offset), "stop-color": colour})
    rivet = ET.SubElement(
        defs, "radialGradient", {"id": f"{name}-rivet", "cx": "0.36", "cy": "0.3", "r": "0.8"}
    )
    for offset, colour in ((0, "#ffffff"), (0.45, "#b9bec3"), (1, "#6c7278")):
        ET.SubElement(rivet, "stop", {"offset": number(offset), "stop-color": colour})


def plate(sheet: Sheet, height: float, name: str) -> None:
    """Draw metal, frame, band and rivets of a plate of this height."""
    sheet.rect(
        1, 1, WIDTH - 2, height - 2, 13, fill=f"url(#{name}-metal)", stroke="#71777d", stroke_width="1.6"
    )
    for first, tall, colour, opacity in _BRUSH:
        lines = "".join(
            f"M6 {number(y)}h{number(WIDTH - 12)}v{tall}h{number(12 - WIDTH)}z"
            for y in _every(first, height - 5)
        )
        sheet.path(lines, fill=colour, fill_opacity=number(opacity))
    sheet.rect(
        3,
        3,
        WIDTH - 6,
        height - 6,
        11,
        fill="none",
        stroke="#ffffff",
        stroke_opacity="0.75",
        stroke_width="1.2",
    )
    sheet.path(_frame(INSET, CORNER, height), fill="none", stroke=INK, stroke_width="1.8")
    sheet.path(_band(), fill=BAND)
    for x in (_RIVET, WIDTH - _RIVET):
        for y in (_RIVET, height - _RIVET):
            sheet.circle(x, y, 5.6, fill=f"url(#{name}-rivet)", stroke="#4f555a", stroke_width="0.9")
            sheet.circle(x - 1.5, y - 1.7, 1.5, fill="#ffffff", fill_opacity="0.75")


def _every(first: float, end: float) -> list[float]:
    return [first + at * _PITCH for at in range(int((end - first) / _PITCH) + 1)]


def _frame(inset: float, corner: float, height: float) -> str:
    left, right, top, bottom = inset, WIDTH - inset, inset, height - inset
    arc = f"A{number(corner)} {number(corner)} 0 0 0"
    points = (
        f"M{number(left + corner)} {number(top)}H{number(right - corner)}",
        f"{arc} {number(right)} {number(top + corner)}V{number(bottom - corner)}",
        f"{arc} {number(right - corner)} {number(bottom)}H{number(left + corner)}",
        f"{arc} {number(left)} {number(bottom - corner)}V{number(top + corner)}",
        f"{arc} {number(left + corner)} {number(top)}Z",
    )
    return "".join(points)


def _band() -> str:
    inset, corner = INSET + 3.6, CORNER
    left, right, top = inset, WIDTH - inset, inset
    arc = f"A{number(corner)} {number(corner)} 0 0 0"
    return (
        f"M{number(left + corner)} {number(top)}H{number(right - corner)}"
        f"{arc} {number(right)} {number(top + corner)}V{number(BAND_BOTTOM)}H{number(left)}V{number(top + corner)}"
        f"{arc} {number(left + corner)} {number(top)}Z"
    )
