"""A page is on disk whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.contract.errors import CallerError
from nameplate.pages.writing import write_page


def test_a_page_replaces_the_one_before(tmp_path: Path) -> None:
    """The folder is made, a second page stands in the first one's place, and nothing is left beside it."""
    path = tmp_path / "new" / "page.html"
    write_page(path, "one")
    write_page(path, "two \ud800")
    assert path.read_text() == "two ?"
    assert [each.name for each in path.parent.iterdir()] == ["page.html"]


def test_what_cannot_be_written_says_whose_fault_it_is(tmp_path: Path) -> None:
    """A place under a file, or that is a folder, is the caller's mistake, and leaves no half of a page."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for place in ("file/page.html", "folder"):
        with pytest.raises(CallerError, match="cannot be written"):
            write_page(tmp_path / place, "page")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]
