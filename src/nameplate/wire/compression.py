"""Decode a compressed body that nobody asked for, with bounded memory and a bounded ratio."""

import zlib
from collections.abc import Iterator

from nameplate.wire.errors import WireError

# How much of the decoded body exists at once.
PIECE_BYTES = 64 * 1024
# DEFLATE reaches 1,032:1 on nothing but zeros; repetitive event streams stay below about 100:1.
RATIO_LIMIT = 300
# Below this much output the ratio is nobody's concern.
RATIO_FLOOR_BYTES = 4 * 1024 * 1024

GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS = 31
_ZLIB_BITS = 15
_RAW_BITS = -15


class Inflater:
    """Inflate a gzip, zlib or raw DEFLATE body, told apart by its first two bytes."""

    __slots__ = ("_bits", "_in_bytes", "_out_bytes", "_stream", "finished")

    def __init__(self, magic: bytes) -> None:
        if magic == GZIP_MAGIC:
            self._bits = _GZIP_BITS
        elif magic[0] & 0x0F == 8 and int.from_bytes(magic, "big") % 31 == 0:
            self._bits = _ZLIB_BITS
        else:
            self._bits = _RAW_BITS
        self._stream = zlib.decompressobj(self._bits)
        self._in_bytes = 0
        self._out_bytes = 0
        self.finished = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces; WireError for damaged data or a ratio above RATIO_LIMIT."""
        more = False
        while data or more:
            if self.finished:
                # Members may follow one another (RFC 1952 2.2); anything else after the end is padding.
                if self._bits != _GZIP_BITS or data[:1] != GZIP_MAGIC[:1]:
                    return
                self._stream = zlib.decompressobj(self._bits)
                self.finished = False
            before = self._stream.copy() if len(data) > 1 else None
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error as problem:
                if before is None:
                    raise WireError("bad_compression", f"the compressed body is damaged: {problem}") from None
                # zlib throws away what it decoded before the fault; byte by byte nothing is lost.
                self._stream = before
                for place in range(len(data)):
                    yield from self.feed(data[place : place + 1])
                return
            rest = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            self._in_bytes += len(data) - len(rest)
            self._out_bytes += len(piece)
            if self._out_bytes > max(RATIO_FLOOR_BYTES, RATIO_LIMIT * self._in_bytes):
                raise WireError("compression_bomb", f"the body inflates more than {RATIO_LIMIT} times")
            if piece:
                yield piece
            self.finished = self._stream.eof
            # A full piece can leave output inside the decoder although all input is taken.
            more = len(piece) == PIECE_BYTES and not self.finished
            data = rest
