"""A page is on disk whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from nameplate.pages.writing import write_page


def test_a_page_replaces_the_one_before(tmp_path: Path) -> None:
    """A second page stands in the first one's place, in UTF-8 whatever is in it, and nothing is left beside it."""
    path = tmp_path / "new" / "page.html"
    write_page(path, "one")
    write_page(path, "two \ud800")
    assert path.read_text() == "two ?"
    assert [each.name for each in path.parent.iterdir()] == ["page.html"]
