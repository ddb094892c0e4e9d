"""The page of a comparison: its numbers are those of its document, and names from elsewhere are words."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from nameplate.compare.comparing import Asked, compare_sides
from nameplate.compare.conditions import FailIf
from nameplate.compare.document import Comparison
from nameplate.compare.reading import read_side
from nameplate.compare.side import Observed
from nameplate.compare.tests.making import MS, cell, member, rated_one, side, source
from nameplate.exchange.peers.tests.making import HERE, SUMMARY, VLLM
from nameplate.pages.compare.page import DOCUMENT, comparison_page

HOSTILE = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u2028<!-- \u202e'
NEVER = Observed(None, 64, infinite=True)
_VALUE = re.compile(r'data-value="([^"]*)" data-path="([^"]*)"')


def told(name: str = "512/64", **asked: Any) -> Comparison:
    """Compare two sides of two loads and a baseline; at the higher one B never gets to its p95."""
    sides = []
    for which, level in (("A", 100.0), ("B", 106.0)):
        low = [
            member(
                f"{name}{at}",
                {"ttft p95": (level + at) * MS, "output_rate": level, "error_rate": 0.0},
                f"{which}{at}",
            )
            for at in range(3)
        ]
        high = [member(f"h{at}", {"ttft p95": NEVER if which == "B" else level * MS}) for at in range(3)]
        cells = [
            cell(low, "C=4", name),
            cell(high, "C=8", name),
            cell(low[:1], "C=1", name, group="baseline"),
        ]
        held = source(cells, {"engine.version": which}, path=f"{name} {which}", rated=(rated_one(7, 8),))
        sides.append(side(which, held))
    conditions = (FailIf.parse("ttft p95 +50%"),)
    return compare_sides(sides[0], sides[1], Asked(vary=("engine.*",), conditions=conditions, **asked))


def embedded(page: str) -> Any:
    """Return the document that the page carries, as a browser reads it."""
    found = re.search(rf'<script[^>]*id="{DOCUMENT}"[^>]*>(.*?)</script', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document[int(part)] if part.isdecimal() else document[part]
    return document


def test_every_number_is_that_of_the_document() -> None:
    """Each value on the page that names its place is the value that stands there; the document is the comparison."""
    comparison = told()
    page = comparison_page(comparison)
    document = embedded(page)
    assert (
        document["schema"] == comparison.schema and document["answer"]["verdict"] == comparison.answer.verdict
    )
    values = _VALUE.findall(page)
    assert len(values) > 40
    for raw, path in values:
        assert json.loads(html.unescape(raw)) == at(document, html.unescape(path)), path


def test_a_page_answers_first_and_shows_everything() -> None:
    """The answer is the heading; conditions, intervals, trials, rated numbers, terms and notes follow."""
    page = comparison_page(told())
    assert (
        page.index("<h1>") < page.index("What changed, and how certain that is") < page.index("Every measure")
    )
    for words in (
        "Conditions of the build",
        "Every trial",
        "Rated numbers",
        "is the point",
        "How this was judged",
        "never",
    ):
        assert words in page


def test_hostile_names_are_words() -> None:
    """What a path, a load or a version is called cannot become markup, and reverses no text."""
    page = comparison_page(told(HOSTILE))
    words = re.sub(r"<script.*?</script", "", page, flags=re.DOTALL)
    assert "<script>window" not in page and "<img" not in words and "\u202e" not in words
    assert embedded(page)["cells"]


@pytest.mark.parametrize(("name", "words"), [(VLLM, "a verdict needs 3"), (SUMMARY, "first chunk")])
def test_results_of_other_tools_have_a_page(name: str, words: str) -> None:
    """One run a side is shown without interval and verdict; what means something else says so."""
    sides = read_side("A", (HERE / VLLM,)), read_side("B", (HERE / name,))
    page = comparison_page(compare_sides(sides[0], sides[1], Asked()))
    assert words in page and "Measures that may not be compared" in page
