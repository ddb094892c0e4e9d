"""Text from elsewhere: it moves nothing, hides nothing and is bounded."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from nameplate.report.safe import safe, safe_text
from nameplate.report.tests.rendering import text_of

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\b\x9b31m\u202etxt\u2066\u200b\U000e0041[bold red]x[/]\x00"


def test_escapes_are_spelled_out() -> None:
    """Terminal escapes, carriage returns, direction marks and invisible characters can be read and do nothing."""
    said = safe(HOSTILE)
    assert said.isprintable()
    assert said.startswith("\\x1b[2J\\x1b]0;owned\\x07\\r\\x08\\x9b31m\\u202etxt")
    assert "\\U000e0041" in said


def test_markup_is_text() -> None:
    """Square brackets of a server are shown as they are."""
    assert text_of(safe_text("[bold red]x[/] [/nope]")) == "[bold red]x[/] [/nope]\n"


def test_long_text_is_counted() -> None:
    """Beyond the limit the rest is counted and not shown."""
    assert safe("x" * 1_000_000, 10) == "xxxxxxxxxx... (999,990 more characters)"


def test_line_feeds_stay_only_where_lines_are_wanted() -> None:
    """In one line a line feed is spelled out; in text it stays, and a tab is blanks."""
    assert safe("a\nb\tc") == "a\\nb\\tc"
    assert safe("a\r\nb\tc", lines=True) == "a\nb   c"


def test_languages_are_left_alone() -> None:
    """Letters, marks and emoji of the world are no harm."""
    for text in ("naïve café", "日本語", "हिन्दी", "می\u200cخواهم", "👩\u200d👩", "e\u0301"):
        assert safe(text) == text


def test_stacked_marks_are_cut() -> None:
    """A letter with hundreds of marks does not climb over the lines around it."""
    assert sum(unicodedata.category(c) == "Mn" for c in safe("a" + "\u0301" * 300, None)) == 4


@given(st.text(max_size=300))
def test_no_text_controls_a_terminal(text: str) -> None:
    """Whatever a server sends, no control character comes out."""
    for said in (safe(text), safe(text, lines=True).replace("\n", "")):
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in said)
        assert "\u202e" not in said


def test_anything_can_be_said() -> None:
    """Values that are no text are written as Python writes them."""
    assert safe(None) == "None"
    assert safe("\ud800") == "\\ud800"
