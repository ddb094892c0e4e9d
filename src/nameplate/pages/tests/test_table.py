"""Tables hold raw values beside words, and say what is absent."""

from __future__ import annotations

import json
import re

from nameplate.pages.table import Cell, Column, Row, table

COLUMNS = (Column("name", kind="text"), Column("TTFT\np95", "ttft p95, ns"))


def test_a_cell_has_its_raw_value_and_its_path() -> None:
    """What sorts, copies and is tested is the document's value, not the words."""
    said = str(table(COLUMNS, [("a", Cell("8.709 s", 8_709_000_000, "shapes.0.ttft"))], "Trials"))
    cell = re.search(r'<td data-value="([^"]+)" data-path="([^"]+)" class="num">([^<]+)<', said)
    assert cell is not None
    assert json.loads(cell.group(1)) == 8_709_000_000
    assert cell.groups()[1:] == ("shapes.0.ttft", "8.709 s")


def test_absent_is_a_sign_and_null() -> None:
    """A value that is not known is neither empty nor zero."""
    said = str(table(COLUMNS, [("a", Cell(None)), ("b", Cell("-", None))], "Trials"))
    assert said.count('data-value="null"') == 2
    assert said.count(">—<") == 2


def test_headers_sort_by_a_button_and_name_their_column() -> None:
    """Sorting is a control that a keyboard reaches; a single row has nothing to sort."""
    many = str(table(COLUMNS, [("a", Cell("1", 1)), ("b", Cell("2", 2))], "Trials"))
    assert many.count('aria-sort="none"') == 2 and 'data-name="ttft p95, ns"' in many
    assert "aria-sort" not in str(table(COLUMNS, [("a", Cell("1", 1))], "Trials"))


def test_text_of_elsewhere_is_escaped() -> None:
    """A name that is markup stays a name, and cannot turn the direction of what follows."""
    said = str(table(COLUMNS, [Row(("<b>x</b>\u202e", Cell("1", 1)), begins=True)], "<i>"))
    assert "<b>" not in said and "<i>" not in said and "\\u202e" in said
