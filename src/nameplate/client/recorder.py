"""The recorder: packs what the loop notices into blocks for the writer; nothing here waits."""

from __future__ import annotations

from collections.abc import Callable

from nameplate.evidence import layout
from nameplate.evidence.header import Keeping
from nameplate.evidence.records import HEADER, Kind

BLOCK_BYTES = 1 << 20

_pack = HEADER.pack
_HEADER_BYTES = HEADER.size
_READ, _BARE = int(Kind.READ), int(Kind.BARE)


class Recorder:
    """Collect records, rows and timelines, and hand them over in blocks through `put(file, block)`.

    `keeping` says of which requests the bytes are kept; another may be set for those that start later.
    """

    def __init__(self, put: Callable[[str, bytes], None], keeping: Keeping) -> None:
        self._put = put
        self.keeping = keeping
        # Joined once a block: a growing bytearray was copied some sixty times on its way to a block (3 us a read
        # against 1.2 us).
        self._reads: list[bytes] = []
        self._reads_bytes = 0
        self._rows = bytearray()
        self._events = bytearray()

    def note(self, kind: Kind, request: int, t_ns: int, payload: bytes = b"") -> None:
        """Record anything but a read."""
        self._reads.append(_pack(kind, request, t_ns, 0, 0, len(payload)) + payload)

    def read(self, request: int, t_ns: int, delay_ns: int, since_empty_ns: int, data: bytes) -> None:
        """Record one read with all its bytes."""
        size = len(data)
        reads = self._reads
        reads.append(_pack(_READ, request, t_ns, delay_ns, since_empty_ns, size))
        reads.append(data)
        self._reads_bytes += size + _HEADER_BYTES
        if self._reads_bytes >= BLOCK_BYTES:
            self._flush_reads()

    def bare(self, request: int, t_ns: int, delay_ns: int, since_empty_ns: int, size: int) -> None:
        """Record when one read came and how long it was, without its bytes."""
        self._reads.append(_pack(_BARE, request, t_ns, delay_ns, since_empty_ns, size))
        self._reads_bytes += _HEADER_BYTES
        if self._reads_bytes >= BLOCK_BYTES:
            self._flush_reads()

    def _flush_reads(self) -> None:
        self._put(layout.READS, b"".join(self._reads))
        self._reads.clear()
        self._reads_bytes = 0

    def keeps(self, request: int) -> bool:
        return self.keeping.keeps(request)

    def row(self, line: bytes) -> None:
        """Record a finished request's row, one JSON line."""
        self._rows += line
        if len(self._rows) >= BLOCK_BYTES:
            self._put(layout.REQUESTS, bytes(self._rows))
            self._rows.clear()

    def client(self, line: bytes) -> None:
        """Hand over a look at this process, one JSON line, at once."""
        self._put(layout.CLIENT, line)

    def timeline(self, entry: bytes) -> None:
        """Record a finished request's packed timeline."""
        self._events += entry
        if len(self._events) >= BLOCK_BYTES:
            self._put(layout.EVENTS, bytes(self._events))
            self._events.clear()

    def flush(self) -> None:
        """Hand over everything that is held; called once a second, and at the end."""
        if self._reads:
            self._flush_reads()
        for name, buffer in ((layout.REQUESTS, self._rows), (layout.EVENTS, self._events)):
            if buffer:
                self._put(name, bytes(buffer))
                buffer.clear()
