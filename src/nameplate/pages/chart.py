"""Figures: Vega-Lite charts with a title, a description for those who do not see them, and their numbers in a table.

Vega-Lite was chosen for what it is: a specification that is data, so a chart is built and tested in Python; SVG that
takes its colours from the page's own, prints, and is read aloud; an interpreter that needs no `eval`; 0.8 MB, half of
Plotly's basic bundle, and kept up by many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import htpy as h
from msgspec import Struct

from nameplate.pages.embedded import embedded
from nameplate.report.safe import safe

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
HEIGHT_PX = 240

# What a chart is made of: Vega-Lite as plain data.
Spec = Mapping[str, Any]


class Panel(Struct, frozen=True):
    """Hold one chart of a figure: its specification, and in a sentence what it shows."""

    spec: Spec
    about: str


def panel(
    values: Sequence[Mapping[str, object]], about: str, height: int = HEIGHT_PX, **spec: object
) -> Panel:
    """Return a panel over these values; `spec` has the marks, encodings or layers of Vega-Lite."""
    return Panel(
        {
            "$schema": SCHEMA,
            "description": about,
            "width": "container",
            "height": height,
            "data": {"values": list(values)},
            **spec,
        },
        about,
    )


def shared(name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> h.Element:
    """Return data that several charts and tables of a page draw from, by `data=data_of(name)`; held once."""
    return embedded({"columns": list(columns), "rows": rows}, id=name)


def data_of(name: str) -> dict[str, str]:
    """Return the data of a chart that draws from shared data."""
    return {"of": name}


def figure(
    title: str,
    about: str,
    panels: Sequence[Panel],
    numbers: h.Node = None,
    *,
    numbers_title: str = "The numbers of this figure",
    wide: bool = False,
    pairs: bool = False,
) -> h.Element:
    """Return a figure of one or more panels side by side; `numbers` is its table, folded away.

    Panels have scales of their own. `wide` puts them below each other, `pairs` at most two beside each other.
    """
    layout = {}
    if wide or len(panels) == 1:
        layout = {"style": "grid-template-columns: minmax(0, 1fr)"}
    elif pairs:
        layout = {"style": "grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr))"}
    return h.figure[
        h.figcaption[h.strong[safe(title, 300)], h.span[safe(about, 2000)]],
        h.div(".panels", layout)[
            [h.div(".panel", role="figure", aria_label=safe(one.about))[embedded(one.spec)] for one in panels]
        ],
        h.details[h.summary[numbers_title], numbers] if numbers is not None else None,
    ]


def axis(field: str, title: str, kind: str = "quantitative", **more: object) -> dict[str, object]:
    """Return an encoding of a field by position, with the axis titled by what it is and its unit."""
    return {"field": field, "type": kind, "title": title, **more}


def colour(
    field: str, domain: Sequence[str], colours: Sequence[str], title: str | None = None
) -> dict[str, object]:
    """Return an encoding by colour; `colours` are names of the page's variables (`good`, `s1`)."""
    return {
        "field": field,
        "type": "nominal",
        "title": title,
        "scale": {"domain": list(domain), "range": [f"var(--{name})" for name in colours]},
    }


def fixed(name: str) -> dict[str, str]:
    """Return one of the page's colours as a value of a mark."""
    return {"value": f"var(--{name})"}
