"""Named checks that a trial or a study is what it claims to be, from its evidence alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nameplate.verify.check import Report

__all__ = ["verify"]


def verify(path: Path) -> Report:
    """Verify a trial's or a study's directory; CallerError where it is neither."""
    # Whoever only names a check, or holds seals, does without all that rebuilds evidence.
    from nameplate.verify.directory import verify_directory

    return verify_directory(path)
