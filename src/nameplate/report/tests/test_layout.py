"""Layout: columns give way before cells break, chains break between items, commands can be copied."""

from __future__ import annotations

import shlex

import pytest
from rich.text import Text

from nameplate.report.layout import Chain, Command, stacked
from nameplate.report.table import Column, FittingTable
from nameplate.report.tests.rendering import text_of


def test_columns_give_way_by_rank_and_are_named() -> None:
    """At a short width the columns of the highest rank go first, and the reader hears of it."""
    columns = [Column("a"), Column("middle", rank=1), Column("least", rank=2)]
    table = FittingTable(columns, [("1" * 10, "2" * 10, "3" * 10)])
    assert "3333333333" in text_of(table, 40)
    assert "least" not in text_of(table, 30).splitlines()[0]
    narrow = text_of(table, 20)
    assert "1111111111" in narrow and "2222222222" not in narrow
    assert "middle, least" in " ".join(narrow.split())


def test_cells_are_no_markup() -> None:
    """A cell that looks like markup is text, in heads too."""
    table = FittingTable([Column("[red]head")], [("[/nope] [bold]x",)])
    assert "[red]head" in text_of(table) and "[/nope] [bold]x" in text_of(table)


def test_a_page_has_no_blanks_at_line_ends() -> None:
    """What is copied from a page or kept in a log ends with its text."""
    page = stacked([Text("a   "), None, FittingTable([Column("x", side="left")], [("1",), ("22",)])])
    assert text_of(page) == "a\n\nx\n──\n1\n22\n"


def test_a_chain_breaks_between_items() -> None:
    """An item is never split over two lines."""
    items = [Text(f"C={level} 100 ms pass") for level in (2, 4, 8, 16)]
    lines = text_of(Chain(items), 40).splitlines()
    assert lines == ["C=2 100 ms pass > C=4 100 ms pass >", "C=8 100 ms pass > C=16 100 ms pass"]


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_a_command_means_the_same_at_every_width(width: int) -> None:
    """Long commands are continued with backslashes, so that a copied one runs."""
    words = [
        "nameplate",
        "capacity",
        "http://h:8000",
        "--shape",
        "8k/1k",
        "--slo",
        "ttft p95 < 10s",
        "--json",
    ]
    said = text_of(Command(words), width)
    assert shlex.split(said.replace("\\\n", "")) == words
    assert Command.of("it's 'unbalanced")._words


def test_words_of_a_command_cannot_control_the_terminal() -> None:
    """A word with an escape in it is spelled out."""
    assert "\x1b" not in text_of(Command(["nameplate", "\x1b[2J"]))
