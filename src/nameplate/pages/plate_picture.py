"""The rating plate as a picture on a page: an image of its own, so that nothing in it is part of the page."""

from __future__ import annotations

import base64
from pathlib import Path

import htpy as h

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.ratingplate.model import RatingPlate
from nameplate.ratingplate.reading import read_rating_plate
from nameplate.ratingplate.svg import draw
from nameplate.ratingplate.words import sentence

# Whether what stands within is contradicted by its evidence: a plate stands for a rating, so none is drawn there.
CONTRADICTED: h.Context[bool] = h.Context("contradicted", default=False)


def plate_picture(directory: Path) -> h.Node:
    """Return the plate of a study; nothing where it has none yet, or none that its evidence agrees with."""
    try:
        held = read_rating_plate(directory)
    except (CallerError, EvidenceError):
        return None
    return _picture(held)


@CONTRADICTED.consumer
def _picture(contradicted: bool, held: RatingPlate) -> h.Node:
    if contradicted:
        return h.div(".card")["The rating plate is left out: the evidence contradicts what is published."]
    data = base64.b64encode(draw(held).encode()).decode()
    return h.div(".plate")[h.img(src=f"data:image/svg+xml;base64,{data}", alt=sentence(held))]
