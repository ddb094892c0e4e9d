"""Putting a page on disk, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nameplate.contract.errors import CallerError


def write_page(path: Path, page: str) -> None:
    """Write a page beside its place and move it there; CallerError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(page.encode("utf-8", "replace"))
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CallerError(
            f"{path} cannot be written: {error.strerror or error}.",
            why="The evidence is untouched; only the page is missing.",
            hint="Choose another file with --out.",
        ) from None
