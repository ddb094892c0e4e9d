"""The file `prompts.zst`: the request bodies of a trial, exactly as sent.

The file is a plain Zstandard file: `zstd -dc prompts.zst` prints all bodies, one after another. It is a sequence
of frames, all numbers little-endian:

    file header   a skippable frame: magic 0x184D2A5B, content length 16
                  content: b"NPLPROMP", u16 version (1), 6 bytes of zero
    then for each body
    body header   a skippable frame: magic 0x184D2A5C, content length 28
                  content: u64 index, u32 phase, u32 compressed bytes, u32 raw bytes,
                  u32 bytes of the note's frame just before this header (0: there is none),
                  u32 CRC-32 of the 24 content bytes before it
    body          one independent zstd frame of `compressed bytes`, with zstd's own content checksum
    and before a body header, where the writer has something to say beside the body
    note          a skippable frame: magic 0x184D2A5D, whose content is the writer's own

Readers skip skippable frames with other magics of this family (0x184D2A50 to 0x184D2A5F), so a later version may
add some. Whatever is behind the last whole body is a torn tail: it is not read, and `torn` says where and why.
A store may be read while it is written: `refresh` takes what has become whole since.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import msgspec

from nameplate.contract.errors import EvidenceError
from nameplate.prompts.holes import punch
from nameplate.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError

VERSION: Final = 1
LEVEL: Final = 1
"""Higher levels make generated English hardly smaller (5%), and several times slower to write."""
MAXIMUM_BODY_BYTES: Final = 64 << 20
"""A body of a million tokens is about 6 MB; a length above this is damage, not a prompt."""

_FILE_MAGIC: Final = 0x184D2A5B
_BODY_MAGIC: Final = 0x184D2A5C
_NOTE_MAGIC: Final = 0x184D2A5D
_FILE_HEADER: Final = struct.Struct("<II8sH6x")
_BODY_HEADER: Final = struct.Struct("<IIQIIIII")
_FRAME_HEADER: Final = struct.Struct("<II")
_NAME: Final = b"NPLPROMP"


class StoredPrompt(msgspec.Struct, frozen=True):
    """Say what the store holds about one body, without the body; `note_bytes` is the size of its note's frame."""

    index: int
    phase: int
    offset: int
    compressed_bytes: int
    raw_bytes: int
    note_bytes: int = 0


