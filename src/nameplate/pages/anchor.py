"""Where a part of a study stands on a page: two studies of one page may have trials or cells of one name."""

from __future__ import annotations

import zlib
from pathlib import Path

from nameplate.report.safe import safe


def anchor(study: Path, kind: str, name: object) -> str:
    """Return the identifier of a part (`trial`, `cell`) of this study's directory."""
    return f"{kind}-{zlib.crc32(str(study).encode('utf-8', 'replace')):08x}-{safe(name, 200)}"


def trial_anchor(study: Path, key: str) -> str:
    """Return the identifier of a trial of this study's directory."""
    return anchor(study, "trial", key)
