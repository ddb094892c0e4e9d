"""When each output event of a request came and what it held: the payload of `events.zst`.

Each frame holds entries `<IIB`: request index, number of events n, flags (bit 0: token counts follow); then n
int64 times (monotonic ns, little-endian) and, with bit 0, n int32 token counts as the server counted them.
Without counts, tokens are spread evenly over the events, and what is computed from them is *estimated*.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator

from msgspec import Struct

_ENTRY = struct.Struct("<IIB")


class Timeline(Struct, frozen=True):
    """Hold one request's output events: `times_ns` (int64) and `tokens` (int32, None where not counted)."""

    index: int
    times_ns: array[int]
    tokens: array[int] | None = None

    @classmethod
    def of(cls, index: int, times_ns: array[int], tokens: array[int]) -> Timeline:
        """Build from a tally's arrays, where -1 is an event without a count; counts must be whole to be kept."""
        # A count that no int32 holds was made up by the server.
        whole = -1 not in tokens and (not tokens or max(tokens) < 1 << 31)
        return cls(index, times_ns, array("i", tokens) if whole else None)


def _little(values: array[int]) -> array[int]:
    if sys.byteorder == "big":
        values = array(values.typecode, values)
        values.byteswap()
    return values


def pack(timeline: Timeline) -> bytes:
    """Encode one request's timeline."""
    counted = timeline.tokens is not None
    head = _ENTRY.pack(timeline.index, len(timeline.times_ns), 1 if counted else 0)
    body = _little(timeline.times_ns).tobytes()
    return head + body + (_little(timeline.tokens).tobytes() if timeline.tokens is not None else b"")


def unpack(frame: bytes) -> Iterator[Timeline]:
    """Yield the timelines of one decompressed frame; ValueError where it is cut."""
    at = 0
    while at < len(frame):
        if at + _ENTRY.size > len(frame):
            raise ValueError("a timeline's header is cut")
        index, count, flags = _ENTRY.unpack_from(frame, at)
        at += _ENTRY.size
        need = count * (12 if flags & 1 else 8)
        if at + need > len(frame):
            raise ValueError("a timeline is cut")
        times = array("q", frame[at : at + 8 * count])
        tokens = array("i", frame[at + 8 * count : at + need]) if flags & 1 else None
        at += need
        yield Timeline(index, _little(times), _little(tokens) if tokens is not None else None)
