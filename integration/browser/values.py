"""The numbers of a page against the documents that they are from, and tables in the order of their numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from integration.browser.opening import ask
from nameplate.report.safe import safe


def disagreements(page: Page, runs: tuple[Path, ...]) -> list[str]:
    """Return each value that is not what its document holds at its path."""
    found = []
    for mark in page.evaluate(ask("marked")):
        where = f"{mark['run']} {mark['document']} {mark['path']}"
        if not mark["document"]:
            continue  # a study that has not ended has no document of its answers yet
        held = json.loads(mark["held"])
        try:
            wanted = _at(_document(_run(runs, mark["run"]) / mark["document"]), mark["path"])
        except (LookupError, OSError, ValueError) as error:
            found.append(f"{where}: {type(error).__name__} {error}")
            continue
        if held != (safe(wanted, 2000) if isinstance(wanted, str) else wanted):
            found.append(f"{where}: {held!r} on the page, {wanted!r} in the document")
        elif not _same_words(mark["said"], held):
            found.append(f"{where}: reads {mark['said']!r} and is {held!r}")
    return found


def _run(runs: tuple[Path, ...], name: str | None) -> Path:
    # A trial that was run alone is found in the directory that --out named.
    places = [place for run in runs for place in (run, run / "trials" / str(name)) if place.is_dir()]
    return next((place for place in places if place.name == name), runs[0])


@cache
def _document(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _same_words(said: str, held: object) -> bool:
    """Say whether what is written can be this value: a whole number is written whole, what is absent as no number."""
    if held is None:
        return re.fullmatch(r"[-+~]?[\d.,]+\*?( \S+)?", said) is None
    plain = said.replace(",", "")
    if isinstance(held, int) and not isinstance(held, bool) and plain.isdigit():
        return int(plain) == held
    return bool(said)


def unmarked_numbers(page: Page) -> list[str]:
    """Return cells of number columns that carry no raw value."""
    return list(page.evaluate(ask("unmarked")))


def wrongly_sorted(page: Page) -> list[str]:
    """Sort every table by every column, up and down, and return what is out of order."""
    return list(page.evaluate(ask("sorting")))


def copied(page: Page, button: Locator) -> list[list[str]]:
    """Press a button that copies its table, and return the rows that the clipboard has then, heads first."""
    button.click()
    said = button.locator("xpath=following-sibling::*[@role='status']")
    deadline = time.monotonic() + 10.0
    while said.inner_text() != "Copied.":
        assert time.monotonic() < deadline, said.inner_text()
    text = page.evaluate("navigator.clipboard.readText()")
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))
