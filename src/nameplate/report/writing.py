"""Putting a file that somebody asked for on disk, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nameplate.contract.errors import CallerError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there, with its folders; CallerError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            # A device or a pipe is written to: a file in its place would take it away from everybody.
            path.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> CallerError:
    """Word an output file that cannot be written: whoever named it can name another."""
    return CallerError(
        f"{path} cannot be written: {error.strerror or error}.",
        why="The evidence is untouched; only this file is missing.",
        hint="Name another place for it.",
    )
