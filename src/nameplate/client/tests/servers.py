"""Scripted servers over real sockets, for tests of the client: each connection is handled by a function in a thread."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator

from nameplate.client.tests.orders import answer

Handler = Callable[[socket.socket, int], None]
"""Serve one accepted connection; the number counts connections from 0."""


class ScriptedServer:
    """Serve on loopback until closed; `accepted` counts connections, `requests` what `read_request` read."""

    def __init__(
        self, handler: Handler, family: int = socket.AF_INET, tls: ssl.SSLContext | None = None
    ) -> None:
        self._handler = handler
        self._tls = tls
        self.accepted = 0
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self._listener.listen(1024)
        self.port = self._listener.getsockname()[1]
        host = "[::1]" if family == socket.AF_INET6 else "127.0.0.1"
        self.url = f"{'https' if tls else 'http'}://{host}:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            number = self.accepted
            self.accepted += 1
            self._sockets.append(connection)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, EOFError), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                self._handler(connection, number)
                return
            with self._tls.wrap_socket(connection, server_side=True) as secure:
                self._handler(secure, number)

    def refuse(self) -> None:
        """Stop listening: later connections are refused, open ones go on."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def die(self) -> None:
        """Reset everything and stop listening, as a killed process does."""
        self.refuse()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                reset(connection)

    def close(self) -> None:
        """Close everything."""
        self.refuse()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@contextlib.contextmanager
def serving(
    handler: Handler, family: int = socket.AF_INET, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    """Serve while the block runs."""
    server = ScriptedServer(handler, family, tls)
    try:
        yield server
    finally:
        server.close()


def read_request(connection: socket.socket) -> bytes:
    """Read one whole request; EOFError when the client has closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise EOFError
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            raise EOFError
        body += part
    return head + b"\r\n\r\n" + body


def reset(connection: socket.socket) -> None:
    """Close with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def whole_answer(tokens: int = 4, *headers: bytes) -> bytes:
    """Write an answer as one piece, with further header lines."""
    data = b"".join(answer(tokens))
    for header in headers:
        data = data.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n\r\n", 1)
    return data


def keep_alive(connection: socket.socket, _number: int) -> None:
    """Answer every request and keep the connection."""
    while True:
        read_request(connection)
        connection.sendall(whole_answer())