class PromptWriter:
    """Append bodies to a new store. Use as a context manager; not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("xb")
        self._compressor = ZstdCompressor(
            options={CompressionParameter.compression_level: LEVEL, CompressionParameter.checksum_flag: 1}
        )
        self._file.write(_FILE_HEADER.pack(_FILE_MAGIC, _FILE_HEADER.size - 8, _NAME, VERSION))

    def append(self, index: int, body: bytes, phase: int = 0, note: bytes = b"") -> int:
        """Add one body, with a note of the writer's own; return how long the file is with it.

        `ValueError` if it is larger than a reader accepts.
        """
        if len(body) > MAXIMUM_BODY_BYTES:
            raise ValueError(
                f"a body of {len(body)} bytes is above the store's limit of {MAXIMUM_BODY_BYTES}"
            )
        frame = self._compressor.compress(body, ZstdCompressor.FLUSH_FRAME)
        length = _BODY_HEADER.size - 8
        noted = _FRAME_HEADER.pack(_NOTE_MAGIC, len(note)) + note if note else b""
        header = _BODY_HEADER.pack(_BODY_MAGIC, length, index, phase, len(frame), len(body), len(noted), 0)
        self._file.write(noted + header[:-4] + struct.pack("<I", zlib.crc32(header[8:-4])) + frame)
        return self._file.tell()

    def forget(self, end: int) -> bool:
        """Give the room of all bodies before byte `end` back to the disk; False where that cannot be done.

        A reader that has indexed the store goes on with what comes after; the file can no longer be opened anew.
        """
        return punch(self._file.fileno(), _FILE_HEADER.size, end)

    def flush(self, *, sync: bool = False) -> None:
        """Hand everything to the system; with `sync`, wait until it is on the disk."""
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if not self._file.closed:
            self.flush(sync=True)
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PromptStore:
    """Read bodies by index, in any order; only 20 bytes a body stay in memory.

    `torn` is None, or says what is wrong with the file's end. `repeated` counts bodies whose index was there
    before: the first one counts. Safe to use from several threads and after a fork.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self.torn: str | None = None
        self.repeated = 0
        self._indices = array("Q")
        self._offsets = array("Q")
        self._sizes = array("I")
        self._check_file_header(os.pread(descriptor, _FILE_HEADER.size, 0))
        self._end = _FILE_HEADER.size
        self.refresh()

    @classmethod
    def open(cls, path: Path) -> PromptStore:
        """Open a store and index it. Raises `EvidenceError` if the file is none, `OSError` if it cannot be read."""
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            return cls(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise

    def refresh(self, at_most: int | None = None) -> int:
        """Index what was written since the last look, in a file that grows; return how many bodies are new.

        Where the end is in the middle of being written, that is a torn tail until the next look.
        """
        size = os.fstat(self._descriptor).st_size
        known, offset = len(self._indices), self._end
        ordered = True
        self.torn = None
        while offset < size and (at_most is None or len(self._indices) - known < at_most):
            entry = self._header_at(offset)
            if isinstance(entry, str):
                self.torn = f"{size - offset} bytes from byte {offset} on: {entry}"
                break
            frame = _BODY_HEADER.size + entry.compressed_bytes if isinstance(entry, StoredPrompt) else entry
            end = offset + frame
            if end > size:
                self.torn = f"{size - offset} bytes from byte {offset} on: the last body is cut off"
                break
            if isinstance(entry, StoredPrompt):
                ordered = ordered and (not self._indices or entry.index > self._indices[-1])
                self._indices.append(entry.index)
                self._offsets.append(offset)
                self._sizes.append(entry.compressed_bytes)
            offset = self._end = end
        new = len(self._indices) - known
        if not ordered:
            self._sort()
        return new

    def _check_file_header(self, start: bytes) -> None:
        if len(start) < _FILE_HEADER.size:
            raise EvidenceError(
                f"{self._path} holds {len(start)} bytes: the header of a prompt store is incomplete.",
                why="No prompt was stored before the program ended, or the file is another one.",
            )
        magic, length, name, version = _FILE_HEADER.unpack(start)
        if magic != _FILE_MAGIC or length != _FILE_HEADER.size - 8 or name != _NAME:
            raise EvidenceError(
                f"{self._path} is not a prompt store.", why="It does not begin with its magic."
            )
        if version > VERSION:
            raise EvidenceError(
                f"{self._path} is a prompt store of version {version}; this program reads up to {VERSION}.",
                hint="Use a newer nameplate.",
            )

    def _sort(self) -> None:
        order = sorted(range(len(self._indices)), key=lambda at: (self._indices[at], at))
        indices, offsets, sizes = array("Q"), array("Q"), array("I")
        for at in order:
            if indices and indices[-1] == self._indices[at]:
                self.repeated += 1
                continue
            indices.append(self._indices[at])
            offsets.append(self._offsets[at])
            sizes.append(self._sizes[at])
        self._indices, self._offsets, self._sizes = indices, offsets, sizes

    def _header_at(self, offset: int) -> StoredPrompt | int | str:
        """Return the body header there, or the length of a frame to skip, or what is wrong."""
        head = os.pread(self._descriptor, _BODY_HEADER.size, offset)
        if len(head) < 8:
            return "a header is cut off"
        magic, length = _FRAME_HEADER.unpack_from(head)
        if magic & 0xFFFFFFF0 != 0x184D2A50:
            return "no header where one is due"
        if magic != _BODY_MAGIC:
            return int(length) + 8
        if len(head) < _BODY_HEADER.size:
            return "a header is cut off"
        _, _, index, phase, compressed, raw, note, check = _BODY_HEADER.unpack(head)
        if length != _BODY_HEADER.size - 8 or check != zlib.crc32(head[8:-4]):
            return "a header is damaged"
        return StoredPrompt(index, phase, offset, compressed, raw, note)

    def __len__(self) -> int:
        return len(self._indices)

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self._position(index) is not None

    def _position(self, index: int) -> int | None:
        if not 0 <= index < 1 << 64:
            return None
        at = bisect_left(self._indices, index)
        return at if at < len(self._indices) and self._indices[at] == index else None

    def indices(self) -> Iterator[int]:
        """Yield the stored indices in ascending order."""
        return iter(self._indices)

    def entry(self, index: int) -> StoredPrompt:
        """Return what is known about a body; `KeyError` if the store has none of that index."""
        at = self._position(index)
        if at is None:
            raise KeyError(index)
        entry = self._header_at(self._offsets[at])
        if not isinstance(entry, StoredPrompt):
            raise EvidenceError(f"{self._path} changed while it was read.")
        return entry

    def note(self, index: int) -> bytes:
        """Return what was noted of a body, empty if nothing. `KeyError` if there is no such body."""
        entry = self.entry(index)
        size = entry.note_bytes
        if not size:
            return b""
        frame = os.pread(self._descriptor, size, max(0, entry.offset - size))
        if len(frame) != size or frame[:8] != _FRAME_HEADER.pack(_NOTE_MAGIC, size - 8):
            raise EvidenceError(f"The note of prompt {index} in {self._path} is damaged.")
        return frame[8:]

    def body(self, index: int) -> bytes:
        """Return a body as it was sent. `KeyError` if there is none, `EvidenceError` if it is damaged."""
        at = self._position(index)
        if at is None:
            raise KeyError(index)
        size = _BODY_HEADER.size + self._sizes[at]
        data = os.pread(self._descriptor, size, self._offsets[at])
        if len(data) < size:
            raise EvidenceError(f"{self._path} became shorter while it was read.")
        raw_bytes = _BODY_HEADER.unpack_from(data)[5]
        try:
            decompressor = ZstdDecompressor()
            # The bound is what the header said: a damaged or crafted frame cannot ask for more memory.
            body = decompressor.decompress(data[_BODY_HEADER.size :], min(raw_bytes, MAXIMUM_BODY_BYTES) + 1)
        except ZstdError as error:
            raise EvidenceError(f"Prompt {index} in {self._path} is damaged: {error}.") from None
        if len(body) != raw_bytes or not decompressor.eof or decompressor.unused_data:
            raise EvidenceError(
                f"Prompt {index} in {self._path} is damaged: it is not as long as it should be."
            )
        return body

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
