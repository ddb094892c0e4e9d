"""How this room reaches a server: one bounded call with a deadline over the whole of it."""

from __future__ import annotations

import http.client
import io
import ipaddress
import queue
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from nameplate import __version__
from nameplate.contract.errors import CallerError
from nameplate.contract.target import Credentials, Target
from nameplate.engines.failures import TransportError, failure

# A vLLM metrics page is 50 KB an engine; a data-parallel deployment of 64 engines stays below this.
LIMIT_BYTES = 8 << 20
_READ_BYTES = 1 << 16
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_SECRET_CHARS = 8  # shorter ones would redact ordinary words


class Reply(Struct, frozen=True):
    """Hold one whole HTTP answer; header names are lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        return self.header("content-type").split(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """Return the first value of a header, or an empty string."""
        return next((value for key, value in self.headers if key == name), "")

    def excerpt(self, limit: int = 200) -> str:
        """Return the beginning of the body as one printable line."""
        text = self.body[: limit * 4].decode("utf-8", "replace")
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= limit else line[: limit - 1] + "…"


class Transport(Protocol):
    """Fetch one answer. `path` is what stands on the request line, the target's base path included."""

    def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float = 10.0,
        limit_bytes: int = LIMIT_BYTES,
    ) -> Reply:
        """Return the answer whatever its status; TransportError where none came whole and in time."""
        ...


class _Deadline:
    """Turn one limit for the whole call into a timeout for each of its blocking steps."""

    def __init__(self, limit_s: float) -> None:
        self._end_s = time.monotonic() + limit_s
        self.limit_s = limit_s

    def left_s(self) -> float:
        left = self._end_s - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Raw(io.RawIOBase):
    """Read a socket under the call's deadline: a server that drips bytes would renew a plain timeout for ever."""

    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.left_s())
        return self._sock.recv_into(buffer)


class _Socket:
    """Offer http.client the two operations it needs, each under the deadline."""

    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, _mode: str = "rb") -> io.BufferedReader:
        return io.BufferedReader(_Raw(self._sock, self._deadline), _READ_BYTES)

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(self._deadline.left_s())
        self._sock.sendall(data)

    def close(self) -> None:
        """Do nothing: http.client closes before the body is read, and the caller closes the real one."""


