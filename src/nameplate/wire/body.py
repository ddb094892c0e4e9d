"""Decode a response body of any kind into events: event stream, whole answer, error document, or something else."""

import contextlib

from nameplate.wire import loose
from nameplate.wire.chunk import Api, ChunkReader
from nameplate.wire.compression import GZIP_MAGIC, Inflater
from nameplate.wire.errors import WireError
from nameplate.wire.events import Done, Event, Finish, Output, StreamError
from nameplate.wire.sse import SseDecoder, SseEvent

# A whole answer of 100,000 tokens with log-probabilities stays below this.
DOCUMENT_LIMIT_BYTES = 16 * 1024 * 1024
# What is kept of a page or of plain words, for its message only.
TEXT_LIMIT_BYTES = 64 * 1024

_BOM = b"\xef\xbb\xbf"
_BRACE = ord("{")
_COLON = ord(":")
_END_MARKERS = frozenset((b"[DONE]", b'"[DONE]"'))
# Keep-alives that belong into a comment (a colon before them included) but come as data.
_PINGS = frozenset((b"ping", b"[ping]", b"heartbeat", b"keepalive", b"keep-alive"))
_BLANK = b" \t\r\n"
_FIELDS = (b"data", b"event", b"error", b"retry", b"id", b":")
_FIELD_BYTES = 6  # the longest field name and its colon
# How a body begins that only claims to be compressed; no zlib body begins so, and hardly a raw one.
_TEXT_STARTS = frozenset(
    (
        b"da",
        b"ev",
        b"er",
        b"re",
        b"id",
        b": ",
        b":\n",
        b":\r",
        b'{"',
        b"{\n",
        b"{ ",
        b"[{",
        b"[]",
        b"<!",
        b"<h",
        b"<H",
    )
)
# Of events without blank lines between them: each is parsed twice, so their number costs time.
_JOINED_LIMIT = 100_000
# Codings whose decoder is not in the standard library of every supported Python.
_FOREIGN_CODINGS = ("br", "zstd", "compress", "x-compress")


