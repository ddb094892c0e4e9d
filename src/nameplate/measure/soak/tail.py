"""Reading files that still grow: each reading takes up where the last one stopped, at a whole line or frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from nameplate import zstd
from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.frames import FRAME_LIMIT_BYTES, frames_of
from nameplate.evidence.reader import LINE_LIMIT_BYTES

T = TypeVar("T")


class Replaced(Exception):  # noqa: N818 - says what happened to a file, for a reader to begin anew
    """Say that a file that was read is gone or shorter: workers' files were joined, or a tail was cut away."""


class Lines(Generic[T]):
    """Read the JSON lines of a trial's file (and of its workers' files) as values of one type."""

    def __init__(self, directory: Path, name: str, kind: type[T]) -> None:
        self._directory, self._name = directory, name
        self._decoder = msgspec.json.Decoder(kind)
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[T]:
        """Yield what is there and was not read yet; a last line without its end waits for the next time."""
        for path in _parts(self._directory, self._name, self._read):
            at = self._read.setdefault(path, 0)
            with path.open("rb") as stream:
                stream.seek(at)
                while line := stream.readline(LINE_LIMIT_BYTES):
                    if not line.endswith(b"\n"):
                        if len(line) == LINE_LIMIT_BYTES:
                            raise EvidenceError(
                                f"{path} has a line longer than {LINE_LIMIT_BYTES >> 20} MiB."
                            )
                        break
                    try:
                        value = self._decoder.decode(line)
                    except (msgspec.MsgspecError, RecursionError) as error:
                        raise EvidenceError(f"{path}, the line at byte {at}: {error}.") from error
                    at += len(line)
                    self._read[path] = at
                    yield value

    def torn(self) -> list[str]:
        """Say which files end inside a line."""
        return [
            f"{path.name} ends inside the line at byte {at}"
            for path, at in self._read.items()
            if path.exists() and path.stat().st_size > at
        ]


class Frames:
    """Read the frames of a trial's file (and of its workers' files) as they were before compression."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[bytes]:
        """Yield the whole frames that are there and were not read yet."""
        for path in _parts(self._directory, self._name, self._read):
            at = self._read.setdefault(path, 0)
            for begin, end, frame in frames_of(path, at):
                self._read[path] = end
                yield decoded(frame, path, begin)

    def torn(self) -> list[str]:
        """Say which files end inside a frame."""
        return [
            f"{path.name} ends inside the frame at byte {at}"
            for path, at in self._read.items()
            if path.exists() and path.stat().st_size > at
        ]


def decoded(frame: bytes, path: Path, at: int) -> bytes:
    """Return a whole frame's content; EvidenceError where its checksum does not hold or it is not one of ours."""
    try:
        content = zstd.ZstdDecompressor().decompress(frame, FRAME_LIMIT_BYTES + 1)
    except zstd.ZstdError as error:
        raise EvidenceError(f"{path} is damaged in the frame that begins at byte {at}: {error}.") from error
    if len(content) > FRAME_LIMIT_BYTES:
        raise EvidenceError(f"{path} has a frame above {FRAME_LIMIT_BYTES >> 20} MiB at byte {at}.")
    return content


def _parts(directory: Path, name: str, known: dict[Path, int]) -> list[Path]:
    found = layout.parts(directory, name)
    for path, at in known.items():
        if path not in found or path.stat().st_size < at:
            raise Replaced(str(path))
    return found
