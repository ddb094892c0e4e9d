"""The plate as text and as Markdown: golden, within its columns, and deaf to what names would do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from nameplate.ratingplate.markdown import as_markdown, escape
from nameplate.ratingplate.tests.plates import DIGEST, HOSTILE, LONG_NAME, filled, not_rated, plate, rated
from nameplate.ratingplate.text import COLUMNS, as_text

GOLDEN = Path(__file__).parent / "golden"


def hold_golden(name: str, text: str) -> None:
    """Compare with the golden file; UPDATE_GOLDEN=1 writes it, for a person to read the difference."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_golden() -> None:
    """A confirmed plate, and one of several shapes with every kind of standing, read as they always did."""
    several = plate(
        rated(),
        not_rated("NOISY"),
        not_rated("OPEN ABOVE", ""),
        model=LONG_NAME,
        stamps=("SIMULATED",),
        date=None,
    )
    hold_golden("plate.txt", as_text(plate()))
    hold_golden("plate.md", as_markdown(plate(), image="plate.svg"))
    hold_golden("several.txt", as_text(several))
    hold_golden("several.md", as_markdown(several))


def test_digest_is_whole() -> None:
    """Text and Markdown carry the whole digest on one line, so that it can be copied."""
    assert f"sha256:{DIGEST}" in as_text(plate())
    assert f"| Evidence | sha256:{DIGEST} |" in as_markdown(plate())


def hold_frame(text: str) -> None:
    lines = text.split("\n")
    assert lines.pop() == ""
    assert {cell_len(line) for line in lines} == {COLUMNS}
    assert all(line[0] in "╔╠╟║╚" and line[-1] in "╗╣╢║╝" for line in lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_keeps_its_frame(text: str) -> None:
    """Whatever a name holds, each line is as wide as the others and ends in the frame."""
    hold_frame(as_text(filled(text)))


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_is_only_tables(text: str) -> None:
    """Whatever a name holds, it makes no rows, columns, headings, links, images, mentions or HTML."""
    written = as_markdown(filled(text))
    assert len(written) < 100_000
    for line in written.splitlines():
        assert line == "" or line.startswith(("| ", "|--", "**Rated capacity**"))
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) in (3, 4)
        assert "<" not in line
        assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`]", line)
        assert "@" not in line
        assert "://" not in line
        assert "www." not in line


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_keeps_its_form(text: str) -> None:
    """No characters break the frame of the text or a line of the Markdown."""
    hold_frame(as_text(plate(model=text, promise=text)))
    said = escape(text)
    assert said.splitlines() in ([], [said])
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", said)


def test_image_address_is_an_address() -> None:
    """A file's name cannot end the link that shows it."""
    written = as_markdown(plate(), image="a b>)<script>.svg")
    assert written.startswith(
        "![Rated capacity of Qwen/Qwen3-32B: 512 tokens in, 64 out: 9 concurrent requests]("
    )
    assert "(<a%20b%3E)%3Cscript%3E.svg>)" in written.splitlines()[0]
