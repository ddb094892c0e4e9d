"""The connections of a load: opened before they are due, kept while idle, replaced when they are gone."""

from __future__ import annotations

import errno
import socket
import ssl
from collections import deque
from collections.abc import Callable
from time import monotonic_ns

from nameplate.client.connection import Connection, tls_context
from nameplate.client.order import LoadOrder
from nameplate.client.poller import READABLE, WRITABLE, Poller
from nameplate.contract.errors import ClientError, ServerError

# Servers close idle connections after seconds, not within this.
FRESHLY_IDLE_NS = 5_000_000
SPARE_LIMIT = 64
REOPEN_EVERY_NS = 250_000_000
# A server's listen backlog is often 128, and an overflowing one costs a second a connection.
OPENING_AT_ONCE = 64
# What this machine runs out of, never the server.
OUR_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL)
_TLS_HINT = "Does it speak TLS? Name its authority with --ca-file, or take any certificate with --insecure."


class Pool:
    """Hold every connection of one load process; `failed(reason)` is called when one could not be opened.

    `fresh` says that each connection serves one request, by choice or because the server closes. `refusal` is why the
    last opening failed, empty if it did not. `failure` says which limit of this machine was reached, or is None.
    """

    def __init__(self, order: LoadOrder, failed: Callable[[str], None]) -> None:
        target = order.target
        self.poller = Poller()
        self.connections: dict[int, Connection] = {}
        self.opening = 0
        self.fresh = order.new_connections
        self.refusal = ""
        self.failure: str | None = None
        self._url = target.url
        self._host = target.host
        self._connect_ns = order.deadlines.connect_ns
        self._failed = failed
        self._idle: deque[Connection] = deque()
        self._tls = None if target.scheme == "http" else tls_context(target.ca_file, target.insecure)
        self._family, self._address = resolve(target.host, target.port)
        self._reopened_ns = 0

    # -- idle connections -----------------------------------------------------------------------------------------

    @property
    def ready(self) -> int:
        """Count the connections that are open and carry nothing."""
        return len(self._idle)

    def park(self, connection: Connection, now_ns: int) -> None:
        """Keep a connection whose answer is over."""
        connection.idle_since_ns = now_ns
        self._idle.append(connection)

    def put_back(self, connection: Connection) -> None:
        """Return a connection that was taken and not used."""
        self._idle.appendleft(connection)

    def take(self) -> Connection | None:
        """Take an idle connection that is fit to be used, or None."""
        while self._idle:
            connection = self._idle.popleft()
            # Asking the kernel costs as much as a send; a connection whose answer has just ended needs no asking.
            if monotonic_ns() - connection.idle_since_ns < FRESHLY_IDLE_NS or connection.quiet():
                return connection
            self.drop(connection)
        return None

    def drop(self, connection: Connection, reset: bool = False) -> None:
        """Close a connection and forget it; with `reset` the server is told at once."""
        # A dropped connection's descriptor may already belong to the next one.
        if self.connections.get(connection.fd) is not connection:
            return
        del self.connections[connection.fd]
        if connection.opened_ns is None:
            self.opening -= 1
        elif connection.flight is None and connection in self._idle:
            self._idle.remove(connection)
        self.poller.unregister(connection.fd)
        connection.flight = None
        connection.close(reset)

    def close(self) -> None:
        """Close everything."""
        for connection in list(self.connections.values()):
            self.drop(connection)
        self.poller.close()

    # -- opening --------------------------------------------------------------------------------------------------

    def advance(self, connection: Connection) -> None:
        """Go on with a connection that is being opened; once open it is idle."""
        try:
            if not connection.advance_opening():
                self.poller.modify(connection.fd, READABLE | (WRITABLE if connection.writing else 0))
                return
        except OSError as error:
            self.drop(connection)
            self._refused(describe(error))
            return
        connection.opened_ns = monotonic_ns()
        self.opening -= 1
        self.poller.modify(connection.fd, READABLE)
        self.park(connection, connection.opened_ns)

    def with_spares(self, wanted: int) -> int:
        """Add connections that stand ready where each serves one request."""
        return wanted + (min(wanted, SPARE_LIMIT) if self.fresh else 0)

    def fill(self, wanted: int) -> None:
        """Begin to open connections, a batch at a time, until so many are ready or one fails."""
        while self.opening < OPENING_AT_ONCE and self.ready + self.opening < wanted and not self.refusal:
            self._open()

    def replace(self, wanted: int, now_ns: int) -> None:
        """Open what is missing of so many and their spares; after a failure only every `REOPEN_EVERY_NS`."""
        missing = self.with_spares(wanted) - len(self.connections)
        if missing <= 0 or (self.refusal and now_ns - self._reopened_ns < REOPEN_EVERY_NS):
            return
        self._reopened_ns = now_ns
        self.refusal = ""
        for _ in range(missing):
            self._open()

    def drop_hung(self, now_ns: int) -> None:
        """Give up connections that did not open within the connect deadline; others are tried in their place."""
        if not self.opening:
            return
        for connection in list(self.connections.values()):
            if connection.opened_ns is None and now_ns - connection.connecting_ns > self._connect_ns:
                self.drop(connection)

    def check(self, wanted: int) -> None:
        """Raise ClientError where this machine allows too few connections, ServerError where the server gave none."""
        if self.failure is not None:
            raise ClientError(
                f"{self.ready} of {wanted} connections are open, and {self.failure}.",
                why="The concurrency that was asked for would not be reached.",
                hint="Raise the limit of open files (ulimit -n), or lower the concurrency.",
            )
        if wanted and not self.ready:
            reason = self.refusal or "no answer within the connect deadline"
            hint = _TLS_HINT if self._tls is not None and self.refusal else "Is the server running?"
            raise ServerError(f"No connection to {self._url}: {reason}.", hint=hint)

    def _open(self) -> None:
        try:
            connection = Connection(self._family, self._address, monotonic_ns(), self._tls, self._host)
        except OSError as error:
            if error.errno in OUR_LIMITS:
                self.failure = f"no further connection can be opened here: {error.strerror}"
            self._refused(describe(error))
            return
        self.connections[connection.fd] = connection
        self.poller.register(connection.fd, READABLE | WRITABLE)
        self.opening += 1

    def _refused(self, reason: str) -> None:
        self.refusal = reason
        self._failed(reason)


def resolve(host: str, port: int) -> tuple[int, tuple[object, ...]]:
    """Resolve once, before anything is timed; ServerError where the name has no address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ServerError(
            f"The host name {host!r} cannot be resolved: {reason}.", hint="Check the URL."
        ) from None
    family, _kind, _protocol, _name, address = found[0]
    return family, address


def describe(error: OSError) -> str:
    """Say in words what went wrong while connecting."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return error.strerror or str(error)
