"""Frame one HTTP/1.1 response: status, headers, body bytes, and whether the message is whole."""

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from nameplate.wire.errors import WireError

# Of the status line, headers and all 1xx responses before them; curl allows 300 KiB, most servers send < 1 KiB.
HEAD_LIMIT_BYTES = 256 * 1024
# Framing (chunk extensions, trailers) that may pass without a single body byte.
OVERHEAD_LIMIT_BYTES = 256 * 1024


class _Sink:
    """Collect what the parser calls back; it knows no parser, so the pair forms no reference cycle."""

    __slots__ = ("complete", "headers", "headers_complete", "on_body", "pieces", "trailer_bytes")

    def __init__(self) -> None:
        self.headers: list[tuple[str, str]] = []
        self.headers_complete = False
        self.complete = False
        self.trailer_bytes = 0
        self.pieces: list[bytes] = []
        # A C method in place of a Python one: this is the only callback of the hot path.
        self.on_body = self.pieces.append

    def on_message_begin(self) -> None:
        if self.complete:
            # Stops the parser, which would go on with the next message; feed() then sees a complete one.
            raise RuntimeError("a second message began")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.headers_complete:
            self.trailer_bytes += len(name) + len(value) + 4
        else:
            self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        self.headers_complete = True

    def on_message_complete(self) -> None:
        self.complete = True

    def reset(self) -> None:
        self.headers = []
        self.headers_complete = False
        self.complete = False


class ResponseReader:
    """Frame one response from bytes in any split; a reader serves one response only.

    Interim (1xx) responses are skipped. ``excess`` says that bytes followed the end of the message, so the
    connection must not be used again; line ends after the message are not excess.
    """

    __slots__ = ("_head_bytes", "_overhead_bytes", "_parser", "_reading", "_sink", "excess", "status")

    def __init__(self) -> None:
        self._sink = _Sink()
        self._parser = HttpResponseParser(self._sink)
        # Both are harmless to a client that reads its own answer, and both occur: line feeds alone as line
        # ends, and a Content-Length beside chunked coding (chunked wins, RFC 9112 6.3).
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_chunked_length=True)
        self._head_bytes = 0
        self._overhead_bytes = 0
        self._reading = False
        self.status: int | None = None
        self.excess = False

    def feed(self, data: bytes) -> bytes:
        """Return the body bytes that this read held.

        Raises WireError for broken framing and for a head or framing above its limit; ``WireError.body`` has the
        body bytes that came before the fault.
        """
        if not self._reading:
            data = self._feed_head(data)
            if not data:
                return b""
        sink = self._sink
        if sink.complete:
            if data.strip(b"\r\n"):
                self.excess = True
            return b""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as problem:
            self._body_fault(problem)
        pieces = sink.pieces
        if len(pieces) == 1:
            body = pieces[0]
            pieces.clear()
            self._overhead_bytes = 0
            return body
        if pieces:
            body = b"".join(pieces)
            pieces.clear()
            self._overhead_bytes = 0
            return body
        self._count_overhead(len(data))
        return b""

    def eof(self) -> bool:
        """Take the peer's close; True if the message is whole now, False if it was cut short."""
        if self.close_delimited:
            self._sink.complete = True
        return self._sink.complete

    @property
    def complete(self) -> bool:
        """Say whether the framing says that the message is whole."""
        return self._reading and self._sink.complete

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Return the final response's headers, names in lower case, in their order."""
        return self._sink.headers

    @property
    def content_type(self) -> str:
        """Return the media type in lower case without parameters; empty if there is none."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def content_encoding(self) -> str:
        """Return the content coding in lower case; empty if there is none."""
        return self.header("content-encoding").strip().lower()

    @property
    def close_delimited(self) -> bool:
        """Say whether only the close of the connection can end this message."""
        if not self._reading or self._sink.complete:
            return False
        coding = self._joined("transfer-encoding")
        if coding:
            return coding.rpartition(",")[2].strip().lower() != "chunked"
        return not self.header("content-length")

    @property
    def keep_alive(self) -> bool:
        """Say whether the connection can carry another request now."""
        if not self.complete or self.excess:
            return False
        tokens = {token.strip() for token in self._joined("connection").lower().split(",")}
        if "close" in tokens:
            return False
        if self._parser.get_http_version() == "1.0" and "keep-alive" not in tokens:
            return False
        return self.status in (204, 304) or bool(self.header("content-length") or self._chunked)

    def header(self, name: str) -> str:
        """Return the first value of a header by its lower-case name; empty if there is none."""
        for key, value in self._sink.headers:
            if key == name:
                return value
        return ""

    @property
    def _chunked(self) -> bool:
        return self._joined("transfer-encoding").rpartition(",")[2].strip().lower() == "chunked"

    def _joined(self, name: str) -> str:
        return ", ".join(value for key, value in self._sink.headers if key == name)

    def _feed_head(self, data: bytes) -> bytes:
        """Feed the head line by line and return what follows it.

        Line by line, because a parser that has run on over an interim response tells nothing of it any more,
        and because it buffers a header without a limit.
        """
        sink, parser = self._sink, self._parser
        start = 0
        while start < len(data):
            newline = data.find(b"\n", start)
            stop = len(data) if newline < 0 else newline + 1
            self._head_bytes += stop - start
            if self._head_bytes > HEAD_LIMIT_BYTES:
                raise WireError("head_too_long", f"the response's headers exceed {HEAD_LIMIT_BYTES} bytes")
            try:
                parser.feed_data(data[start:stop])
            except HttpParserUpgrade:
                raise WireError("upgrade", "the server switched to another protocol (HTTP 101)") from None
            except HttpParserError as problem:
                raise WireError("bad_head", f"not an HTTP response: {problem}") from None
            start = stop
            if sink.headers_complete:
                status = parser.get_status_code()
                if status >= 200:
                    self.status = status
                    self._reading = True
                    break
                sink.reset()
        return data[start:]

    def _body_fault(self, problem: Exception) -> None:
        if self._sink.complete:
            # The message itself was whole; what came after it is the connection's affair.
            self.excess = True
            return
        kept = b"".join(self._sink.pieces)
        self._sink.pieces.clear()
        kind = "callback" if isinstance(problem, HttpParserCallbackError) else "bad_framing"
        raise WireError(kind, f"broken HTTP framing: {problem}", kept) from None

    def _count_overhead(self, size_bytes: int) -> None:
        self._overhead_bytes += size_bytes
        if max(self._overhead_bytes, self._sink.trailer_bytes) > OVERHEAD_LIMIT_BYTES:
            raise WireError(
                "framing_too_long", f"more than {OVERHEAD_LIMIT_BYTES} bytes of framing without a body"
            )
