"""The live server, over raw sockets and in a process of its own."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nameplate.sim.process import SimProcess, running
from nameplate.sim.tests.client import chat

pytestmark = pytest.mark.live


def request_bytes(body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", extra: str = "") -> bytes:
    """Return a POST as a client writes it."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{extra}Content-Length: {len(data)}\r\n\r\n".encode() + data


def connect(server: SimProcess) -> socket.socket:
    """Open a connection to the server."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def read_until(sock: socket.socket, end: bytes) -> bytes:
    """Read until the bytes end so, or the connection does."""
    data = b""
    while not data.endswith(end):
        piece = sock.recv(65_536)
        if not piece:
            break
        data += piece
    return data


def demo(text: str = "hello", tokens: int = 4, **more: Any) -> dict[str, Any]:
    """Return a chat body for the preset `demo`."""
    return chat(text, tokens, model="demo", **more)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimProcess]:
    """One server for all tests that do not need their own."""
    with running("demo", "--log-events", log=tmp_path_factory.mktemp("sim") / "truth.jsonl") as process:
        yield process


def test_a_connection_is_kept_and_used_again(server: SimProcess) -> None:
    """Two requests one after the other on one connection, streamed and not."""
    with connect(server) as sock:
        sock.sendall(request_bytes(demo()))
        assert read_until(sock, b"0\r\n\r\n").count(b'"content":"') == 5
        sock.sendall(request_bytes(demo(stream=False, stream_options=None)))
        assert b'"completion_tokens":4' in sock.recv(65_536)


def test_a_request_may_arrive_byte_by_byte(server: SimProcess) -> None:
    """However the bytes are cut, the request is read whole."""
    with connect(server) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request_bytes(demo(tokens=1)):
            sock.send(bytes([byte]))
        assert read_until(sock, b"0\r\n\r\n").startswith(b"HTTP/1.1 200 OK")


def test_expect_continue_is_answered(server: SimProcess) -> None:
    """A client that asks before it sends its body is told to go on."""
    head, _, body = request_bytes(demo(tokens=1), extra="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    with connect(server) as sock:
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert read_until(sock, b"0\r\n\r\n").startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "junk", [b"\x00\x01\x02\r\n\r\n", b"GET /" + b"x" * 100_000, b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_what_is_no_http_is_answered_and_closed(server: SimProcess, junk: bytes) -> None:
    """Junk costs its own connection and nothing else."""
    with connect(server) as sock:
        sock.sendall(junk)
        sock.shutdown(socket.SHUT_WR)
        try:
            answer = read_until(sock, b"never")
        except ConnectionResetError:
            answer = b""
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    with connect(server) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(1_000).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_leaves_frees_its_place(server: SimProcess) -> None:
    """The engine stops generating for a closed connection."""
    with connect(server) as sock:
        sock.sendall(request_bytes(demo(tokens=4_000)))
        sock.recv(10)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with connect(server) as sock:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            if b'num_requests_running{engine="0",model_name="demo"} 0.0' in read_until(sock, b"never"):
                return
    raise AssertionError("the request still runs")


def test_many_streams_at_once_are_all_served(server: SimProcess) -> None:
    """Forty connections at once, above the running limit: every stream is complete."""
    socks = [connect(server) for _ in range(40)]
    for index, sock in enumerate(socks):
        sock.sendall(request_bytes(demo(f"request {index}", 8)))
    for sock in socks:
        answer = read_until(sock, b"0\r\n\r\n")
        assert b'"completion_tokens":8' in answer and answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        sock.close()


def test_the_truth_log_says_when_things_happened(tmp_path: Path) -> None:
    """Received before first before last, on the same clock as ours, one line a request, complete after the end."""
    log = tmp_path / "truth.jsonl"
    with running("demo", "--log-events", log=log) as process, connect(process) as sock:
        before_ns = time.monotonic_ns()
        sock.sendall(request_bytes(demo("word " * 400, 6)))
        read_until(sock, b"0\r\n\r\n")
        after_ns = time.monotonic_ns()
        assert process.stop() == 0
    server_line, row = map(json.loads, log.read_text().splitlines())
    assert server_line["preset"] == "demo" and server_line["pid"] == process.pid
    assert before_ns <= row["received_ns"] <= row["first_sent_ns"] <= row["last_sent_ns"]
    # A send may return after the client has read what it sent.
    assert row["received_ns"] <= after_ns and row["last_sent_ns"] <= after_ns + 1_000_000_000
    assert (row["tokens"], row["prompt_tokens"], row["finish"], len(row["events_ns"])) == (
        6,
        430,
        "length",
        6,
    )
    assert row["first_sent_ns"] - row["received_ns"] >= 430 * 67_500


def test_death_ends_the_process_and_all_its_streams(tmp_path: Path) -> None:
    """The fault `die` is a real exit: the stream breaks off, the exit code is not 0, and the log knows why."""
    log = tmp_path / "truth.jsonl"
    with running("demo", "--fault", "die:2", log=log) as process, connect(process) as sock:
        sock.sendall(request_bytes(demo(tokens=9)))
        try:
            answer = read_until(sock, b"0\r\n\r\n")
        except ConnectionResetError:
            answer = b""
        assert b"[DONE]" not in answer
        assert process.process.wait(10) == 70
    assert json.loads(log.read_text().splitlines()[-1])["finish"] == "die"


def test_a_cut_is_a_reset_on_the_wire() -> None:
    """The fault `cut` makes the client's read fail, or end without the stream's end."""
    with running("demo", "--fault", "cut:1") as process, connect(process) as sock:
        sock.sendall(request_bytes(demo(tokens=9)))
        with pytest.raises(ConnectionResetError):
            read_until(sock, b"never")


def test_idle_connections_are_closed() -> None:
    """After the keep-alive time an unused connection ends in order."""
    with running("demo", "--keep-alive", "0.1") as process, connect(process) as sock:
        assert sock.recv(1) == b""


def test_a_server_ends_with_the_one_who_started_it() -> None:
    """When the pipe to the server is closed, as by a parent that was killed, the server ends in order."""
    with running("demo") as process:
        assert process.process.stdin is not None
        process.process.stdin.close()
        assert process.process.wait(10) == 0


def test_a_wrong_command_is_told_why() -> None:
    """What the server refuses to start with reaches the caller."""
    with pytest.raises(RuntimeError, match="unknown fault"), running("demo", "--fault", "nonsense"):
        pass
