"""Fitting a text into its place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nameplate.ratingplate.face import BOLD, FOREIGN, face
from nameplate.ratingplate.fit import ELLIPSIS, fit

FACE = face(BOLD)


def test_short_text_is_left_alone() -> None:
    """What fits stands on one line at its full size."""
    fitted = fit("demo", FACE, 200, 20, 10, 3)
    assert (fitted.lines, fitted.size, fitted.whole) == (("demo",), 20, True)


def test_a_little_too_long_is_set_smaller() -> None:
    """Letters shrink a little before a second line is begun."""
    width = FACE.width("a rather long name", 18)
    fitted = fit("a rather long name", FACE, width, 20, 10, 3)
    assert len(fitted.lines) == 1
    assert fitted.size == 18


def test_lines_end_between_words() -> None:
    """A name of several words is broken between them, and a number keeps its digits and unit together."""
    fitted = fit("organisation/some-model-name at 250 ms and 1,048,576 tokens", FACE, 110, 20, 12, 6)
    assert fitted.whole
    assert (
        "".join(fitted.lines).replace(" ", "")
        == "organisation/some-model-nameat250\u00a0msand1,048,576\u00a0tokens"
    )
    assert any("250\u00a0ms" in line for line in fitted.lines)
    assert any("1,048,576\u00a0tokens" in line for line in fitted.lines)


def test_too_long_ends_in_an_ellipsis() -> None:
    """What has no place even at the least size is cut, visibly."""
    fitted = fit("x" * 300, FACE, 100, 20, 12, 2)
    assert len(fitted.lines) == 2
    assert fitted.lines[-1].endswith(ELLIPSIS)
    assert not fitted.whole


@given(st.text(max_size=200), st.floats(30, 600), st.integers(1, 4))
def test_nothing_overflows(text: str, width: float, lines: int) -> None:
    """No line is wider than its place, and there are no more lines than allowed."""
    fitted = fit(text, FACE, width, 24, 11, lines)
    assert 1 <= len(fitted.lines) <= lines
    assert 11 <= fitted.size <= 24
    for line in fitted.lines:
        known = FOREIGN if fitted.foreign else FACE
        assert known.width(line, fitted.size) <= width + 1e-6
