"""Server-sent events by the standard's line rules, plus what servers really put beside them."""

import msgspec

from nameplate.wire.errors import WireError

# Of the data of one event, and of one line. Real events stay below 1 MiB even with log-probabilities; the limit
# is what keeps a hostile stream's memory bounded.
EVENT_LIMIT_BYTES = 16 * 1024 * 1024
# Comments are kept only because some servers put an error's text there.
COMMENT_LIMIT_BYTES = 4096

_BOM = b"\xef\xbb\xbf"
_EVENT_TOO_LONG = f"a server-sent event exceeds {EVENT_LIMIT_BYTES} bytes"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """Hold one event: its data (lines joined by a line feed), its type, and what stood beside it.

    ``comment`` is the text of the block's comment lines, ``error`` the value of a field literally called
    ``error``. ``stray`` marks a line that is JSON without any field name: no event, but never silence.
    """

    data: bytes
    name: str = ""
    comment: str = ""
    error: bytes = b""
    stray: bool = False


class SseDecoder:
    """Cut a byte stream into events, whatever the split; lines end at LF, CR or CRLF and nothing else.

    An event with data is dispatched at its blank line. A block without data is dispatched only if it is named
    ``error`` or has an ``error`` field. An event above EVENT_LIMIT_BYTES raises WireError: at once if the read
    held no whole event, else at the next call, so that those events are not lost.
    """

    __slots__ = (
        "_comment",
        "_data",
        "_data_bytes",
        "_error",
        "_failed",
        "_first_line",
        "_fresh",
        "_name",
        "_skip_lf",
        "_tail",
        "foreign",
    )

    def __init__(self) -> None:
        self._tail = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = ""
        self._comment = b""
        self._error = b""
        self._skip_lf = False
        self._first_line = True
        self._failed = False
        # Nothing is pending from earlier reads: the next byte begins a block.
        self._fresh = False
        # The first line that is neither a field nor a comment: what a body says that is no event stream.
        self.foreign = b""

    def is_one_event(self, data: bytes) -> bool:
        """Say whether these bytes are one whole event of one `data: ` line, with nothing before or after it.

        Nearly every read of a stream is: its data is then `data[6:-2]`, and nothing needs to be fed.
        """
        size = len(data)
        # Integers are searched for instead of bytes because that costs a tenth.
        return (
            self._fresh
            and data.find(10) == size - 2
            and data[-1] == 10
            and 13 not in data
            and size <= EVENT_LIMIT_BYTES
            and data.startswith(b"data: ")
        )

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that end in these bytes; WireError if one exceeds its limit."""
        if self.is_one_event(data):
            return [SseEvent(data[6:-2])]
        if self._fresh and 13 not in data and len(data) <= EVENT_LIMIT_BYTES and data.endswith(b"\n\n"):
            events = _plain_events(data)
            if events:
                return events
        if self._failed:
            raise WireError("event_too_long", _EVENT_TOO_LONG)
        return self._feed_lines(data)

    def finish(self) -> list[SseEvent]:
        """Return the event that the stream's end cut off before its blank line, if there is one."""
        if self._failed:
            raise WireError("event_too_long", _EVENT_TOO_LONG)
        events: list[SseEvent] = []
        if self._tail:
            line = bytes(self._tail)
            self._tail.clear()
            self._line(line, events)
        self._dispatch(events)
        return events

    def _feed_lines(self, data: bytes) -> list[SseEvent]:
        events: list[SseEvent] = []
        if not data:
            return events
        if self._skip_lf:
            self._skip_lf = False
            if data[0] == 10:
                data = data[1:]
                if not data:
                    return events
        tail = self._tail
        if b"\n" not in data and b"\r" not in data:
            tail += data
            self._fresh = False
        else:
            if tail:
                data = bytes(tail) + data
                tail.clear()
            lines = data.splitlines()
            last = data[-1]
            if last == 13:
                self._skip_lf = True
            elif last != 10:
                tail += lines.pop()
            for line in lines:
                if len(line) > EVENT_LIMIT_BYTES or self._data_bytes > EVENT_LIMIT_BYTES:
                    return self._fail(events)
                self._line(line, events)
            self._fresh = not (tail or self._skip_lf or self._first_line or self._pending)
        if len(tail) > EVENT_LIMIT_BYTES or self._data_bytes > EVENT_LIMIT_BYTES:
            return self._fail(events)
        return events

    @property
    def _pending(self) -> bool:
        return bool(self._data or self._name or self._comment or self._error)

    def _fail(self, events: list[SseEvent]) -> list[SseEvent]:
        self._failed = True
        self._fresh = False
        self._tail.clear()
        self._data.clear()
        if events:
            return events
        raise WireError("event_too_long", _EVENT_TOO_LONG)

    def _line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first_line:
            self._first_line = False
            if line.startswith(_BOM):
                line = line[3:]
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif not field:
            if len(self._comment) < COMMENT_LIMIT_BYTES:
                joined = self._comment + b"\n" + value if self._comment else value
                self._comment = joined[:COMMENT_LIMIT_BYTES]
        elif field == b"event":
            self._name = value[:COMMENT_LIMIT_BYTES].decode("utf-8", "replace")
        elif field == b"error":
            self._error = value
        elif field[:1] == b"{":
            events.append(SseEvent(line, stray=True))
        elif not self.foreign and field not in (b"id", b"retry"):
            self.foreign = line[:COMMENT_LIMIT_BYTES]

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data or self._error or self._name == "error":
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            comment = self._comment.decode("utf-8", "replace")
            events.append(SseEvent(data, self._name, comment, self._error))
        if self._data:
            self._data.clear()
            self._data_bytes = 0
        self._name = ""
        self._comment = b""
        self._error = b""


def _plain_events(data: bytes) -> list[SseEvent]:
    """Return the events of a read that holds nothing but whole one-line events; empty if it holds more."""
    events: list[SseEvent] = []
    for block in data[:-2].split(b"\n\n"):
        if 10 in block or not block.startswith(b"data: "):
            return []
        events.append(SseEvent(block[6:]))
    return events
