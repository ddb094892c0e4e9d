"""The catalogue in a browser: search, filters, order, selection and comparison over a thousand runs, from a file."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from playwright.sync_api import Browser, Page, expect

from integration.browser.looks import faint_text, sticking_out, structure
from nameplate.pages.catalogue.data import choice_of, data_of
from nameplate.pages.catalogue.entry import Catalogue, Entry, encode_catalogue
from nameplate.pages.catalogue.index import CHARTS, index_page
from nameplate.pages.catalogue.tests.many import ENTRY, catalogue_of
from nameplate.pages.document import asset

pytestmark = pytest.mark.browser

COUNT = 1000
HOSTILE = "<img src=x onerror=window.pwned=1></script><script>window.pwned=2</script>"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """Return a thousand runs; the last one is hostile in every word."""
    many = catalogue_of(COUNT - 1)
    hostile = structs.replace(
        ENTRY, slug="hostile-000000000000", name=HOSTILE, gpu=HOSTILE, model=HOSTILE, engine=HOSTILE, answer=HOSTILE,
        quantisation=HOSTILE, terms=((HOSTILE, HOSTILE),), paths=(HOSTILE,), page="javascript:window.pwned=3",
        ratings=(structs.replace(ENTRY.ratings[0], of=HOSTILE, detail=HOSTILE),),
    )  # fmt: skip
    return structs.replace(many, entries=(*many.entries, hostile))


@pytest.fixture(scope="module")
def site(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the site of a thousand runs, without their pages."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "assets").mkdir()
    (folder / "assets" / CHARTS).write_text(asset(CHARTS))
    (folder / "index.html").write_text(index_page(catalogue))
    (folder / "catalogue.json").write_bytes(encode_catalogue(catalogue))
    return folder


class Seen:
    """A page, with everything that went wrong or was loaded in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.loaded: list[str] = []
        page.on(
            "console", lambda one: self.wrong.append(one.text) if one.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda one: self.wrong.append(one.message))
        page.on("request", lambda one: self.loaded.append(one.url.rpartition("/")[2].partition("#")[0]))

    def rows(self) -> list[str]:
        """Return the slugs of the rows on the page, in order."""
        found: list[str] = self.page.eval_on_selector_all(
            "#runs tbody tr", "rows => rows.map((row) => row.dataset.slug)"
        )
        return found

    def values(self, label: str) -> list[Any]:
        """Return the raw values of a column, in order."""
        found = self.page.eval_on_selector_all(
            f"#runs td[data-label='{label}']", "cells => cells.map((cell) => cell.dataset.value)"
        )
        return [json.loads(value) for value in found]

    def count(self, words: str) -> None:
        """Wait until the live region says so."""
        expect(self.page.locator("#count")).to_have_text(words)


@pytest.fixture
def seen(browser: Browser, site: Path) -> Iterator[Seen]:
    """Open the site from its file; whatever a test does, nothing goes wrong and nothing hostile runs."""
    yield from _open(browser, (site / "index.html").as_uri())


def _open(browser: Browser, address: str, width: int = 1300, scheme: str = "light") -> Iterator[Seen]:
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    found = Seen(context.new_page())
    found.page.goto(address)
    found.page.wait_for_selector("html[data-catalogue]")
    yield found
    assert found.wrong == []
    assert found.page.evaluate("window.pwned") is None
    context.close()


def says(entry: Entry, *words: str) -> bool:
    """Tell whether all words stand in what a run says of its machine."""
    text = " ".join(filter(None, (entry.gpu, entry.model, entry.engine, entry.quantisation))).lower()
    return all(word in text for word in words)


def natural(text: str) -> list[tuple[bool, int, str]]:
    """Return what sorts words as people do: 8B before 27B."""
    parts = re.split(r"(\d+)", text.casefold())
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts if part]


def test_a_thousand_runs_are_there_and_nothing_is_loaded(seen: Seen, catalogue: Catalogue) -> None:
    """The first rows stand at once, in the catalogue's order; the others follow when one scrolls."""
    seen.count("1,000 runs")
    first = seen.rows()
    assert 0 < len(first) < COUNT
    assert first == [entry.slug for entry in catalogue.entries[: len(first)]]
    seen.page.locator("#more").scroll_into_view_if_needed()
    expect(seen.page.locator(f"#runs tr[data-slug='{catalogue.entries[len(first)].slug}']")).to_be_attached()
    assert seen.loaded == ["index.html"]


def test_a_search_finds_what_says_all_words_and_the_address_keeps_it(
    seen: Seen, catalogue: Catalogue
) -> None:
    """Every keystroke narrows; Escape clears; a reload shows the same."""
    expected = sum(says(entry, "sglang", "h200") for entry in catalogue.entries)
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("sglang H200")
    seen.count(f"{expected} of 1,000 runs")
    expect(seen.page).to_have_url(re.compile(r"q=sglang\+H200"))
    seen.page.reload()
    seen.count(f"{expected} of 1,000 runs")
    seen.page.locator("#search").press("Escape")
    seen.count("1,000 runs")


