"""One connection of the live server: bytes read into requests, response bytes written out, both bounded."""

import socket
import struct

import httptools

from nameplate.sim.http import HttpRequest

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024  # a 262,144-token prompt is some 2 MB: this only stops the absurd
MAX_UNSENT_BYTES = 16 * 1024 * 1024  # a client that does not read must not cost memory


class ProtocolError(Exception):
    """Say that the client broke HTTP, or a bound of this server."""


class Connection:
    """Hold one client's socket, its parser and what could not be sent yet."""

    def __init__(self, number: int, sock: socket.socket, now_ns: int) -> None:
        self.number = number
        self.sock = sock
        self.busy = False  # a response is owed
        self.closing = False  # close when all is sent
        self.idle_since_ns = now_ns
        self.unsent = bytearray()
        self._requests: list[HttpRequest] = []
        self._begin()
        self._parser = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> list[HttpRequest]:
        """Take bytes and return the requests that they complete; raise ProtocolError."""
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise ProtocolError(str(error)) from error
        if not self._in_body and self._head_bytes > MAX_HEAD_BYTES:
            raise ProtocolError("the request's head is too long")
        if self._body_bytes > MAX_BODY_BYTES:
            raise ProtocolError("the request's body is too long")
        requests, self._requests = self._requests, []
        return requests

    def send(self, data: bytes) -> bool:
        """Send or keep bytes; False if the client is gone or reads too slowly."""
        if not self.unsent:
            try:
                sent = self.sock.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                return False
            if sent == len(data):
                return True
            data = data[sent:]
        self.unsent += data
        return len(self.unsent) <= MAX_UNSENT_BYTES

    def flush(self) -> bool:
        """Send what was kept; False if the client is gone."""
        while self.unsent:
            try:
                sent = self.sock.send(self.unsent)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError:
                return False
            del self.unsent[:sent]
        return True

    def reset(self) -> None:
        """Close so that the client sees a reset, not an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    # What follows is called by the parser.

    def on_message_begin(self) -> None:
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_body = True
        if self._headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(data)

    def on_message_complete(self) -> None:
        self._requests.append(
            HttpRequest(
                self._parser.get_method().decode("latin-1"),
                self._url.decode("latin-1"),
                self._headers,
                b"".join(self._body),
                self._parser.should_keep_alive(),
            )
        )
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._head_bytes = 0
        self._in_body = False
