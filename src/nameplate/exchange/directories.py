"""What imports leave behind: a new directory, and the original under a harmless name."""

from __future__ import annotations

import re
from pathlib import Path

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def kept_name(path: Path) -> str:
    """Return the name under which the original is kept: harmless, and not that of our own result."""
    name = _NAME.sub("-", path.name).strip("-.")[-80:] or "original.json"
    return f"original-{name}" if name in (layout.RESULT, layout.MANIFEST) else name


def make_directory(directory: Path) -> None:
    """Make a directory for an import; CallerError where it cannot be used, or is not empty."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        empty = not any(directory.iterdir())
    except OSError as error:
        raise CallerError(
            f"{directory} cannot be used: {error.strerror}.", hint="Choose another --out."
        ) from None
    if not empty:
        raise CallerError(
            f"{directory} is not empty.", why="An import overwrites nothing.", hint="Choose another --out."
        )
