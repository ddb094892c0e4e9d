"""One connection: a non-blocking socket with kernel receive stamps, and TLS in memory where it is asked for."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
from collections.abc import Callable

from nameplate.client.flight import Flight
from nameplate.contract.errors import CallerError

# Linux, x86 and Arm alike (asm-generic/socket.h); Python does not export it.
SO_TIMESTAMPNS = 35
_STAMP = struct.Struct("=qq")
_unpack_stamp = _STAMP.unpack
_ANCILLARY_BYTES = socket.CMSG_SPACE(_STAMP.size) if hasattr(socket, "CMSG_SPACE") else 0
# Large enough that a read of a whole socket buffer is one call, small enough to stay in cache; a read that fills it
# is followed by another.
READ_BYTES = 1 << 16
USER_STAMPED = -1


class Connection:
    """Hold one connection to the server; `flight` is the request that it carries, or None while idle.

    `emptied_ns` is the last moment at which its receive buffer was known to be empty, `ready_pass` the number of the
    last poll that reported it. `opened_ns` minus `connecting_ns` is how long it took to open, TLS included.
    """

    __slots__ = (
        "_incoming",
        "_outgoing",
        "_secure",
        "_unsent",
        "connecting_ns",
        "emptied_ns",
        "fd",
        "flight",
        "handshaking",
        "idle_since_ns",
        "opened_ns",
        "ready_pass",
        "secure",
        "sock",
        "stamped",
        "used",
        "writing",
    )

    def __init__(
        self,
        family: int,
        address: tuple[object, ...],
        now_ns: int,
        tls: ssl.SSLContext | None,
        server_name: str,
    ) -> None:
        self.sock = socket.socket(family, socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0))
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stamped = False
        if sys.platform == "linux":
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
                self.stamped = True
            except OSError:
                pass  # Some sandboxes refuse it; reads are then marked as stamped by us.
        self.fd = self.sock.fileno()
        self.flight: Flight | None = None
        self.connecting_ns = now_ns
        self.opened_ns: int | None = None
        self.idle_since_ns = now_ns
        self.emptied_ns = now_ns
        self.ready_pass = -1
        self.used = False
        self.writing = True
        self.secure = self.handshaking = tls is not None
        self._unsent = memoryview(b"")
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._secure = (
            tls.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
            if tls is not None
            else None
        )
        error = self.sock.connect_ex(address)
        if error not in (0, 115, 36, 11):  # EINPROGRESS on Linux and macOS, EAGAIN
            self.sock.close()
            raise OSError(error, os.strerror(error))

    def __repr__(self) -> str:
        state = (
            "connecting"
            if self.opened_ns is None
            else "idle"
            if self.flight is None
            else f"request {self.flight.index}"
        )
        return f"<Connection fd={self.fd} {state}>"

    # -- opening --------------------------------------------------------------------------------------------------

    def advance_opening(self) -> bool:
        """Go on with connecting and the TLS handshake; True when open. OSError or ssl.SSLError where it fails."""
        error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        if self._secure is None:
            return True
        try:
            data = self.sock.recv(READ_BYTES)
            if not data:
                raise ConnectionResetError("the server closed the connection during the TLS handshake")
            self._incoming.write(data)
        except BlockingIOError:
            pass
        try:
            self._secure.do_handshake()
            self.handshaking = False
        except ssl.SSLWantReadError:
            pass
        self._queue_encrypted()
        self.flush()
        return not self.handshaking

    # -- sending --------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> bool:
        """Send a request; True when all of it is in the kernel's hands, else `flush` goes on with it."""
        if self._secure is None:
            self._unsent = memoryview(data)
        else:
            self._secure.write(data)
            self._queue_encrypted()
        return self.flush()

    def flush(self) -> bool:
        """Send what is left; True when nothing is."""
        while self._unsent:
            try:
                sent = self.sock.send(self._unsent)
            except BlockingIOError:
                self.writing = True
                return False
            self._unsent = self._unsent[sent:]
        self.writing = False
        return True

    def _queue_encrypted(self) -> None:
        data = self._outgoing.read()
        if data:
            self._unsent = memoryview(bytes(self._unsent) + data) if self._unsent else memoryview(data)

    # -- receiving ------------------------------------------------------------------------------------------------

    def receive(self) -> tuple[bytes, int]:
        """Read once: bytes (empty at the peer's close) and the kernel's stamp in wall-clock ns, or USER_STAMPED.

        Raises BlockingIOError when nothing is there and OSError when the connection broke.
        """
        if not self.stamped:
            return self.sock.recv(READ_BYTES), USER_STAMPED
        data, ancillary, _flags, _address = self.sock.recvmsg(READ_BYTES, _ANCILLARY_BYTES)
        if not ancillary:
            return data, USER_STAMPED
        seconds, nanoseconds = _unpack_stamp(ancillary[0][2])
        return data, seconds * 1_000_000_000 + nanoseconds

    def quiet(self) -> bool:
        """Say whether an idle connection is fit to be used: nothing came on it, neither bytes nor a close."""
        try:
            data = self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        # TLS sends session tickets when it likes.
        return bool(data) and self.secure

    def decrypt(self, data: bytes) -> tuple[bytes, bool]:
        """Turn TLS bytes into plain ones; the flag says that the peer ended the TLS session."""
        assert self._secure is not None
        self._incoming.write(data)
        parts = []
        closed = False
        while True:
            try:
                part = self._secure.read(READ_BYTES)
            except ssl.SSLWantReadError:
                break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                closed = True
                break
            if not part:
                closed = True
                break
            parts.append(part)
        self._queue_encrypted()
        if self._unsent:
            try:
                self.flush()
            except OSError:
                pass  # A peer that takes no more may still have answered: the reading side finds out.
        return b"".join(parts), closed

    def close(self, reset: bool = False) -> None:
        """Close; with `reset` the peer is told at once, so that it stops generating."""
        if reset:
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        self.sock.close()


Opener = Callable[[int], Connection]


def tls_context(ca_file: str | None, insecure: bool) -> ssl.SSLContext:
    """Build the TLS context: verified by default, against a file of authorities where one is given.

    CallerError for a file that holds none.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise CallerError(
            f"The file of authorities {ca_file} cannot be used: {error.strerror or error}.",
            hint="Give a PEM file with the certificate that signed the server's.",
        ) from None
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
