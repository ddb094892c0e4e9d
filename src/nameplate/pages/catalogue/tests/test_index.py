"""The index page: small, harmless, and readable without its scripts."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.pages.catalogue.entry import Catalogue, Unreadable
from nameplate.pages.catalogue.index import index_page
from nameplate.pages.catalogue.tests.many import ENTRY, catalogue_of
from nameplate.pages.tests.reading import Page

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "</noscript><script>alert(1)</script>",
    "<!--",
    "a\u2028b\u202ec\x00",
    "javascript:alert(1)",
    "'\"&amp;",
    "x" * 10**5,
)


def elements(page: str) -> list[tuple[str, dict[str, str]]]:
    """Return every element with its attributes, as a browser with scripts and one without would see it."""
    return [(one.tag, one.attributes) for one in Page(page).elements]


def data(page: str) -> Any:
    """Return what the page's script works on."""
    match = re.search(r'<script type="application/json" id="catalogue-data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    return msgspec.json.decode(match[1])


def test_a_thousand_runs_are_below_three_megabytes() -> None:
    """A third of them are whole matrices; all of them stand in the data and in the plain table."""
    page = index_page(catalogue_of(1000))
    assert len(page.encode()) < 3_000_000
    assert len(data(page)["runs"]) == 1000
    assert page.partition("<noscript>")[2].count(' scope="row"') == 1000


def test_the_same_catalogue_is_the_same_page() -> None:
    """Nothing of when or where it was made stands in it."""
    assert index_page(catalogue_of(7)) == index_page(catalogue_of(7))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    """Names, models, terms, numbers' words and paths make no element, and come out of the data as they went in."""
    calm = index_page(
        Catalogue(title="t", entries=(ENTRY,), unreadable=(Unreadable("p", "w"),), tool_version="")
    )
    entry = structs.replace(
        ENTRY,
        name=text,
        model=text,
        gpu=text,
        engine=text,
        quantisation=text,
        answer=text,
        terms=((text, text),),
        ratings=(structs.replace(ENTRY.ratings[0], of=text, promise=text, under=text, detail=text),),
        paths=(text,),
    )
    page = index_page(
        Catalogue(title=text, entries=(entry,), unreadable=(Unreadable(text, text),), tool_version="")
    )
    assert [tag for tag, _ in elements(page)] == [tag for tag, _ in elements(calm)]
    assert data(page)["runs"][0]["name"] == text
    assert not [name for _, attrs in elements(page) for name in attrs if name.startswith("on")]


def test_only_our_scripts_run_and_only_they_may_load() -> None:
    """The policy names each script of the page by its digest, allows no others, and nothing else is loaded."""
    page = index_page(catalogue_of(3))
    policy = next(
        str(attrs["content"])
        for tag, attrs in elements(page)
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    scripts = [attrs for tag, attrs in elements(page) if tag == "script" and attrs.get("type") is None]
    assert policy.count("'sha256-") == len(scripts) == 4
    assert "default-src 'none'" in policy and "'strict-dynamic'" in policy
    assert "unsafe" not in policy.partition("script-src")[2].partition(";")[0]
    assert not [attrs for _, attrs in elements(page) if "src" in attrs]


def test_absent_is_not_zero() -> None:
    """What is not known is left out of the data, and is a dash in the plain table."""
    bare = structs.replace(
        ENTRY, gpu=None, gpus=None, hardware=None, model=None, began=None, ratings=(), page=None, time=None
    )
    page = index_page(Catalogue(title="t", entries=(bare,), unreadable=(), tool_version=""))
    run = data(page)["runs"][0]
    assert not {"gpu", "gpus", "model", "began", "numbers", "page", "time"} & set(run)
    assert page.partition("<noscript>")[2].count("\u2014") >= 4
