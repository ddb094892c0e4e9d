"""The transport over real loopback sockets, and the watcher in its process."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from nameplate.contract.errors import CallerError
from nameplate.contract.target import Credentials, Target
from nameplate.engines.clock import SystemClock
from nameplate.engines.detect import adapter_named
from nameplate.engines.failures import TransportError
from nameplate.engines.state import ServerSample
from nameplate.engines.transport import HttpTransport
from nameplate.engines.watch import Order, Watcher

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Y: z\r\n\r\nhi"
Serve = Callable[[socket.socket, bytes, threading.Event], None]


def sends(*parts: bytes) -> Serve:
    def serve(sock: socket.socket, _: bytes, __: threading.Event) -> None:
        for part in parts:
            sock.sendall(part)

    return serve


def drips(sock: socket.socket, _: bytes, stop: threading.Event) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not stop.wait(0.02):
        sock.sendall(b".")


def drips_headers(sock: socket.socket, _: bytes, stop: threading.Event) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not stop.wait(0.02):
        sock.sendall(b".")


def hangs(_: socket.socket, __: bytes, stop: threading.Event) -> None:
    stop.wait(10)


def resets(sock: socket.socket, _: bytes, __: threading.Event) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def echoes(sock: socket.socket, request: bytes, _: threading.Event) -> None:
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(request), request))


@contextmanager
def server(serve: Serve, host: str = "127.0.0.1") -> Iterator[Target]:
    """Serve each connection with one behaviour until the block ends."""
    stop = threading.Event()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        port = listener.getsockname()[1]

        def run() -> None:
            while not stop.is_set():
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                with sock:
                    try:
                        serve(sock, sock.recv(65536), stop)
                    except OSError:
                        pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield Target("http", host, port)
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def fetch(target: Target, timeout_s: float = 5.0, limit_bytes: int = 1 << 20) -> bytes:
    return HttpTransport(target).fetch("GET", "/x", timeout_s=timeout_s, limit_bytes=limit_bytes).body


@pytest.mark.live
def test_an_answer_comes_whole_with_lower_case_headers() -> None:
    """Status, headers and body of a plain answer, over IPv4 and IPv6."""
    for host in ("127.0.0.1", "::1"):
        with server(sends(OK), host) as target:
            reply = HttpTransport(target).fetch("GET", "/x")
            assert (reply.status, reply.body, reply.header("x-y")) == (200, b"hi", "z")


@pytest.mark.live
@pytest.mark.parametrize(
    ("serve", "kind"),
    [
        (drips, "timeout"),
        (drips_headers, "timeout"),
        (hangs, "timeout"),
        (resets, "reset"),
        (sends(), "reset"),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), "reset"),
        (sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), "reset"),
        (sends(b"SSH-2.0-OpenSSH\r\n"), "not_http"),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n", b"x" * 2_000_000), "too_large"),
        (sends(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"), "not_http"),
    ],
)
def test_a_hostile_server_costs_no_more_than_the_deadline(serve: Serve, kind: str) -> None:
    """Dripping, hanging, resetting, lying about lengths: each ends in time under its own name."""
    with server(serve) as target:
        start_s = time.monotonic()
        with pytest.raises(TransportError) as caught:
            fetch(target, timeout_s=0.4 if kind == "timeout" else 5.0)
        assert caught.value.kind == kind, caught.value
        assert time.monotonic() - start_s < 5.0


@pytest.mark.live
def test_a_closed_port_is_refused_and_tls_to_a_plain_server_is_named() -> None:
    """Two common mistakes have two kinds."""
    with server(sends(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")) as target:
        with pytest.raises(TransportError) as caught:
            fetch(structs.replace(target, scheme="https"))
        assert caught.value.kind == "tls"
    with pytest.raises(TransportError) as caught:
        fetch(target)
    assert caught.value.kind == "refused"


@pytest.mark.live
def test_compressed_pages_are_unpacked_within_the_limit() -> None:
    """Some proxies compress unasked; a bomb is too large."""
    for size, limit in ((1000, 10_000), (5_000_000, 100_000)):
        body = gzip.compress(b"a" * size)
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
        with server(sends(head + body)) as target:
            if size < limit:
                assert fetch(target, limit_bytes=limit) == b"a" * size
            else:
                with pytest.raises(TransportError, match="unpacking"):
                    fetch(target, limit_bytes=limit)


@pytest.mark.live
def test_extra_headers_are_sent_and_the_environments_proxy_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key reaches the server; framing headers stay ours."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    headers = (("Authorization", "Bearer k"), ("Content-Length", "99"), ("Host", "evil"))
    with server(echoes) as target:
        reply = HttpTransport(target, Credentials(headers)).fetch("POST", "/a?b", b'{"c":1}')
        assert reply.body.startswith(b"POST /a?b HTTP/1.1\r\n")
        assert b"Authorization: Bearer k" in reply.body
        assert reply.body.lower().count(b"content-length: 7\r\n") == 1 and b"evil" not in reply.body


@pytest.mark.live
def test_a_key_that_the_server_echoes_does_not_come_back() -> None:
    """Error messages are kept with the evidence, and some servers quote the key in them."""
    with server(echoes) as target:
        secret = Credentials((("Authorization", "Bearer topsecretkey"), ("X-Note", "plainwords")))
        body = HttpTransport(target, secret).fetch("GET", "/").body
        assert b"topsecretkey" not in body and b"Bearer redacted" in body and b"plainwords" in body


def test_a_key_with_a_line_end_is_the_callers_mistake() -> None:
    """It is refused without being shown."""
    with server(echoes) as target, pytest.raises(CallerError) as caught:
        HttpTransport(target, Credentials((("Authorization", "Bearer topsecret\nx"),))).fetch("GET", "/")
    assert "topsecret" not in str(caught.value)


@pytest.mark.live
def test_the_watcher_writes_samples_until_it_is_stopped(tmp_path: Path) -> None:
    """Lines are whole and on disk while it runs; a failed scrape is a line too; its secrets are nowhere."""
    page = b"vllm:num_requests_running 3\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page)
    file = tmp_path / "server.jsonl"
    with server(sends(head + page)) as target:
        adapter = adapter_named("vllm", HttpTransport(target), target, SystemClock(), "/metrics")
        watcher = Watcher(adapter, Credentials((("Authorization", "Bearer topsecret"),)), file, 0.05)
        watcher.start()
        wait_for(lambda: file.exists() and file.read_bytes().count(b"\n") >= 2)
    wait_for(lambda: b"refused" in file.read_bytes())
    assert [watcher.stop(), watcher.stop()] == [0, None]
    data = file.read_bytes()
    rows = [msgspec.json.decode(line, type=ServerSample) for line in data.splitlines()]
    assert data.endswith(b"\n") and b"topsecret" not in data
    assert rows[0].running == 3 and rows[0].error is None
    assert rows[-1].running is None and rows[-1].error
    assert all(one.t_ns < two.t_ns for one, two in pairwise(rows))


def wait_for(true: Callable[[], bool], limit_s: float = 10.0) -> None:
    end_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end_s, "nothing happened in time"
        threading.Event().wait(0.02)


def test_an_order_does_not_show_its_headers() -> None:
    """It holds keys, so its readable form has none."""
    order = Order(Target("http", "h", 1), (("Authorization", "topsecret"),), "vllm")
    assert "topsecret" not in repr(order)