class HttpTransport:
    """Fetch over a new connection a call; proxy environment variables are ignored.

    TLS is verified unless the target says `insecure`; `ca_file` replaces the system's authorities.
    """

    def __init__(self, target: Target, credentials: Credentials | None = None) -> None:
        self._target = target
        self._headers = credentials.headers if credentials else ()
        self._secrets = _secrets(self._headers)
        self._tls = _tls_context(target) if target.scheme == "https" else None

    def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float = 10.0,
        limit_bytes: int = LIMIT_BYTES,
    ) -> Reply:
        """Return the answer; TransportError by kind; CallerError where a header cannot be sent."""
        deadline = _Deadline(timeout_s)
        sock: socket.socket | None = None
        try:
            sock = self._connect(deadline)
            return self._exchange(_Socket(sock, deadline), method, path, body, limit_bytes)
        except TransportError:
            raise
        except TimeoutError:
            raise failure("timeout", self._target, f"{method} {path}, {timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise failure("tls", self._target, _tls_reason(error)) from None
        except ConnectionRefusedError:
            raise failure("refused", self._target) from None
        except (ConnectionError, http.client.IncompleteRead) as error:
            raise failure("reset", self._target, type(error).__name__) from None
        except http.client.HTTPException as error:
            raise failure("not_http", self._target, type(error).__name__) from None
        except OSError as error:
            raise failure("unreachable", self._target, error.strerror or type(error).__name__) from None
        finally:
            if sock is not None:
                sock.close()

    def _connect(self, deadline: _Deadline) -> socket.socket:
        last: OSError | None = None
        for family, kind, protocol, _, address in self._resolve(deadline):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(deadline.left_s())
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is None:
                    return sock
                sock.settimeout(deadline.left_s())
                return self._tls.wrap_socket(sock, server_hostname=self._target.host)
            except ssl.SSLError:
                sock.close()
                raise
            except OSError as error:
                sock.close()
                last = error
        raise last or failure("dns", self._target, "no address")

    def _resolve(self, deadline: _Deadline) -> list[Any]:
        host, port = self._target.host, self._target.port
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            pass
        else:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # The resolver has no timeout of its own, so it waits in a thread that may be left behind.
        answers: queue.SimpleQueue[list[Any] | OSError | UnicodeError] = queue.SimpleQueue()
        threading.Thread(target=_look_up, args=(host, port, answers.put), daemon=True).start()
        try:
            answer = answers.get(timeout=deadline.left_s())
        except queue.Empty:
            raise failure("dns", self._target, "the resolver did not answer") from None
        if isinstance(answer, Exception):
            raise failure("dns", self._target, getattr(answer, "strerror", None) or str(answer)) from None
        return answer

    def _exchange(self, sock: _Socket, method: str, path: str, body: bytes | None, limit: int) -> Reply:
        connection = http.client.HTTPConnection(self._target.host, self._target.port)
        connection.sock = sock  # of which only makefile, sendall and close are used
        headers = {
            "host": self._target.authority,
            "user-agent": f"nameplate/{__version__}",
            "accept": "*/*",
            "accept-encoding": "identity",
            "connection": "close",
        }
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (*headers.items(), *self._extra(headers)):
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
        except (ValueError, UnicodeError):
            raise CallerError(
                "A request header or path holds characters that HTTP cannot carry.",
                hint="Check --header values and the key: a line end at the end of a key file is a usual cause.",
            ) from None
        connection.endheaders(body)
        response = connection.getresponse()
        reply = _reply(response, limit, lambda detail: failure("too_large", self._target, detail))
        body = reply.body
        for secret in self._secrets:
            body = body.replace(secret, b"redacted")
        return Reply(reply.status, reply.headers, body)

    def _extra(self, own: dict[str, str]) -> tuple[tuple[str, str], ...]:
        reserved = {*own, "content-length", "content-type"} - {"user-agent", "accept"}
        return tuple((name, value) for name, value in self._headers if name.lower() not in reserved)


def _reply(
    response: http.client.HTTPResponse, limit: int, too_large: Callable[[str], TransportError]
) -> Reply:
    parts: list[bytes] = []
    size = 0
    while part := response.read(_READ_BYTES):
        size += len(part)
        if size > limit:
            raise too_large(f"{limit} bytes were allowed")
        parts.append(part)
    body = b"".join(parts)
    # Python's client returns a short body without complaint when it is read in parts.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    if body[:2] == b"\x1f\x8b":
        body = _gunzip(body, limit, too_large)
    headers = tuple((name.lower(), value) for name, value in response.getheaders())
    return Reply(response.status, headers, body)


def _gunzip(body: bytes, limit: int, too_large: Callable[[str], TransportError]) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(body, limit)
    except zlib.error:
        return body
    if unpacker.unconsumed_tail:
        raise too_large(f"{limit} bytes were allowed after unpacking")
    return text


def _secrets(headers: tuple[tuple[str, str], ...]) -> tuple[bytes, ...]:
    """Return what must not come back in an error message that is kept: servers do echo the key they refuse."""
    found = (value.split()[-1] for name, value in headers if _SECRET_NAME.search(name) and value.split())
    return tuple(secret.encode() for secret in found if len(secret) >= _SECRET_CHARS)


def _look_up(host: str, port: int, put: Callable[[Any], None]) -> None:
    try:
        put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        put(error)


def _tls_context(target: Target) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=target.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise CallerError(
            f"The authority file {target.ca_file} cannot be read: {error.strerror or error}.",
            hint="Give a PEM file with --ca-file.",
        ) from None
    if target.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or str(error)).replace("_", " ").lower()
