"""The recorder: packs what the loop notices into blocks for the writer; nothing here waits."""

from __future__ import annotations

from collections.abc import Callable

from nameplate.evidence import layout
from nameplate.evidence.header import Keeping
from nameplate.evidence.records import HEADER, Kind

BLOCK_BYTES = 1 << 20

_pack = HEADER.pack
_READ, _BARE = int(Kind.READ), int(Kind.BARE)


class Recorder:
    """Collect records, rows and timelines, and hand them over in blocks through `put(file, block)`."""

    def __init__(self, put: Callable[[str, bytes], None], keeping: Keeping) -> None:
        self._put = put
        self._keeping = keeping
        self._reads = bytearray()
        self._rows = bytearray()
        self._events = bytearray()

    def note(self, kind: Kind, request: int, t_ns: int, payload: bytes = b"") -> None:
        """Record anything but a read."""
        self._reads += _pack(kind, request, t_ns, 0, 0, len(payload))
        self._reads += payload

    def read(self, request: int, t_ns: int, delay_ns: int, since_empty_ns: int, data: bytes) -> None:
        """Record one read with all its bytes."""
        buffer = self._reads
        buffer += _pack(_READ, request, t_ns, delay_ns, since_empty_ns, len(data))
        buffer += data
        if len(buffer) >= BLOCK_BYTES:
            self._put(layout.READS, bytes(buffer))
            buffer.clear()

    def bare(self, request: int, t_ns: int, delay_ns: int, since_empty_ns: int, size: int) -> None:
        """Record when one read came and how long it was, without its bytes."""
        self._reads += _pack(_BARE, request, t_ns, delay_ns, since_empty_ns, size)
        if len(self._reads) >= BLOCK_BYTES:
            self._put(layout.READS, bytes(self._reads))
            self._reads.clear()

    def keeps(self, request: int) -> bool:
        return self._keeping.keeps(request)

    def row(self, line: bytes) -> None:
        """Record a finished request's row, one JSON line."""
        self._rows += line

    def timeline(self, entry: bytes) -> None:
        """Record a finished request's packed timeline."""
        self._events += entry
        if len(self._events) >= BLOCK_BYTES:
            self._put(layout.EVENTS, bytes(self._events))
            self._events.clear()

    def flush(self) -> None:
        """Hand over everything that is held; called once a second, and at the end."""
        for name, buffer in (
            (layout.READS, self._reads),
            (layout.REQUESTS, self._rows),
            (layout.EVENTS, self._events),
        ):
            if buffer:
                self._put(name, bytes(buffer))
                buffer.clear()
