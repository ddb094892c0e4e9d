"""The files of a plate beside a study's evidence: outside of its manifest, since they can be drawn again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nameplate.evidence import layout
from nameplate.ratingplate.markdown import as_markdown
from nameplate.ratingplate.model import RatingPlate
from nameplate.ratingplate.picture import render
from nameplate.ratingplate.reading import read_rating_plate
from nameplate.ratingplate.svg import draw
from nameplate.ratingplate.text import as_text
from nameplate.report.writing import write_whole

# What each file holds; the picture comes last, since it alone needs more than Python.
DRAWINGS: dict[str, Callable[[RatingPlate], bytes]] = {
    layout.PLATE_SVG: lambda held: draw(held).encode(),
    layout.PLATE_MARKDOWN: lambda held: as_markdown(held, image=layout.PLATE_SVG).encode(),
    layout.PLATE_TEXT: lambda held: as_text(held).encode(),
    layout.PLATE_PNG: render,
}


def write_plate(directory: Path) -> tuple[Path, ...]:
    """Draw a study's plate in all its forms into its directory, and return the files.

    What `read_rating_plate` raises; ClientError where a drawing cannot be made, CallerError where it cannot be written.
    """
    held = read_rating_plate(directory)
    paths = []
    for name, drawn in DRAWINGS.items():
        write_whole(directory / name, drawn(held))
        paths.append(directory / name)
    return tuple(paths)
