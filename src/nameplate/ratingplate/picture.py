"""`plate.png`: the drawing as a picture, the same on every machine."""

from __future__ import annotations

from nameplate.contract.errors import ClientError
from nameplate.ratingplate.face import BOLD, FAMILY, FILES, MEDIUM, face
from nameplate.ratingplate.model import RatingPlate
from nameplate.ratingplate.svg import draw
from nameplate.ratingplate.words import described

# Pixels a unit of the drawing: sharp on screens of twice the density, and in print at half a page.
SCALE = 2


def render(held: RatingPlate) -> bytes:
    """Draw a plate as PNG with the package's own fonts; ClientError where this machine cannot.

    Fonts of the system are asked only for characters that ours do not have; what no font has is drawn as a box.
    """
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise ClientError(
            f"The picture of the plate cannot be drawn: {error}.",
            why="PNG is rendered by resvg, which this installation does not have.",
            hint="pip install resvg-py; the drawing as SVG needs nothing.",
        ) from error
    letters = set(described(held)) - {"\n"}
    ours = all(face(weight).has(letter) for letter in letters for weight in (MEDIUM, BOLD))
    try:
        return bytes(
            svg_to_bytes(
                svg_string=draw(held, embed_fonts=False),
                font_files=[str(path) for path in FILES.values()],
                skip_system_fonts=ours,
                sans_serif_family=FAMILY,
                zoom=SCALE,
            )
        )
    except ValueError as error:
        raise ClientError(f"The picture of the plate cannot be drawn: {error}.") from error
