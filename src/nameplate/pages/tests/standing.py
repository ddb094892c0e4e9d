"""Reading a page back: every value that says where it stands, held against its document."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

import msgspec

_VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class _Reader(HTMLParser):
    """Collect (document, path, raw value), the JSON of all charts, and every text outside of scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.values: list[tuple[str, str, object]] = []
        self.charts: list[dict[str, object]] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self._documents: list[str] = [""]
        self._chart = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self._chart = tag == "script" and held.get("type") == "application/json"
        if tag not in _VOID:
            self._documents.append(held.get("data-document", self._documents[-1]))
        if "data-path" in held:
            document = held.get("data-document", self._documents[-1])
            self.values.append((document, held["data-path"], msgspec.json.decode(held["data-value"])))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self._documents.pop()
        self._chart = False

    def handle_data(self, data: str) -> None:
        if self._chart:
            self.charts.append(msgspec.json.decode(data))
        else:
            self.text.append(data)


class Read:
    """Hold a page that was read back."""

    def __init__(self, page: str) -> None:
        reader = _Reader()
        reader.feed(page.encode().decode())
        self.values, self.charts, self.tags = reader.values, reader.charts, reader.tags
        self.text = "".join(reader.text)

    def rows(self, about: str) -> list[dict[str, object]]:
        """Return the values of the one chart whose description contains these words."""
        (chart,) = [chart for chart in self.charts if about in str(chart["description"])]
        data = chart["data"]
        assert isinstance(data, dict)
        found: list[dict[str, object]] = data["values"]
        return found


def wrong(page: Read, documents: dict[str, bytes]) -> Iterator[tuple[str, object, object]]:
    """Yield every value whose path does not lead to it in its document: (path, shown, standing there)."""
    decoded = {name: msgspec.json.decode(data) for name, data in documents.items()}
    for name, path, shown in page.values:
        found = decoded[name]
        for step in path.split("."):
            found = found[int(step)] if isinstance(found, list) else found[step]
        if found != shown:
            yield path, shown, found
