"""Sockets of the live servers: accept, read requests, send bytes, close; one thread, nothing blocks, all is bounded."""

import contextlib
import resource
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable

from nameplate.sim.connection import Connection, ProtocolError
from nameplate.sim.http import HttpRequest, error_body, response

_READ_BYTES = 256 * 1024
_LONGEST_WAIT_S = 0.5
_SWEEP_NS = 500_000_000
_STOP = object()


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket that does not block; raise OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=1_024)
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the base URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def raise_descriptor_limit() -> None:
    """Allow as many open sockets as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class StopSignals:
    """Turn SIGTERM and SIGINT into a readable socket, so that waiting ends and nothing is cut in the middle."""

    def __init__(self) -> None:
        self.reader, self._writer = socket.socketpair()
        self.reader.setblocking(False)
        self._writer.setblocking(False)
        self._before = {
            number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)
        }
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        """Restore the handlers that were there."""
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.reader.close()
        self._writer.close()


class Sockets:
    """Own the listening socket and all connections.

    `on_request(connection, request, now_ns)` is called for each complete request, `on_lost(connection, now_ns)` when
    a client went away while a response was owed.
    """

    def __init__(
        self,
        listener: socket.socket,
        on_request: Callable[[Connection, HttpRequest, int], None],
        on_lost: Callable[[Connection, int], None],
        *,
        keep_alive_s: float,
        max_connections: int,
    ) -> None:
        self._listener = listener
        self._on_request, self._on_lost = on_request, on_lost
        self._keep_alive_ns = int(keep_alive_s * 1e9)
        self._max_connections = max_connections
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._connections: dict[int, Connection] = {}
        self._accepted = 0
        self._next_sweep_ns = 0

    def stop_on(self, reader: socket.socket | int) -> None:
        """Let `turn` say False once this socket or pipe is readable or has ended."""
        self._selector.register(reader, selectors.EVENT_READ, _STOP)

    def get(self, number: int) -> Connection | None:
        """Return a connection that is still open."""
        return self._connections.get(number)

    def turn(self, due_ns: int | None) -> bool:
        """Wait for clients until `due_ns` at most, and serve those that are ready; False when it is time to stop."""
        for key, mask in self._wait(due_ns):
            if key.data is None:
                self._accept()
                continue
            if key.data is _STOP:
                return False
            connection: Connection = key.data
            if mask & selectors.EVENT_WRITE:
                self._flush(connection)
            if mask & selectors.EVENT_READ and connection.number in self._connections:
                self._read(connection)
        if time.monotonic_ns() >= self._next_sweep_ns:
            self._sweep()
        return True

    def send(self, connection: Connection, data: bytes, *, done: bool = False, close: bool = False) -> None:
        """Send bytes, now or as soon as the client takes them; `done` ends the response, `close` the connection."""
        if not connection.send(data):
            return self.drop(connection)
        if done:
            connection.busy = False
            connection.idle_since_ns = time.monotonic_ns()
            connection.closing = close
        if connection.unsent:
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(connection.sock, both, connection)
        elif connection.closing:
            self.drop(connection)
        return None

    def drop(self, connection: Connection) -> None:
        """Close a connection."""
        if connection.number not in self._connections:
            return
        self._forget(connection)
        connection.sock.close()
        if connection.busy:
            self._on_lost(connection, time.monotonic_ns())

    def reset(self, connection: Connection) -> None:
        """Close a connection so that the client sees a reset."""
        self._forget(connection)
        connection.reset()

    def close(self) -> None:
        """Close everything."""
        for connection in list(self._connections.values()):
            self.drop(connection)
        self._selector.close()
        self._listener.close()

    def _wait(self, due_ns: int | None) -> list[tuple[selectors.SelectorKey, int]]:
        left_s = (
            _LONGEST_WAIT_S if due_ns is None else min(_LONGEST_WAIT_S, (due_ns - time.monotonic_ns()) * 1e-9)
        )
        if left_s <= 0:
            return self._selector.select(0)
        if sys.platform == "linux" and isinstance(self._selector, selectors.EpollSelector):
            # epoll's own timeout is in milliseconds. Its descriptor is itself readable when one of its sockets is
            # ready, and select() waits in microseconds.
            ready, _, _ = select.select([self._selector.fileno()], [], [], left_s)
            return self._selector.select(0) if ready else []
        return self._selector.select(left_s)

    def _accept(self) -> None:
        for _ in range(256):  # then look at the others again
            try:
                sock, _address = self._listener.accept()
            except OSError:  # none is waiting, or no descriptor is left: the client sees a slow connect
                return
            if len(self._connections) >= self._max_connections:
                sock.close()
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted += 1
            connection = Connection(self._accepted, sock, time.monotonic_ns())
            self._connections[connection.number] = connection
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            data = b""
        if not data:
            return self.drop(connection)
        now_ns = time.monotonic_ns()
        connection.idle_since_ns = now_ns
        try:
            requests = connection.feed(data)
        except ProtocolError as error:
            body = error_body(str(error), "BadRequestError", None, 400)
            connection.send(response(400, body, keep_alive=False))
            return self.drop(connection)
        for request in requests:
            if connection.busy or connection.closing:
                return self.drop(connection)  # pipelining: no client of such servers does it
            connection.busy = True
            self._on_request(connection, request, now_ns)
        return None

    def _flush(self, connection: Connection) -> None:
        if not connection.flush():
            return self.drop(connection)
        if not connection.unsent:
            if connection.closing:
                return self.drop(connection)
            self._selector.modify(connection.sock, selectors.EVENT_READ, connection)
        return None

    def _sweep(self) -> None:
        """Close connections that were idle too long, as real servers do."""
        now_ns = time.monotonic_ns()
        self._next_sweep_ns = now_ns + _SWEEP_NS
        for connection in list(self._connections.values()):
            idle = not connection.busy and not connection.unsent
            if idle and now_ns - connection.idle_since_ns > self._keep_alive_ns:
                self.drop(connection)

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.number]
        self._selector.unregister(connection.sock)