class BodyDecoder:
    """Decode one body; it never raises: what is wrong with the body stands in ``malformed``.

    ``kind`` becomes ``sse``, ``json``, ``html`` or ``text`` by the content type and, because the type can lie, by
    the first bytes. ``cut`` says that the body ended in the middle of something; ``malformed`` then says of what.
    ``dead`` says that nothing that still comes is looked at.
    """

    __slots__ = (
        "_chunks",
        "_deflated",
        "_document",
        "_done",
        "_head",
        "_inflater",
        "_plain",
        "_says_sse",
        "_sse",
        "_streaming",
        "compressed",
        "cut",
        "dead",
        "kind",
        "malformed",
        "warnings",
    )

    def __init__(self, content_type: str, content_encoding: str, api: Api) -> None:
        self.kind = ""
        self.compressed = False
        self.malformed: str | None = None
        self.cut = False
        self._says_sse = content_type.partition(";")[0].strip().lower() == "text/event-stream"
        self._deflated = content_encoding.strip().lower() == "deflate"
        self._chunks = ChunkReader(api)
        self.warnings = self._chunks.warnings
        self._sse = SseDecoder()
        self._inflater: Inflater | None = None
        self._plain = False
        self._head = b""
        self._document = bytearray()
        self._done = False
        self.dead = False
        # Set once nothing stands between the bytes and the SSE decoder: the hot path's only question.
        self._streaming = False
        if content_encoding.strip().lower() in _FOREIGN_CODINGS:
            self._fail(f"the body is compressed ({content_encoding[:40]}) although identity was asked for")
            self.compressed = True
            self.dead = True

    def feed(self, body: bytes) -> list[Event]:
        """Return the events that these bytes complete."""
        if self._streaming:
            return self._feed_sse(body)
        if self.dead or not body:
            return []
        if self._plain:
            return self._feed_plain(body)
        return self._feed_coded(body)

    def finish(self) -> list[Event]:
        """Return the events that only the end of the body completes; call it when the message is whole."""
        events: list[Event] = []
        if self.dead:
            return events
        if not self._plain and self._inflater is None:
            # Fewer bytes than the sniffing of compression waits for.
            self._plain = True
            events += self._feed_plain(self._take_head())
        if self._inflater is not None and not self._inflater.finished:
            self._fail("the compressed body was cut short", cut=True)
        if not self.kind and self._head:
            events += self._route(self._take_head(), final=True)
        if self.kind == "sse":
            events += self._finish_sse()
        elif self.kind == "json":
            events += self._finish_document()
        elif self.kind:
            self._fail_page()
        return events

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def _fail(self, reason: str, cut: bool = False) -> None:
        if self.malformed is None:
            self.malformed = loose.bounded(reason)
            self.cut = cut

    # Compression ---------------------------------------------------------------------------------------------

    def _feed_coded(self, body: bytes) -> list[Event]:
        if self._inflater is None:
            body = self._take_head() + body
            looks_zipped = body[:2] == GZIP_MAGIC[: len(body)]
            if len(body) < 2 and (looks_zipped or self._deflated):
                self._head = body
                return []
            if not looks_zipped and (not self._deflated or body[:2] in _TEXT_STARTS):
                self._plain = True
                return self._feed_plain(body)
            self._inflater = Inflater(body[:2])
            self.compressed = True
        events: list[Event] = []
        try:
            for piece in self._inflater.feed(body):
                events += self._feed_plain(piece)
        except WireError as problem:
            self._fail(problem.message)
            self.dead = True
        return events

    # Kind ----------------------------------------------------------------------------------------------------

    def _feed_plain(self, body: bytes) -> list[Event]:
        if self.kind == "sse":
            return self._feed_sse(body)
        if not self.kind:
            return self._route(self._take_head() + body, final=False)
        limit = DOCUMENT_LIMIT_BYTES if self.kind == "json" else TEXT_LIMIT_BYTES
        self._document += body[: limit + 1 - len(self._document)]
        if len(self._document) > limit:
            if self.kind == "json":
                self._fail(f"a JSON body exceeds {DOCUMENT_LIMIT_BYTES} bytes")
            else:
                self._fail_page()
            self._document.clear()
            self.dead = True
        return []

    def _fail_page(self) -> None:
        if self.kind == "html":
            self._fail(f"an HTML page: {loose.describe_page(bytes(self._document))}")
        else:
            words = loose.bounded(self._document[:4096].decode("utf-8", "replace"))
            self._fail(f"plain text: {words}")

    def _route(self, body: bytes, final: bool) -> list[Event]:
        """Decide the kind once the first bytes allow it, then pass them on."""
        text = body
        if body[:3] != _BOM[: len(body)] or len(body) >= 3 or final:
            text = body.removeprefix(_BOM).lstrip(_BLANK)
            if len(body) - len(text) > TEXT_LIMIT_BYTES:
                self.kind = "text"
            else:
                self.kind = self._sniff(text, final)
        if not self.kind:
            self._head = body
            return []
        if self.kind == "sse":
            # The blanks before it are lines to an event stream.
            self._streaming = self._plain
            return self._feed_plain(body)
        return self._feed_plain(text)

    def _sniff(self, text: bytes, final: bool) -> str:
        if not text:
            return ""
        first = text[:1]
        if first in (b"{", b"["):
            return "json"
        if first == b"<":
            return "html"
        if self._says_sse:
            return "sse"
        for field in _FIELDS:
            named = field if field == b":" else field + b":"
            if text.startswith(named):
                return "sse"
            if named.startswith(text) and not final:
                return ""
        return "text"

    # Event stream --------------------------------------------------------------------------------------------

    def _feed_sse(self, body: bytes) -> list[Event]:
        events: list[Event] = []
        # The short way for the ordinary read: one chunk, no event object around it (1.1 us less of 4).
        if self._sse.is_one_event(body) and body[6] == _BRACE and not self._done:
            data = body[6:-2]
            try:
                self._chunks.read(data, events)
            except loose.LooseJsonError as problem:
                self._bad_data(data, problem, events, last=False)
            return events
        try:
            found = self._sse.feed(body)
        except WireError as problem:
            self._broken_stream(problem)
            return events
        for event in found:
            data = event.data
            if data and data[0] == _BRACE and not (event.name or event.error or event.stray or self._done):
                try:
                    self._chunks.read(data, events)
                except loose.LooseJsonError as problem:
                    self._bad_data(data, problem, events, last=False)
            else:
                self._event(event, events, last=False)
        return events

    def _finish_sse(self) -> list[Event]:
        events: list[Event] = []
        try:
            found = self._sse.finish()
        except WireError as problem:
            self._broken_stream(problem)
            return events
        for event in found:
            # After the end marker a torn rest is nobody's loss.
            if not self._done or event.data[:1] == b"{":
                self._event(event, events, last=True)
        if self._sse.foreign and not (self._chunks.any_chunk or self._done or events):
            words = loose.bounded(self._sse.foreign.decode("utf-8", "replace"))
            self._fail(f"no event stream but text: {words}")
        return events

    def _broken_stream(self, problem: WireError) -> None:
        self._fail(problem.message)
        self._streaming = False
        self.dead = True

    def _event(self, event: SseEvent, events: list[Event], last: bool) -> None:
        if event.stray:
            self._stray(event.data, events, last)
        elif event.name.endswith("error") and not event.error:
            text = event.data if event.data.strip() else event.comment.encode()
            found = loose.describe_error_text(text)
            message = found.message if text.strip() else "an error event without any text"
            events.append(StreamError(message, found.kind, found.code))
        else:
            if event.error:
                events.append(loose.describe_error_text(event.error))
            self._data(event, events, last)

    def _data(self, event: SseEvent, events: list[Event], last: bool) -> None:
        word = event.data.strip()
        if not word or word[0] == _COLON or word.lower() in _PINGS:
            return
        if word in _END_MARKERS:
            self._done = True
            events.append(Done())
            return
        found: list[Event] = []
        try:
            self._chunks.read(event.data, found)
        except loose.LooseJsonError as problem:
            # A named event is free to carry what it likes: identifiers, pings, words.
            if event.name in ("", "message"):
                self._bad_data(event.data, problem, events, last)
            return
        if self._done:
            # Counts and errors may follow the end marker; text that nobody would read is no output.
            self.warnings.add("bytes_after_done")
            found = [each for each in found if not isinstance(each, Output | Finish)]
        events += found

    def _stray(self, line: bytes, events: list[Event], last: bool) -> None:
        """Take a line of JSON that no field name introduces: an error object, or another protocol."""
        found: list[Event] = []
        try:
            self._chunks.read(line, found)
        except loose.LooseJsonError as problem:
            self._bad_data(line, problem, events, last)
            return
        errors = [event for event in found if isinstance(event, StreamError)]
        if not errors:
            self._fail("JSON lines without `data:` inside an event stream (NDJSON?)")
        events += errors

    def _bad_data(self, data: bytes, problem: loose.LooseJsonError, events: list[Event], last: bool) -> None:
        lines = data.split(b"\n", _JOINED_LIMIT)
        if 1 < len(lines) <= _JOINED_LIMIT and all(_is_chunk_line(line) for line in lines):
            # Blank lines between the events were forgotten; the texts are whole, their times are not.
            self.warnings.add("missing_blank_lines")
            for line in lines:
                self._event(SseEvent(line), events, last)
        elif self._done:
            self.warnings.add("bytes_after_done")
        elif last and problem.truncated:
            self._fail("the body ended in the middle of an event", cut=True)
        else:
            words = loose.bounded(data[:120].decode("utf-8", "replace"))
            self._fail(f"an event's data is not a JSON object ({problem}): {words}")

    # Document ------------------------------------------------------------------------------------------------

    def _finish_document(self) -> list[Event]:
        data = bytes(self._document)
        self._document.clear()
        events: list[Event] = []
        try:
            self._chunks.read(data, events, whole=True)
        except loose.LooseJsonError as problem:
            first = data.split(b"\n", 1)[0]
            if problem.trailing and _is_chunk_line(first):
                return self._first_of_lines(first)
            reason = (
                "the body ended inside its JSON" if problem.truncated else "the body is not a JSON object"
            )
            self._fail(f"{reason} ({problem})", cut=problem.truncated)
            return []
        if not self._chunks.any_chunk and not events:
            words = loose.bounded(data[:200].decode("utf-8", "replace"))
            self._fail(f"JSON without choices and without an error: {words}")
        return events

    def _first_of_lines(self, first: bytes) -> list[Event]:
        events: list[Event] = []
        with contextlib.suppress(loose.LooseJsonError):
            self._chunks.read(first, events, whole=True)
        self._fail("newline-delimited JSON where an event stream belongs; is this the server's native API?")
        return [event for event in events if isinstance(event, StreamError)]


def _is_chunk_line(line: bytes) -> bool:
    word = line.strip()
    if not word or word in _END_MARKERS:
        return True
    try:
        return isinstance(loose.parse(word), dict)
    except loose.LooseJsonError:
        return False
