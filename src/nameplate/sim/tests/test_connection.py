"""A connection reads requests however they are cut, and is not harmed by what is none."""

import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nameplate.sim.connection import MAX_HEAD_BYTES, MAX_UNSENT_BYTES, Connection, ProtocolError

pytestmark = pytest.mark.live

REQUESTS = (
    b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX-A: B\r\n\r\nhello"
    b"POST /two HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    b"GET /three?q=1 HTTP/1.1\r\nConnection: close\r\n\r\n"
)


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection and the client's end of it."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield Connection(1, ours, 0), theirs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, len(REQUESTS)), max_size=6))
def test_requests_are_the_same_however_they_are_cut(
    pair: tuple[Connection, socket.socket], cuts: list[int]
) -> None:
    """Length, chunks or no body; one read or many."""
    connection = Connection(1, pair[0].sock, 0)
    edges = [0, *sorted(cuts), len(REQUESTS)]
    found = [
        request
        for start, end in pairwise(edges)
        if end > start
        for request in connection.feed(REQUESTS[start:end])
    ]
    assert [(r.method, r.path, r.body, r.keep_alive) for r in found] == [
        ("POST", "/v1/completions", b"hello", True),
        ("POST", "/two", b"abc", True),
        ("GET", "/three?q=1", b"", False),
    ]
    assert found[0].headers == {"host": "x", "content-length": "5", "x-a": "B"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(
    junk=st.lists(st.binary(max_size=200), max_size=5),
    head=st.sampled_from([b"", REQUESTS[:60], REQUESTS[:90]]),
)
def test_junk_is_refused_and_nothing_else(
    pair: tuple[Connection, socket.socket], junk: list[bytes], head: bytes
) -> None:
    """Any bytes either are requests or raise ProtocolError."""
    connection = Connection(1, pair[0].sock, 0)
    try:
        for data in (head, *junk):
            connection.feed(data)
    except ProtocolError:
        pass


def test_an_endless_head_is_refused(pair: tuple[Connection, socket.socket]) -> None:
    """A client cannot make the server collect headers without end."""
    connection = pair[0]
    line = b"X-Filler: " + b"y" * 988 + b"\r\n"
    connection.feed(b"GET / HTTP/1.1\r\n")
    for _ in range(MAX_HEAD_BYTES // len(line) - 1):
        assert connection.feed(line) == []
    with pytest.raises(ProtocolError, match="head"):
        connection.feed(line * 2)


def test_a_client_that_does_not_read_is_given_up(pair: tuple[Connection, socket.socket]) -> None:
    """What cannot be sent is kept in order, up to a bound."""
    connection, theirs = pair
    sent = 0
    while not connection.unsent:
        assert connection.send(bytes([sent % 251]) * 10_000)
        sent += 1
    theirs.settimeout(5)
    received = b""
    while len(received) < sent * 10_000:
        received += theirs.recv(1_000_000)
        assert connection.flush()
    assert received == b"".join(bytes([index % 251]) * 10_000 for index in range(sent))
    assert not connection.unsent
    piece = b"x" * 1_000_000
    assert not all(connection.send(piece) for _ in range(MAX_UNSENT_BYTES // len(piece) + 3))
