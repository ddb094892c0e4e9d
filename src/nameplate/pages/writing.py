"""Putting a page on disk, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from nameplate.report.writing import write_whole


def write_page(path: Path, page: str) -> None:
    """Write a page in UTF-8, whatever stands in it; CallerError where that cannot be."""
    write_whole(path, page.encode("utf-8", "replace"))
