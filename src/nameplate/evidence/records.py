"""The wire's history as packed records: what `reads.zst` holds inside its frames.

A record is a little-endian header `<BIqqqI`, then `size` bytes of payload:

=============  ======  ==================================================================================
kind           u8      see `Kind`
request        u32     the request's index
t_ns           i64     when the client noticed, monotonic
delay_ns       i64     reads: t_ns - arrival by the kernel's stamp; -1 where there was no stamp (`user`)
since_empty    i64     reads: t_ns - the last moment this socket was known to be empty; the first byte
                       came between that moment and the arrival. Other kinds: 0
size           u32     payload bytes; for BARE the number of bytes that were read and not kept
=============  ======  ==================================================================================

SCHEDULED, SENT and BODY_SENT have no payload; DEADLINE names the deadline, CONNECT_FAILED, RESET and EOF hold what was
said of them. BROKEN notes that we closed, because what came can no longer become an answer, and why.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

HEADER = struct.Struct("<BIqqqI")
USER_STAMPED = -1


class Kind(IntEnum):
    """Name what a record notes."""

    SCHEDULED = 1
    SENT = 2
    BODY_SENT = 3
    READ = 4
    EOF = 5
    RESET = 6
    DEADLINE = 7
    CANCEL = 8
    BARE = 9
    CONNECT_FAILED = 10
    BROKEN = 11


LAST_KIND = int(max(Kind))


class Record(NamedTuple):
    """Hold one record; `size` differs from `len(payload)` only for BARE, whose bytes were not kept."""

    kind: int
    request: int
    t_ns: int
    delay_ns: int
    since_empty_ns: int
    size: int
    payload: bytes

    @property
    def arrival_ns(self) -> int:
        """Return when the newest byte of a read reached this machine, as well as it is known."""
        return self.t_ns - self.delay_ns if self.delay_ns > 0 else self.t_ns


def unpack(frame: bytes) -> Iterator[Record]:
    """Yield the records of one decompressed frame; ValueError where it is cut or an unknown kind appears."""
    at, end, size_of_header = 0, len(frame), HEADER.size
    unpack_from = HEADER.unpack_from
    while at < end:
        if at + size_of_header > end:
            raise ValueError("a record's header is cut")
        kind, request, t_ns, delay_ns, since_empty_ns, size = unpack_from(frame, at)
        at += size_of_header
        if kind == Kind.BARE:
            yield Record(kind, request, t_ns, delay_ns, since_empty_ns, size, b"")
            continue
        if not 1 <= kind <= LAST_KIND:
            raise ValueError(f"unknown record kind {kind}")
        if at + size > end:
            raise ValueError("a record's payload is cut")
        yield Record(kind, request, t_ns, delay_ns, since_empty_ns, size, frame[at : at + size])
        at += size
