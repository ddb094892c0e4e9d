"""One page of each kind, as different people read it: with the keyboard, in the dark, on a phone, on paper, by ear."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from integration.browser.evidence import CACHE
from integration.browser.looks import charts, faint_text, sticking_out, tab_through
from integration.browser.making import Report
from integration.browser.opening import PHONE_PX, Theme, open_page, table_values, unfold
from integration.browser.values import copied

pytestmark = pytest.mark.browser

# One of each kind, and the odd ones: many statuses, hostile names, nothing to show.
KINDS = (
    "capacity/open-above", "capacity/mixed", "rate/confirmed", "curve/concurrency", "speed/phases",
    "speed/over-capacity", "soak/outage", "trial/failing", "import/vllm", "import/inference-bench", "hostile/speed",
    "hostile/capacity", "empty/capacity", "empty/trial",
)  # fmt: skip
# Paper shows every trial of a study, with all its charts: one study is enough.
PRINTED = tuple(path for path in KINDS if path != "capacity/mixed")
Make = Callable[[str], Report]


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core, fetched once through npm."""
    place = CACHE / "axe-core"
    source = place / "package" / "axe.min.js"
    if not source.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is missing: axe-core, which audits accessibility, comes through it")
        place.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "pack", "axe-core@4", "--silent"], cwd=place, capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"npm could not fetch axe-core: {done.stderr.strip()[-200:]}")
        with tarfile.open(place / done.stdout.split()[-1]) as packed:
            packed.extractall(place, filter="data")
    return source.read_text()


@pytest.mark.parametrize("path", KINDS)
def test_the_keyboard_reaches_everything(browser: Browser, report: Make, path: str) -> None:
    """Tab stops at every control in the order of the page, visibly; the first leads past the head of the page."""
    with open_page(browser, report(path).path, still=True) as page:
        count, stops = tab_through(page)
        assert [stop["control"] for stop in stops] == list(range(count))
        assert not [stop["name"] for stop in stops if not (stop["outlined"] and stop["inside"])]


@pytest.mark.parametrize("path", ["capacity/confirmed", "speed/phases"])
def test_a_table_sorts_by_keyboard(browser: Browser, report: Make, path: str) -> None:
    """Enter sorts by a column and says so, Space sorts the other way; another column takes the mark over."""
    with open_page(browser, report(path).path) as page:
        unfold(page)
        header = page.locator("th.num[aria-sort]").last
        button = header.locator("button")
        button.focus()
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == "ascending"
        page.keyboard.press("Space")
        assert header.get_attribute("aria-sort") == "descending"
        other = header.locator("xpath=preceding-sibling::th[@aria-sort]").last
        other.locator("button").focus()
        page.keyboard.press("Enter")
        assert (header.get_attribute("aria-sort"), other.get_attribute("aria-sort")) == ("none", "ascending")


def test_a_copy_holds_the_raw_values(browser: Browser, report: Make) -> None:
    """Copy as CSV puts every cell's raw value under its column's name; a name with commas and quotes comes whole."""
    for path in ("capacity/open-above", "hostile/speed", "trial/failing"):
        with open_page(browser, report(path).path) as page:
            unfold(page)
            for button in page.locator("button.copy:visible").all():
                table = button.locator("xpath=ancestor::div[@class='table']//table")
                heads, *rows = copied(page, button)
                assert len(heads) == len(set(heads)) and all(heads), "each column has a name of its own"
                assert rows == [[_said(value) for value in row] for row in table_values(table)]


def _said(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        # What a spreadsheet would take for a formula is quoted.
        return ("'" if re.match(r"[=+\-@\t\r]", value) else "") + value
    # As JavaScript writes numbers.
    return re.sub(r"\.0$", "", repr(value)) if abs(float(str(value))) < 1e16 else repr(value)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", KINDS)
def test_everybody_can_read_it(browser: Browser, report: Make, axe: str, path: str, theme: Theme) -> None:
    """Every text has a contrast of 4.5:1, large ones 3:1, as the system's theme is and after the button's change; and
    an audit by axe-core finds nothing serious or critical."""
    with open_page(browser, report(path).path, theme=theme) as page:
        unfold(page)
        before = _ground(page)
        assert (max(before) < 80) == (theme == "dark")
        assert not faint_text(page)
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert not [
            f"{one['impact']} {one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        page.locator("button.theme").click()
        assert (max(_ground(page)) < 80) == (theme == "light")
        assert not faint_text(page)


def _ground(page: Page) -> list[int]:
    said = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return [int(part) for part in re.findall(r"\d+", said)[:3]]


@pytest.mark.parametrize("path", KINDS)
def test_a_phone_shows_all_of_it(browser: Browser, report: Make, path: str) -> None:
    """At 375 px the page does not scroll sideways: wide tables scroll within their box, charts fit theirs."""
    with open_page(browser, report(path).path, width=PHONE_PX) as page:
        assert not sticking_out(page)
        unfold(page)
        assert not sticking_out(page)
        assert not [chart for chart in charts(page) if chart["width"] > chart["box"] + 1]


@pytest.mark.parametrize("path", PRINTED)
def test_paper_shows_all_of_it(browser: Browser, report: Make, path: str, tmp_path: Path) -> None:
    """Printed from a dark screen the page is light, all that is folded away is there, and each chart is drawn."""
    with open_page(browser, report(path).path, theme="dark") as page:
        drawn = tmp_path / "page.pdf"
        page.pdf(path=drawn, format="A4", print_background=True)
        pages = len(re.findall(rb"/Type\s*/Page\b", drawn.read_bytes()))
        assert pages >= 1
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert not [chart for chart in charts(page) if not chart["marks"] or chart["width"] < 100]
        assert min(_ground(page)) > 240
        assert not faint_text(page)
        assert page.locator("button.theme").is_hidden() and page.locator("main").is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")


@pytest.mark.parametrize("path", KINDS)
def test_without_scripts_the_page_can_be_read(browser: Browser, report: Make, path: str) -> None:
    """The answer, the tables and their words are there; the page says what needs JavaScript; nothing sticks out."""
    with open_page(browser, report(path).path, javascript=False) as page:
        assert page.locator("h1").first.is_visible() and page.locator("h1").first.inner_text().strip()
        assert "need JavaScript" in page.locator("body").inner_text()
        for table in page.locator("main table").all()[:20]:
            assert table.text_content()
        summaries = page.locator("main details > summary")
        if summaries.count():
            summaries.first.click()
            assert summaries.first.locator("xpath=..").get_attribute("open") is not None


@pytest.mark.parametrize("path", ["capacity/confirmed", "soak/outage"])
def test_nothing_moves_where_motion_is_unwelcome(browser: Browser, report: Make, path: str) -> None:
    """With reduced motion no animation runs, nothing fades, and jumps are jumps."""
    with open_page(browser, report(path).path, still=True) as page:
        unfold(page)
        assert page.evaluate("document.getAnimations().length") == 0
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        moving = page.evaluate(
            "[...document.querySelectorAll('body *')].filter((element) =>"
            " parseFloat(getComputedStyle(element).transitionDuration) > 0).length"
        )
        assert moving == 0
