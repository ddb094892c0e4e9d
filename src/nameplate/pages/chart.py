"""Figures: Vega-Lite charts with a title, a description for those who do not see them, and their numbers in a table.

Vega-Lite was chosen for what it is: a specification that is data, so a chart is built and tested in Python; SVG that
takes its colours from the page's own, prints, and is read aloud; an interpreter that needs no `eval`; 0.8 MB, half of
Plotly's basic bundle, and kept up by many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import htpy as h
from msgspec import Struct

from nameplate.pages.embedded import embedded
from nameplate.report.safe import safe

HEIGHT_PX = 240

# What a chart is made of: Vega-Lite as plain data.
Spec = Mapping[str, Any]


class Panel(Struct, frozen=True):
    """Hold one chart of a figure: its specification, in a sentence what it shows, and which charts it resembles."""

    spec: Spec
    about: str
    kind: str = ""


class Alike:
    """Write charts that resemble each other once: the first of a kind whole, of each later one what is different."""

    def __init__(self, name: str) -> None:
        """Begin with nothing; `name` is unique on the page."""
        self._name = name
        self._first: dict[str, Spec] = {}

    def script(self, kind: str, spec: Spec) -> h.Element:
        """Return a chart as the page holds it."""
        name = f"{self._name}-{kind}"
        first = self._first.setdefault(kind, spec)
        if first is spec:
            return embedded(spec, id=name)
        return embedded({"like": name, "set": list(differences(first, spec))})


def _parts(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    """Tell whether a list is of parts, such as layers: rows of data are shorter written whole than place by place."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def differences(
    first: object, other: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[object, object]]:
    """Yield (path, value) of each place in which one plain value has to change to become the other."""
    if isinstance(first, Mapping) and isinstance(other, Mapping) and first.keys() <= other.keys():
        for key, value in other.items():
            if key in first:
                yield from differences(first[key], value, (*path, key))
            else:
                yield (*path, key), value
    elif _parts(first) and _parts(other) and len(first) == len(other):
        for at, (one, value) in enumerate(zip(first, other, strict=True)):
            yield from differences(one, value, (*path, at))
    elif first != other or type(first) is not type(other):
        yield path, other


def panel(
    values: Sequence[Mapping[str, object]],
    about: str,
    height: int = HEIGHT_PX,
    *,
    kind: str = "",
    **spec: object,
) -> Panel:
    """Return a panel over these values; `spec` has the marks, encodings or layers of Vega-Lite."""
    return Panel(
        {
            "description": about,
            "width": "container",
            "height": height,
            "data": {"values": list(values)},
            **spec,
        },
        about,
        kind,
    )


def shared(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[object]], words: Sequence[str] = ()
) -> h.Element:
    """Return data that several charts and tables of a page draw from, by `data=data_of(name)`; held once.

    Columns named in `words` hold few different values, each of which is written once. A chart finds a row's place,
    counted from 0, as `at`.
    """
    known: dict[str, list[object]] = {}
    coded = [list(row) for row in rows]
    for word in words:
        at = columns.index(word)
        known[word] = list(dict.fromkeys(row[at] for row in rows))
        places = {value: place for place, value in enumerate(known[word])}
        for row in coded:
            row[at] = places[row[at]]
    return embedded({"columns": list(columns), "words": known, "rows": coded}, id=name)


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
    alike: Alike | None = None,
) -> h.Element:
    """Return a figure of one or more panels side by side; `numbers` is its table, folded away.

    Panels have scales of their own. `wide` puts them below each other, `pairs` at most two beside each other. Panels
    of a `kind` are written as what is different from the first of it that `alike` has seen.
    """
    layout = {}
    if wide or len(panels) == 1:
        layout = {"style": "grid-template-columns: minmax(0, 1fr)"}
    elif pairs:
        layout = {"style": "grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr))"}
    return h.figure[
        h.figcaption[h.strong[safe(title, 300)], h.span[safe(about, 2000)]],
        h.div(".panels", layout)[
            [
                h.div(".panel", role="figure", aria_label=safe(one.about))[_script(one, alike)]
                for one in panels
            ]
        ],
        h.details[h.summary[numbers_title], numbers] if numbers is not None else None,
    ]


def _script(one: Panel, alike: Alike | None) -> h.Element:
    return embedded(one.spec) if alike is None or not one.kind else alike.script(one.kind, one.spec)


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
