"""The files of several workers become one: frames and lines stand for themselves, so they are joined as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

from nameplate.evidence import layout


def merge_workers(directory: Path, workers: int) -> None:
    """Append each worker's files to the trial's own and remove them; nothing to do for a single worker."""
    if workers == 1:
        return
    for name in (layout.READS, layout.REQUESTS, layout.EVENTS, layout.CLIENT):
        # Of a soak, the parent's own file comes after the workers'.
        parts = [part for k in range(workers + 1) if (part := directory / f"{name}.{k}").exists()]
        if not parts:
            continue
        partial = directory / f"{name}.partial"
        with partial.open("wb") as whole:
            for part in parts:
                with part.open("rb") as stream:
                    shutil.copyfileobj(stream, whole, 1 << 20)
        partial.replace(directory / name)
        for part in parts:
            part.unlink()
