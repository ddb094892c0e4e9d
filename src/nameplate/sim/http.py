"""HTTP/1.1 as the simulated server speaks it: parsed requests, framed responses."""

from http import HTTPStatus
from typing import Literal

import msgspec

from nameplate import __version__

End = Literal["more", "done", "close", "reset", "exit"]

_SERVER = f"nameplate-sim/{__version__}"


class HttpRequest(msgspec.Struct, frozen=True):
    """Hold one complete request; header names are lower case."""

    method: str
    path: str
    headers: dict[str, str] = {}
    body: bytes = b""
    keep_alive: bool = True


class Output(msgspec.Struct, gc=False):
    """Tell the transport to send `data` on a connection at `t_ns`, and what then.

    `end`: "more" follows; the response is "done"; done and "close"; "reset" the connection; "exit" the process.
    `number` is the generation request it belongs to (-1: none), `tokens` how many output tokens it carries.
    """

    connection: int
    t_ns: int
    data: bytes
    end: End
    number: int = -1
    tokens: int = 0


def _head(status: int, headers: tuple[tuple[str, str], ...], keep_alive: bool) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"server: {_SERVER}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if not keep_alive:
        lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def response(
    status: int,
    body: bytes,
    content_type: str = "application/json",
    *,
    headers: tuple[tuple[str, str], ...] = (),
    keep_alive: bool = True,
) -> bytes:
    """Return a whole response with its length."""
    fixed = (("content-length", str(len(body))), ("content-type", content_type), *headers)
    return _head(status, fixed, keep_alive) + body


def stream_head(*, keep_alive: bool = True) -> bytes:
    """Return the head of a chunked event stream."""
    headers = (("content-type", "text/event-stream; charset=utf-8"), ("transfer-encoding", "chunked"))
    return _head(200, headers, keep_alive)


def chunk(data: bytes) -> bytes:
    """Frame one piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def error_body(message: str, kind: str, param: str | None, code: int) -> bytes:
    """Return vLLM's error object."""
    return msgspec.json.encode({"error": {"message": message, "type": kind, "param": param, "code": code}})
