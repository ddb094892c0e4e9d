"""The numbers of a page against the documents that they are from, and tables in the order of their numbers."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from nameplate.report.safe import safe

_MARKED = """() => [...document.querySelectorAll("[data-path]")].map((element) => ({
  path: element.dataset.path, held: element.dataset.value, said: element.textContent.trim(),
  document: element.closest("[data-document]")?.dataset.document ?? null,
  run: element.closest("[data-run]")?.dataset.run ?? null,
}))"""

# A cell of numbers that reads as one and carries none: what is sorted and copied would be its words.
_UNMARKED = """() => [...document.querySelectorAll("td.num")]
  .filter((cell) => /\\d/.test(cell.textContent) && cell.dataset.value === undefined && !cell.querySelector("[data-value]"))
  .map((cell) => `${cell.closest("table").caption.textContent.slice(0, 40)}: ${cell.textContent.trim().slice(0, 40)}`)"""

# Each sortable column, up and down: what does not stand in order afterwards.
_WRONG = """() => {
  const wrong = [];
  const absent = (value) => value === null || value === "" || value === "\\u2014" || value === "-";
  for (const header of document.querySelectorAll("th[aria-sort]")) {
    const table = header.closest("table"), at = [...header.parentNode.children].indexOf(header);
    const before = table.tBodies[0].rows.length;
    for (const wanted of ["ascending", "descending"]) {
      header.querySelector("button").click();
      const held = [...table.tBodies[0].rows].map((row) => {
        const cell = row.cells[at], text = cell.dataset.value ?? cell.querySelector("[data-value]")?.dataset.value;
        return text === undefined ? cell.textContent.trim() : JSON.parse(text);
      });
      const name = `${table.caption?.textContent.slice(0, 40)} / ${header.textContent}`;
      if (header.getAttribute("aria-sort") !== wanted) wrong.push(`${name}: not marked as ${wanted}`);
      if (held.length !== before) wrong.push(`${name}: rows were lost`);
      const first = held.findIndex(absent);
      const there = first < 0 ? held : held.slice(0, first);
      if (first >= 0 && !held.slice(first).every(absent)) wrong.push(`${name}: absent values are not last`);
      const sign = wanted === "ascending" ? 1 : -1;
      for (let row = 1; row < there.length; row += 1) {
        const [a, b] = [there[row - 1], there[row]];
        if (typeof a === "number" && typeof b === "number" && sign * (b - a) < 0) wrong.push(`${name}: ${a} before ${b}`);
      }
    }
  }
  return wrong;
}"""


def disagreements(page: Page, runs: tuple[Path, ...]) -> list[str]:
    """Return each value that is not what its document holds at its path."""
    found = []
    for mark in page.evaluate(_MARKED):
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
    return next((run for run in runs if run.name == name), runs[0])


@cache
def _document(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _same_words(said: str, held: object) -> bool:
    """Say whether what is written can be this value: a whole number is written whole, and what is absent is not one."""
    if held is None:
        return not any(letter.isdigit() for letter in said)
    plain = said.replace(",", "")
    if isinstance(held, int) and not isinstance(held, bool) and plain.isdigit():
        return int(plain) == held
    return bool(said)


def unmarked_numbers(page: Page) -> list[str]:
    """Return cells of number columns that carry no raw value."""
    return list(page.evaluate(_UNMARKED))


def wrongly_sorted(page: Page) -> list[str]:
    """Sort every table by every column, up and down, and return what is out of order."""
    return list(page.evaluate(_WRONG))


def copied(page: Page, button: int) -> list[dict[str, str]]:
    """Press one of the page's buttons that copy a table, and return the rows that the clipboard has then."""
    page.locator("button.copy").nth(button).click()
    page.wait_for_function(
        "(at) => document.querySelectorAll('button.copy')[at].nextElementSibling.textContent.startsWith('Copied')",
        arg=button,
    )
    text = page.evaluate("navigator.clipboard.readText()")
    return list(csv.DictReader(io.StringIO(text), strict=True))
