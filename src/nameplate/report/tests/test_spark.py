"""The line of small bars, and the grid that no column of falls out of."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from nameplate.report.grid import Grid, GridCell
from nameplate.report.spark import Span, SparkLine, resampled
from nameplate.report.tests.rendering import text_of


def test_bars_rise_with_their_values() -> None:
    """Zero is blank, the largest is full, and a name stands where its span begins."""
    line = SparkLine([0.0, 1.0, 4.0, 8.0], [Span("a", 0.0, 0.5), Span("b", 0.5, 1.0)])
    assert text_of(line, 40).splitlines() == [" ▂▅█", "|a|b"]


def test_nothing_to_draw_is_no_fault() -> None:
    """No values, and values that are all zero, draw blanks."""
    assert text_of(SparkLine([]), 40).strip() == ""
    assert text_of(SparkLine([0.0, 0.0]), 40).strip() == ""


@given(st.lists(st.floats(0, 1e9), max_size=300), st.integers(1, 100))
def test_a_line_that_is_too_long_is_averaged(values: list[float], width: int) -> None:
    """Never more than the width, never outside the values, and all of them where they fit."""
    got = resampled(values, width)
    assert len(got) == min(len(values), width)
    if values:
        assert min(values) * (1 - 1e-9) <= min(got) and max(got) <= max(values) * (1 + 1e-9)


def grid(columns: int) -> Grid:
    cells = {
        (0, at): GridCell((Text("4,790"), ("36.9", "1.49 s")), (Text("4,790"), Text("36.9"), Text("1.49 s")))
        for at in range(columns)
    }
    return Grid("context", [Text("8K")], [str(2**at) for at in range(columns)], cells)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(20, 220))
def test_every_column_is_shown_at_every_width(columns: int, width: int) -> None:
    """Cells become narrow and columns go to further blocks; none is lost, and no line is too long."""
    text = text_of(grid(columns), width)
    assert max(map(len, text.splitlines())) <= width
    heads = [word for line in text.splitlines() if line.startswith("context") for word in line.split()[1:]]
    assert heads == [str(2**at) for at in range(columns)]
    assert text.count("4,790") == columns


def test_a_pair_that_was_not_planned_is_a_dash() -> None:
    """A hole in the matrix is visible and no number."""
    text = text_of(Grid("context", [Text("8K")], ["1"], {}), 40)
    assert text.splitlines()[-1].split() == ["8K", "-"]
