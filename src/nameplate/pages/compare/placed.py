"""Measures with the places that they have in their document, in the order in which a page shows them."""

from __future__ import annotations

from collections.abc import Iterator

from nameplate.compare.document import CellCompared, Compared, Comparison

# A measure of a cell, with the number of each in the document.
Placed = tuple[int, CellCompared, int, Compared]


def placed(told: Comparison) -> Iterator[Placed]:
    """Yield every measure, the loads first and the baselines last, of each what it is about first."""
    order = sorted(enumerate(told.cells), key=lambda pair: pair[1].group == "baseline")
    for at, cell in order:
        places = sorted(enumerate(cell.measures), key=lambda pair: not pair[1].gated)
        for number, one in places:
            yield at, cell, number, one
