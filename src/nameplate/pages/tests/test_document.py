"""A page is one file that loads nothing and runs nothing but our own scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import htpy as h
from hypothesis import given
from hypothesis import strategies as st

from nameplate.pages.document import asset, document
from nameplate.pages.embedded import embedded
from nameplate.pages.values import value

HOSTILE = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u2028<!--'


def scripts(page: str) -> list[tuple[str, str]]:
    """Return the attributes and the text of every script element, as a browser finds its end."""
    return re.findall(r"<script([^>]*)>(.*?)</script", page, re.DOTALL)


def test_the_policy_names_exactly_our_scripts() -> None:
    """Each script without a type has a digest in the policy, and nothing else may run, load or connect."""
    page = document("t", h.p["body"])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    said = policy.group(1).replace("&#39;", "'")
    allowed = set(re.findall(r"'sha256-([^']+)'", said))
    run = {
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for attributes, text in scripts(page)
        if "type" not in attributes
    }
    assert run == allowed and len(run) == 2
    assert said.startswith("default-src 'none'") and "unsafe-eval" not in said
    assert "http" not in said


def test_a_page_without_charts_does_not_carry_the_library() -> None:
    """What draws charts is most of a page's weight."""
    assert len(document("t", h.p["x"], charts=False)) < 100_000 < len(document("t", h.p["x"]))


def test_our_scripts_cannot_end_early() -> None:
    """No asset holds what would end its element, and none refers to an address that would be loaded."""
    for name in ("charts.js", "page.js"):
        assert "</script" not in asset(name)
    assert "url(" not in asset("page.css") and "@import" not in asset("page.css")


def test_hostile_text_is_text() -> None:
    """A title, a body and a value that hold markup come out as words."""
    page = document(HOSTILE, h.div[h.p[HOSTILE], value(HOSTILE, HOSTILE)], made=HOSTILE, charts=False)
    assert "<script>window" not in page and "<img" not in page
    assert len([attributes for attributes, _ in scripts(page)]) == 1


@given(
    st.recursive(
        st.text() | st.none() | st.floats(allow_nan=False, allow_infinity=False), st.lists, max_leaves=8
    )
)
def test_embedded_json_is_the_value_and_cannot_leave_its_element(held: object) -> None:
    """Whatever the text is, the browser finds the end where it is, and reads the same value."""
    said = str(embedded(held))
    ((attributes, text),) = scripts(said)
    assert 'type="application/json"' in attributes
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text) == held
