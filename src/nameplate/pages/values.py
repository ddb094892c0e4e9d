"""Values as a page shows them: written for people, with the raw value of the document beside it.

`data-value` holds the raw value as JSON, `data-path` where it stands (`shapes.0.rated`) in the document that the
nearest ancestor's `data-document` names. Sorting, copies as CSV and the tests of the pages use these, not the words.
"""

from __future__ import annotations

import htpy as h
import msgspec

from nameplate.report import numbers
from nameplate.report.safe import safe

ABSENT = "—"
Raw = float | int | str | bool | None

# An attribute holds a value whole, but not a hostile one of a megabyte.
_TEXT_LIMIT = 2000


def attributes(raw: Raw, path: str | None = None) -> dict[str, str]:
    """Return the attributes that carry a raw value; a path says where in its document it stands."""
    held = safe(raw, _TEXT_LIMIT) if isinstance(raw, str) else raw
    found = {"data-value": msgspec.json.encode(held).decode()}
    return found if path is None else {**found, "data-path": path}


def value(said: h.Node, raw: Raw, path: str | None = None) -> h.Element:
    """Return a value in a line of text."""
    return h.span(".value", attributes(raw, path))[shown(said)]


def shown(said: h.Node) -> h.Node:
    """Return written words with the page's sign for what is absent."""
    return ABSENT if said is None or said == numbers.ABSENT or said == "" else said


def document(name: str, run: str = "") -> dict[str, str]:
    """Return the attributes of an element whose values stand in this document of this run's directory."""
    return {"data-document": safe(name, _TEXT_LIMIT), **({"data-run": safe(run, _TEXT_LIMIT)} if run else {})}
