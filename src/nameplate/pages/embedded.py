"""JSON inside a page: data for our scripts, which no text in it can leave."""

from __future__ import annotations

import htpy as h
import msgspec
from markupsafe import Markup

# A script element ends at `</`, whatever stands around it; comments and line separators have traps of their own.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def embedded(value: object, **attributes: str) -> h.Element:
    """Return a script element of type `application/json` with this value; its attributes may name it."""
    text = msgspec.json.encode(value).decode()
    for letter, escape in _ESCAPES.items():
        text = text.replace(letter, escape)
    return h.script(type="application/json", **attributes)[Markup(text)]
