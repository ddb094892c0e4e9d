"""Read a page as a browser would: elements with their attributes, scripts, and values with their paths."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from msgspec import Struct

from nameplate.measure.speed_result import SpeedResult
from nameplate.pages.report import report_page
from nameplate.pages.subject import SpeedSubject, TrialSubject


class Seen(Struct, frozen=True):
    """Hold an element: its tag, its attributes, and the document that its values stand in."""

    tag: str
    attributes: dict[str, str]
    document: str

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()


class Page(HTMLParser):
    """Hold the elements, the scripts of data, and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Seen] = []
        self.data: list[Any] = []
        self.text = ""
        self._open: list[tuple[str, str]] = []
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: said or "" for name, said in attrs}
        document = held.get("data-document", self._open[-1][1] if self._open else "")
        self.elements.append(Seen(tag, held, document))
        self._script = tag == "script" and held.get("type") == "application/json"
        if tag not in ("meta", "input", "br"):
            self._open.append((tag, document))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._script:
            self.data.append(json.loads(data))
            self._script = False
        elif not self._open or self._open[-1][0] not in ("script", "style"):
            self.text += data

    @property
    def values(self) -> list[tuple[str, str, Any]]:
        """Return the raw values that name a path: document, path, value."""
        return [
            (one.document, one.attributes["data-path"], json.loads(one.attributes["data-value"]))
            for one in self.elements
            if "data-path" in one.attributes
        ]

    def of_class(self, name: str) -> list[Seen]:
        return [one for one in self.elements if name in one.classes]


def at_path(document: Any, path: str) -> Any:
    """Return what stands at a path such as `rows.3.values.tokens_per_s`."""
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def subject(result: SpeedResult, *trials: TrialSubject, name: str = "run") -> SpeedSubject:
    """Return a subject of this result."""
    return SpeedSubject(directory=Path("runs") / name, trials=trials, manifest_sha256=None, result=result)


def page_of(result: SpeedResult, *trials: TrialSubject) -> Page:
    """Return the page of a result, read."""
    return Page(report_page([subject(result, *trials)]))
