"""Every page: it opens, complains of nothing, loads nothing, draws all its charts, and says what it is."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from integration.browser.cases import CASES
from integration.browser.looks import charts, structure
from integration.browser.making import Report
from integration.browser.opening import open_page, unfold
from integration.browser.staged import HOSTILE, SCRIPT
from integration.browser.values import disagreements, unmarked_numbers, wrongly_sorted

pytestmark = pytest.mark.browser

LIMIT_BYTES = 3_000_000
PATHS = [case.path for case in CASES]
SEVERAL = "capacity/confirmed+speed/quick+soak/outage+trial/closed+import/vllm"


@pytest.mark.parametrize("path", [*PATHS, SEVERAL])
def test_every_page_is_whole(browser: Browser, report: Callable[[str], Report], path: str) -> None:
    """No complaint, no request, every chart drawn, a sound structure; its values are those of the documents, its tables
    sort by value; and the file is small."""
    made = report(path)
    assert made.path.stat().st_size < LIMIT_BYTES
    with open_page(browser, made.path) as page:
        _hold_structure(page)
        unfold(page)
        _hold_charts(page)
        assert not disagreements(page, made.runs)
        assert not unmarked_numbers(page)
        assert not wrongly_sorted(page)


def _hold_structure(page: Page) -> None:
    found = structure(page)
    assert found["title"].strip() and found["lang"] == "en"
    assert found["h1"] and all(found["h1"]), "the answer is a heading"
    assert found["landmarks"] == ["header", "main", "footer"]
    jumps = [(above, below) for above, below in pairwise(found["levels"]) if below > above + 1]
    assert found["levels"][0] == 1 and not jumps
    assert not found["ids"], "identifiers that stand twice"
    assert not found["dead"], "links to nothing"
    assert not found["outside"], "addresses outside the page"
    assert not found["unnamed"], "tables, figures or charts without words"


def _hold_charts(page: Page) -> None:
    for chart in [chart for chart in charts(page) if chart["shown"]]:
        assert not chart["failed"], chart
        assert chart["about"] and chart["width"] > 100 and chart["height"] > 40, chart
        assert chart["marks"] and not chart["broken"], chart


@pytest.mark.parametrize("path", [path for path in PATHS if path.startswith("hostile/")])
def test_what_a_server_or_a_user_says_is_only_text(
    browser: Browser, report: Callable[[str], Report], path: str
) -> None:
    """Nothing that was said runs, becomes an element or turns the direction of reading; it is there to read."""
    with open_page(browser, report(path).path) as page:
        unfold(page)
        page.wait_for_timeout(200)  # an image that cannot be loaded says so a moment later
        assert page.evaluate("typeof window.pwned") == "undefined"
        assert page.locator("iframe, object, embed, [onerror], [onload]").count() == 0
        for picture in page.locator("img").all():
            _hold_picture(picture.get_attribute("src") or "")
        allowed = page.evaluate(
            "document.querySelector('meta[http-equiv]').content.match(/script-src ([^;]*)/)[1].split(' ').length"
        )
        assert page.locator("script:not([type='application/json'])").count() == allowed
        text = page.locator("body").inner_text()
        assert SCRIPT in text
        assert not set("\u202e\u2028\u2029") & set(page.locator("body").text_content() or "")
        assert not [
            said for said in HOSTILE if "window.pwned" in said and said in page.title() and "<" not in said
        ]


def _hold_picture(source: str) -> None:
    """Hold that a picture is one of our drawings, within the page, and has nothing in it that could run or load."""
    kind, _, held = source.partition(",")
    assert kind == "data:image/svg+xml;base64"
    for element in ElementTree.fromstring(base64.b64decode(held)).iter():
        assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "image", "a", "use")
        assert not [name for name in element.attrib if name.lower().startswith("on") or name.endswith("href")]


def test_how_long_a_page_takes(report: Callable[[str], Report]) -> None:
    """The page of a study of 50 trials and 5,000 requests: its size and time are told, not judged here."""
    made = report("huge/capacity")
    trials = len(list((made.run / "trials").iterdir()))
    size = made.path.stat().st_size / 1e6
    warnings.warn(f"huge/capacity: {trials} trials, {made.took_s:.1f} s, {size:.1f} MB", stacklevel=1)
    assert trials >= 50
