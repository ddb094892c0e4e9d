"""The files of several workers become one: frames and lines stand for themselves, so they are joined as they are.

A file of a process that was killed may end inside a frame or a line. Joined as it is, that tail would spoil what comes
after it, so what every reader would drop is dropped here.
"""

from __future__ import annotations

from pathlib import Path

from nameplate.evidence import layout
from nameplate.evidence.frames import frames_of

_CHUNK = 1 << 20


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
                left = _whole_frames(part) if name in (layout.READS, layout.EVENTS) else _whole_lines(part)
                with part.open("rb") as stream:
                    while left and (data := stream.read(min(left, _CHUNK))):
                        whole.write(data)
                        left -= len(data)
        partial.replace(directory / name)
        for part in parts:
            part.unlink()


def _whole_frames(path: Path) -> int:
    """Return how many bytes of a file are whole frames."""
    return max((end for _, end, _ in frames_of(path)), default=0)


def _whole_lines(path: Path) -> int:
    """Return how many bytes of a file are whole lines."""
    end = path.stat().st_size
    with path.open("rb") as stream:
        while end:
            begin = max(0, end - _CHUNK)
            stream.seek(begin)
            at = stream.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
    return 0
