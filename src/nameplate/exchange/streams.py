"""Files as they lie on a disk, opened as UTF-8: gzip and zstd unpacked, UTF-16 and UTF-32 written anew, never whole.

Unpacked bytes are bounded by whoever reads: nothing here holds more than a block, but for UTF-16 and UTF-32, whose
files are read up to a limit of their own.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from nameplate.contract.errors import CallerError
from nameplate.zstd import ZstdDecompressor, ZstdError

# A text that is written anew is held in memory twice.
TEXT_LIMIT_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 16
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Longest first: the mark of UTF-16 is how that of UTF-32 begins.
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def open_plain(path: Path) -> IO[bytes]:
    """Open a file for reading its content; CallerError, in words, from here or from a later read."""
    try:
        stream = path.open("rb")
        head = stream.peek(4)[:4]
    except OSError as error:
        raise CallerError(f"{path} cannot be read: {error.strerror}.") from None
    if head.startswith(_GZIP):
        return _unpacked(stream, gzip.GzipFile(fileobj=stream).read1, path, "gzip")
    if head == _ZSTD:
        return _unpacked(stream, _zstd(stream), path, "zstd")
    for mark, name in _WIDE:
        if head.startswith(mark):
            with stream:
                return io.BytesIO(_narrow(stream, name, path))
    return stream


def _zstd(stream: IO[bytes]) -> Callable[[int], bytes]:
    """Return a read of the frames of a zstd file, one after another."""
    frame = ZstdDecompressor()
    kept = b""

    def read(size: int) -> bytes:
        nonlocal frame, kept
        while True:
            if frame.eof:
                kept, frame = frame.unused_data, ZstdDecompressor()
            data = kept or (stream.read(_BLOCK_BYTES) if frame.needs_input else b"")
            ended = frame.needs_input and not data
            kept = b""
            if ended:
                return b""
            if found := frame.decompress(data, max_length=size):
                return found

    return read


class _Unpacked(io.RawIOBase):
    """Read unpacked bytes; what cannot be unpacked is said in words."""

    def __init__(self, packed: IO[bytes], read: Callable[[int], bytes], path: Path, kind: str) -> None:
        self._packed = packed
        self._read = read
        self._said = f"{path} is a {kind} file that cannot be unpacked"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._read(len(buffer))
        except (OSError, EOFError, zlib.error, ZstdError) as error:
            raise CallerError(
                f"{self._said}: {error}.",
                hint="It is cut or damaged: copy it again, or give the unpacked file.",
            ) from None
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._packed.close()
        super().close()


def _unpacked(stream: IO[bytes], read: Callable[[int], bytes], path: Path, kind: str) -> IO[bytes]:
    return io.BufferedReader(_Unpacked(stream, read, path, kind), _BLOCK_BYTES)


def _narrow(stream: IO[bytes], name: str, path: Path) -> bytes:
    data = stream.read(TEXT_LIMIT_BYTES + 1)
    if len(data) > TEXT_LIMIT_BYTES:
        raise CallerError(
            f"{path} is {name.upper()} text of more than {TEXT_LIMIT_BYTES >> 20} MiB.",
            hint="Save it as UTF-8.",
        )
    try:
        return data.decode(name).encode()
    except UnicodeError as error:
        raise CallerError(
            f"{path} begins as {name.upper()} text and is none: {error}.",
            hint="Give the file as the tool wrote it.",
        ) from None
