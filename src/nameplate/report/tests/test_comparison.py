"""Comparisons as people read them: in a terminal, and as Markdown in which no name is markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import RenderableType

from nameplate.compare.comparing import Asked, Refused, compare_sides
from nameplate.compare.conditions import FailIf
from nameplate.compare.document import Comparison
from nameplate.compare.side import Observed
from nameplate.compare.tests.making import MS, cell, plain, side, source, trials
from nameplate.report.comparison import comparison_summary, differences_table
from nameplate.report.comparison_markdown import comparison_markdown, escaped
from nameplate.report.tests.rendering import text_of

LIKE, MORE = (100 * MS, 101 * MS, 99 * MS), (110 * MS, 111 * MS, 109 * MS)
HOSTILE = "<script>alert(1)</script> | @everyone `x` [a](http://evil) **b** \u202e www.evil.example #1"


def told(load: str = "C=8", path: str = "B", b: tuple[float | Observed, ...] = MORE) -> Comparison:
    condition = (FailIf.parse("ttft p95 +5%"),)
    other = side("B", source([cell(trials("b", b), load=load)], path=path))
    return compare_sides(plain("A", LIKE, load=load), other, Asked(conditions=condition))


def test_the_answer_comes_first() -> None:
    """The first line says what came out; condition, values, interval and verdict follow."""
    said = _render(comparison_summary(told()))
    assert said.startswith("B is worse than A: TTFT p95 +10.0%")
    for words in (
        "Fail if",
        "broken",
        "100.0 ms",
        "110.0 ms",
        "95% interval",
        "worse",
        "Welch",
        "Not paired",
    ):
        assert words in said


def test_never_is_said_and_not_a_number() -> None:
    """A percentile that no trial reaches is never; one that some do not reach says in how many."""
    never = Observed(None, 64, infinite=True)
    assert "never" in _render(comparison_summary(told(b=(never, never, never))))
    assert "never in 1" in _render(comparison_summary(told(b=(never, 1.0, 1.0))))


def test_many_loads_share_a_table() -> None:
    """More loads than a page holds are rows of one table; --all shows each whole."""
    sides = [
        side(name, source([cell(trials(name, LIKE), load=f"C={at}") for at in range(1, 9)], path=name))
        for name in "AB"
    ]
    comparison = compare_sides(sides[0], sides[1], Asked())
    brief, whole = (_render(comparison_summary(comparison, everything=every)) for every in (False, True))
    assert "3 and 3 trials" not in brief and whole.count("3 and 3 trials") == 8
    assert all(f"512/64, C={at}" in brief for at in range(1, 9))


def test_what_is_refused_is_a_table_with_the_options() -> None:
    """Each term that differs has both values and the option that allows it."""
    a = side("A", source([cell(trials("a", LIKE))], {"engine.version": "1"}, path="a"))
    b = side("B", source([cell(trials("b", LIKE))], {"engine.version": HOSTILE}, path="b"))
    with pytest.raises(Refused) as caught:
        compare_sides(a, b, Asked())
    table = differences_table(caught.value.differences)
    assert table is not None
    said = _render(table)
    assert "must be alike" in said and "--vary engine.version" in said and "\u202e" not in said


def test_markdown_is_a_sentence_and_a_table() -> None:
    """The comment begins with the answer; every row has as many cells as its heading."""
    text = comparison_markdown(told())
    assert text.startswith("**B is worse than A: TTFT p95 +10.0%")
    assert "| 🔴 broken |" in text and "🔴 worse" in text
    _check_tables(text)


def test_hostile_names_stay_text() -> None:
    """Names cannot end a cell, open a tag, link, call a person or begin emphasis."""
    text = comparison_markdown(told(load=HOSTILE, path=HOSTILE))
    _check_tables(text)
    for mark in ("<script", "@everyone", "`x`", "](", "://", "www.", "**b**", "\u202e", " #1"):
        assert mark not in text
    assert _render(comparison_summary(told(load=HOSTILE, path=HOSTILE)))


@given(st.text(max_size=200))
def test_escaped_text_has_no_markup(text: str) -> None:
    """Of any text no character is left that Markdown or HTML reads."""
    said = re.sub(r"&#\d+;", "", escaped(text))
    assert not re.search(r"[\\`*_\[\]<>#|~@&$\n\r]", said) and "://" not in said


def _check_tables(text: str) -> None:
    """Hold every line of a table to the number of cells of its heading."""
    width = 0
    for line in text.splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = line.count("|")
        width = width or cells
        assert cells == width, line


def _render(body: RenderableType) -> str:
    return text_of(body, 140)