def test_facets_narrow_and_count_under_each_other(seen: Seen, catalogue: Catalogue) -> None:
    """A value's count is what choosing it would show, under all other facets."""
    page = seen.page
    page.get_by_label("NVIDIA B200").check()
    b200 = [entry for entry in catalogue.entries if entry.gpu == "NVIDIA B200"]
    seen.count(f"{len(b200)} of 1,000 runs")
    vllm = [entry for entry in b200 if entry.engine == "vllm"]
    line = page.locator("#facets label", has=page.locator("input[data-facet=engine][value=vllm]"))
    expect(line.locator(".count")).to_have_text(str(len(vllm)))
    others = sum(entry.gpu == "NVIDIA H200" for entry in catalogue.entries)
    line_of_other = page.locator(
        "#facets label", has=page.locator("input[data-facet=gpu][value='NVIDIA H200']")
    )
    expect(line_of_other.locator(".count")).to_have_text(str(others))
    line.locator("input").check()
    seen.count(f"{len(vllm)} of 1,000 runs")
    expect(page).to_have_url(re.compile(r"gpu=NVIDIA\+B200&engine=vllm"))
    page.locator("#clear").click()
    seen.count("1,000 runs")


def test_only_like_numbers_are_ranked_and_they_are_those_of_the_document(
    seen: Seen, catalogue: Catalogue
) -> None:
    """A measure, then a choice: live numbers in order, then those without; a second click turns the order round."""
    page = seen.page
    page.locator("#measure").select_option("capacity")
    page.locator("#choice").select_option(choice_of(ENTRY.ratings[0], "live").id)
    page.locator("#finder .copy").click()
    live = [
        rating.value
        for entry in catalogue.entries
        for rating in entry.ratings
        if choice_of(rating, entry.time) == choice_of(ENTRY.ratings[0], "live") and rating.value is not None
    ]
    expected = sorted(live, reverse=True)
    assert seen.values("Rated")[: len(live)] == expected
    assert set(seen.values("Rated")[len(live) :]) == {None}
    assert page.locator("#runs th[data-name=rated]").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Rated").click()
    page.locator("#finder .copy").click()
    assert seen.values("Rated")[: len(live)] == sorted(live)
    expect(page.locator("#choice-note")).to_contain_text("the others stand last")


def test_columns_sort_by_their_words(seen: Seen) -> None:
    """Words as people order them; what is not stated stands last, whichever way."""
    for _ in range(2):
        seen.page.get_by_role("button", name="Model", exact=True).click()
        seen.page.locator("#finder .copy").click()
        models = [value for value in seen.values("Model") if value is not None]
        order = seen.page.locator("#runs th[data-name=model]").get_attribute("aria-sort")
        assert models == sorted(models, key=natural, reverse=order == "descending")


def test_chosen_runs_stand_side_by_side_with_bars(seen: Seen, catalogue: Catalogue) -> None:
    """Differences are marked, like numbers share a row, bars are drawn on demand by the file beside the page."""
    page = seen.page
    chosen = [entry for entry in catalogue.entries if entry.kind == "capacity" and entry.time == "live"][:3]
    page.goto(page.url.partition("#")[0] + "#kind=capacity&time=live")
    for entry in chosen[:2]:
        page.get_by_label(f"Select {entry.name}", exact=True).check()
    page.get_by_label(f"Select {chosen[2].name}", exact=True).press("Space")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#comparison-title")).to_be_focused()
    body = page.locator("#comparison-body")
    expect(body).to_contain_text("agree in every term")
    shown = [
        json.loads(str(cell.get_attribute("data-value"))) for cell in body.locator("td[data-value]").all()
    ]
    assert shown == [entry.ratings[0].value for entry in chosen]
    differing = {row.split(" ")[0] for row in body.locator("tr.differs th").all_inner_texts()}
    assert ("model" in differing) is (len({entry.model for entry in chosen}) > 1)
    expect(body.locator("pre")).to_contain_text(
        f"nameplate compare {chosen[0].paths[0]} {chosen[1].paths[0]}"
    )
    page.get_by_role("button", name="Draw these numbers").click()
    expect(body.locator(".panel svg")).to_have_count(1)
    assert seen.loaded[-1] == CHARTS and len(set(seen.loaded)) == 2
    page.reload()
    expect(page.locator("#comparison-title")).to_have_text("3 runs side by side")
    page.keyboard.press("Escape")
    expect(page.locator("#finder")).to_be_visible()


