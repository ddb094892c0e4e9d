"""A file of independent zstd frames, appended to and never changed; a torn tail is dropped, and said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from nameplate import zstd

# The writer closes a frame at 1 MiB of records; one record can add at most one read (256 KiB) or one event's
# timeline. A frame that decodes to more was not written by us.
FRAME_LIMIT_BYTES = 64 << 20
_CHUNK = 1 << 20

# Level 1: a stream's chunks compress 14:1 at it already, and the level above costs half as much time again.
# The checksum makes damage inside a frame visible.
_OPTIONS = {
    int(zstd.CompressionParameter.compression_level): 1,
    int(zstd.CompressionParameter.checksum_flag): 1,
}


class FrameFile:
    """Append frames to a file; a frame that could not be written whole is cut away again."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._fd).st_size

    def append(self, frame: bytes) -> int:
        """Compress and write one frame; return its compressed size. OSError leaves the file as it was."""
        packed = zstd.compress(frame, options=_OPTIONS)
        try:
            written = 0
            while written < len(packed):
                written += os.write(self._fd, packed[written:])
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(packed)
        return len(packed)

    @property
    def size(self) -> int:
        """Return the file's size in bytes."""
        return self._size

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Torn(Exception):  # noqa: N818 - says what a tail is, for a reader to note
    """Say that a file ends in a frame that does not decode; what came before it is whole."""


def read_frames(path: Path) -> Iterator[bytes]:
    """Yield each frame's content in bounded memory; raise Torn at a tail that does not decode."""
    with path.open("rb") as stream:
        at, rest = 0, b""
        while True:
            decoder = zstd.ZstdDecompressor()
            parts: list[bytes] = []
            size = 0
            fed = False
            while not decoder.eof:
                if not rest:
                    rest = stream.read(_CHUNK)
                    if not rest:
                        if not fed:
                            return
                        raise Torn(f"{path.name} ends inside the frame that begins at byte {at}")
                try:
                    part = decoder.decompress(rest, FRAME_LIMIT_BYTES - size + 1)
                except zstd.ZstdError as error:
                    raise Torn(
                        f"{path.name} is damaged in the frame that begins at byte {at}: {error}"
                    ) from None
                fed = True
                size += len(part)
                parts.append(part)
                rest = b""
                if size > FRAME_LIMIT_BYTES:
                    raise Torn(f"{path.name} has a frame above {FRAME_LIMIT_BYTES >> 20} MiB at byte {at}")
            rest = decoder.unused_data
            at = stream.tell() - len(rest)
            yield b"".join(parts)


def frames_of(path: Path, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Yield begin, end and compressed bytes of each whole frame from byte `start` on."""
    with path.open("rb") as stream:
        stream.seek(start)
        at, held, used = start, b"", 0
        while True:
            with memoryview(held) as view, view[used:] as rest:
                size = _frame_size(rest)
            if size:
                yield at, at + size, held[used : used + size]
                at, used = at + size, used + size
                continue
            more = stream.read(_CHUNK)
            if not more or len(held) - used > FRAME_LIMIT_BYTES:
                return
            held, used = held[used:] + more, 0


def _frame_size(rest: memoryview) -> int:
    """Return the size of the whole frame that bytes begin with; 0 where they hold none."""
    try:
        return zstd.get_frame_size(rest) if rest else 0
    except zstd.ZstdError:
        return 0
