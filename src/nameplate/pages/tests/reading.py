"""Read a page as a browser would: elements, texts, charts, and values held against the documents they stand in."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import msgspec
from msgspec import Struct

_VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class Seen(Struct, frozen=True):
    """Hold an element: its tag and its attributes."""

    tag: str
    attributes: dict[str, str]

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


class Page(HTMLParser):
    """Hold a page's elements, the JSON of its charts, its text outside of scripts and styles, and its raw values.

    A value is (document, path, raw value), wherever one names its path.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Seen] = []
        self.charts: list[dict[str, Any]] = []
        self.values: list[tuple[str, str, Any]] = []
        self.text = ""
        self._open: list[tuple[str, str]] = []
        self._chart = False
        self.feed(page.encode().decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: said or "" for name, said in attrs}
        document = held.get("data-document", self._open[-1][1] if self._open else "")
        self.elements.append(Seen(tag, held))
        if "data-path" in held:
            self.values.append((document, held["data-path"], msgspec.json.decode(held["data-value"])))
        self._chart = tag == "script" and held.get("type") == "application/json"
        if tag not in _VOID:
            self._open.append((tag, document))

    def handle_endtag(self, tag: str) -> None:
        while tag not in _VOID and self._open and self._open.pop()[0] != tag:
            pass
        self._chart = False

    def handle_data(self, data: str) -> None:
        if self._chart:
            self.charts.append(msgspec.json.decode(data))
        elif not self._open or self._open[-1][0] not in ("script", "style"):
            self.text += data

    @property
    def tags(self) -> list[str]:
        return [one.tag for one in self.elements]

    def of_class(self, name: str) -> list[Seen]:
        return [one for one in self.elements if name in one.classes]

    def rows(self, about: str) -> list[dict[str, Any]]:
        """Return the values of the one chart whose description contains these words."""
        (chart,) = [chart for chart in self.charts if about in str(chart["description"])]
        found: list[dict[str, Any]] = chart["data"]["values"]
        return found


def at_path(document: Any, path: str) -> Any:
    """Return what stands at a path such as `rows.3.values.tokens_per_s`."""
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def wrong(page: Page, documents: dict[str, bytes]) -> Iterator[tuple[str, object, object]]:
    """Yield every value whose path does not lead to it in its document: (path, shown, standing there)."""
    decoded = {name: msgspec.json.decode(data) for name, data in documents.items()}
    for name, path, shown in page.values:
        found = at_path(decoded[name], path)
        if found != shown:
            yield path, shown, found