def test_six_at_most_and_contracts_that_differ_are_said(seen: Seen, catalogue: Catalogue) -> None:
    """A seventh choice is not taken; numbers of differing contracts do not share a row."""
    page = seen.page
    first = page.locator("#runs input[data-pick]")
    for place in range(6):
        first.nth(place).check()
    first.nth(6).click()
    expect(first.nth(6)).not_to_be_checked()
    expect(page.locator("#picked-note")).to_have_text("Six at most.")
    hostile = catalogue.entries[-1].slug
    page.goto(page.url.partition("#")[0] + f"#pick={catalogue.entries[1].slug}&pick={hostile}&view=compare")
    expect(page.locator("#comparison-body")).to_contain_text(
        "numbers under differing contracts are not comparable"
    )
    expect(page.locator("#comparison-body")).to_contain_text("no number of the same shape")


def test_the_keyboard_goes_from_row_to_row(seen: Seen) -> None:
    """Arrow keys stay in their column; every control can be reached and is named."""
    page = seen.page
    page.locator("#runs a").nth(0).focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 2
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter((one) => one.offsetParent && "
        "!(one.textContent.trim() || one.ariaLabel || one.closest('label')?.textContent.trim())).length"
    )
    assert nameless == 0


@pytest.mark.parametrize("view", ["", "#q=b200&kind=speed", "#compare"])
@pytest.mark.parametrize(
    ("width", "scheme"), [(375, "light"), (375, "dark"), (1300, "light"), (1300, "dark")]
)
def test_it_can_be_read_on_any_screen(
    browser: Browser, site: Path, catalogue: Catalogue, width: int, scheme: str, view: str
) -> None:
    """Text has contrast, nothing is wider than the screen, cards carry their labels, the structure is sound."""
    if view == "#compare":
        view = "#" + "&".join(f"pick={entry.slug}" for entry in catalogue.entries[:3]) + "&view=compare"
    for seen in _open(browser, f"{(site / 'index.html').as_uri()}{view}", width, scheme):
        assert not faint_text(seen.page)
        assert not sticking_out(seen.page)
        found = structure(seen.page)
        assert found["landmarks"] == ["header", "main", "footer"] and found["h1"] == ["Machines"]
        assert not found["ids"] and not found["unnamed"]
        label = seen.page.evaluate("getComputedStyle(document.querySelector('#runs td'), '::before').content")
        assert ("GPU" in label) is (width == 375)


def test_paper_has_every_row(seen: Seen) -> None:
    """Printing shows all that was found, not only what was scrolled to."""
    seen.page.locator("#search").fill("b200")
    seen.page.emulate_media(media="print")
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    found = int(seen.page.locator("#count").inner_text().partition(" ")[0])
    assert len(seen.rows()) == found > 25
    assert not seen.page.locator("#filters").is_visible()
    assert len(seen.page.pdf()) > 10_000


def test_without_scripts_there_is_a_plain_table_of_all(browser: Browser, site: Path) -> None:
    """Every run is there with its number, and nothing that needs a script."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    expect(page.locator("noscript tbody tr")).to_have_count(COUNT)
    expect(page.locator("#finder")).to_be_hidden()
    context.close()


def test_from_a_file_server_it_is_the_same(browser: Browser, site: Path) -> None:
    """Any server of files will do; the library for charts comes from it, too."""
    handler = partial(_Silent, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_address[1]}/index.html"
        for seen in _open(browser, f"{address}#kind=capacity&time=live"):
            for place in range(2):
                seen.page.locator("#runs input[data-pick]").nth(place).check()
            seen.page.get_by_role("button", name="Compare").click()
            seen.page.get_by_role("button", name="Draw these numbers").click()
            expect(seen.page.locator("#comparison-body .panel svg")).to_have_count(1)
    finally:
        server.shutdown()
        server.server_close()


def test_values_on_the_page_are_those_of_the_document(seen: Seen, catalogue: Catalogue, site: Path) -> None:
    """Each row's raw values are the entry's own."""
    seen.page.locator("#finder .copy").click()
    entries = {
        entry["slug"]: entry for entry in json.loads((site / "catalogue.json").read_bytes())["entries"]
    }
    headline = {run.slug: next((one.value for one in run.numbers), None) for run in data_of(catalogue).runs}
    assert len(seen.rows()) == COUNT
    for slug, model, status, began, rated in zip(
        seen.rows(),
        seen.values("Model"),
        seen.values("Status"),
        seen.values("Date"),
        seen.values("Rated"),
        strict=True,
    ):
        entry = entries[slug]
        assert (model, status, began) == (entry["model"], entry["status"], entry["began"])
        assert rated == headline[slug]


class _Silent(SimpleHTTPRequestHandler):
    """Serve files without a word."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        del format, args
