"""HTTP/1.1 framing: every way in which a response can begin, go on and end."""

import gc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.wire.errors import WireError
from nameplate.wire.http import HEAD_LIMIT_BYTES, OVERHEAD_LIMIT_BYTES, ResponseReader

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-Trailer: t\r\n\r\n"
)
SIZED = b"HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nContent-Length: 11\r\n\r\nhello world"
CLOSED = b"HTTP/1.0 200 OK\r\nContent-Encoding: GZIP\r\n\r\nhello world"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"


def read(*pieces: bytes) -> tuple[ResponseReader, bytes]:
    """Feed pieces and return the reader and the whole body."""
    reader = ResponseReader()
    return reader, b"".join(reader.feed(piece) for piece in pieces)


def cut(data: bytes, *places: int) -> list[bytes]:
    """Cut bytes at places."""
    edges = [0, *places, len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


@pytest.mark.parametrize("message", [CHUNKED, SIZED, CLOSED, INTERIM + CHUNKED, INTERIM + SIZED])
def test_every_split_gives_the_same_message(message: bytes) -> None:
    """Any single cut, and single bytes, give the same status, headers, body and end."""
    whole, body = read(message)
    assert body == b"hello world"
    pieces = [cut(message, place) for place in range(1, len(message))]
    pieces.append([message[place : place + 1] for place in range(len(message))])
    for split in pieces:
        reader, again = read(*split)
        assert again == body
        assert (reader.status, reader.headers, reader.complete) == (
            whole.status,
            whole.headers,
            whole.complete,
        )
        assert (reader.keep_alive, reader.excess) == (whole.keep_alive, False)


def test_chunked_message_is_complete_with_its_last_chunk() -> None:
    """Chunked coding ends with the zero chunk; its trailers are no headers."""
    reader, _ = read(CHUNKED)
    assert reader.complete
    assert reader.keep_alive
    assert reader.content_type == "text/event-stream"
    assert [name for name, _ in reader.headers] == ["content-type", "transfer-encoding"]
    assert reader.eof()


def test_close_completes_only_what_the_close_delimits() -> None:
    """A close ends a message without a length, and cuts one that has a length or chunks."""
    reader, _ = read(CLOSED)
    assert reader.content_encoding == "gzip"
    assert (reader.complete, reader.eof(), reader.complete) == (False, True, True)
    assert not reader.keep_alive
    assert not read(SIZED[:-1])[0].eof()
    assert not read(CHUNKED[:-1])[0].eof()
    assert not read(CHUNKED[:40])[0].eof()
    assert not read()[0].eof()


@pytest.mark.parametrize("rest", [b"X", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"\r\nX"])
@pytest.mark.parametrize(
    "message", [CHUNKED, SIZED, SIZED.replace(b"\r\n\r", b"\r\nConnection: close\r\n\r")]
)
def test_bytes_after_the_end_are_excess_and_no_body(message: bytes, rest: bytes) -> None:
    """What follows the message, in the same read or later, forbids the connection's reuse and is no body."""
    for pieces in ([message + rest], [message, rest]):
        reader, body = read(*pieces)
        assert (body, reader.complete, reader.excess, reader.keep_alive) == (
            b"hello world",
            True,
            True,
            False,
        )


def test_a_stray_line_end_after_the_message_is_not_excess() -> None:
    """An extra CRLF after the body is tolerated."""
    for pieces in ([SIZED + b"\r\n"], [SIZED, b"\r\n"]):
        assert not read(*pieces)[0].excess


@pytest.mark.parametrize(
    "head, alive",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
)
def test_reuse_follows_version_and_connection_header(head: bytes, alive: bool) -> None:
    """A connection lives on as the version and the Connection header say."""
    reader, _ = read(head)
    assert reader.complete
    assert reader.keep_alive is alive


def test_harmless_deviations_are_read() -> None:
    """Bare line feeds in the head, a missing reason, and a length beside chunks are read."""
    assert read(b"HTTP/1.1 200\nContent-Length: 2\n\nhi")[1] == b"hi"
    both = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1)
    reader, body = read(both)
    assert (body, reader.complete) == (b"hello world", True)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nxx",
        b"\x15\x03\x01\x00\x02\x02\x46",
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    """A head that is none raises WireError."""
    with pytest.raises(WireError):
        read(data)


def test_body_bytes_before_a_broken_chunk_count() -> None:
    """The error carries the body bytes of its own read."""
    head, _, rest = CHUNKED.partition(b"\r\n\r\n")
    for start in (b"", head + b"\r\n\r\n"):
        reader = ResponseReader()
        if not start:
            reader.feed(head + b"\r\n\r\n")
        with pytest.raises(WireError) as caught:
            reader.feed(start + rest[:10] + b"zz\r\n")
        assert caught.value.body == b"hello"
        assert not reader.complete


@pytest.mark.parametrize(
    "start, endless, limit",
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"a" * 4096, HEAD_LIMIT_BYTES),
        (b"HTTP/1.1 200 OK\r\n", b"X: a\r\n" * 1000, HEAD_LIMIT_BYTES),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100, HEAD_LIMIT_BYTES),
        (CHUNKED[: CHUNKED.index(b"X-Tr")] + b"X: ", b"a" * 4096, OVERHEAD_LIMIT_BYTES),
        (CHUNKED[: CHUNKED.index(b"X-Tr")], b"X: a\r\n" * 1000, OVERHEAD_LIMIT_BYTES),
        (CHUNKED[: CHUNKED.index(b"5\r\n")] + b"5;a=", b"a" * 4096, OVERHEAD_LIMIT_BYTES),
    ],
)
def test_endless_framing_is_bounded(start: bytes, endless: bytes, limit: int) -> None:
    """Headers, interim responses, trailers and extensions without an end raise WireError near their limit."""
    reader = ResponseReader()
    reader.feed(start)
    endless_reads = 2 * limit // len(endless) + 2
    with pytest.raises(WireError):
        [reader.feed(endless) for _ in range(endless_reads)]


@given(
    st.lists(st.binary(max_size=100), max_size=5), st.sampled_from([b"", CHUNKED[:100], SIZED[:60], CLOSED])
)
@settings(max_examples=100, deadline=None)
def test_random_bytes_raise_nothing_else(pieces: list[bytes], start: bytes) -> None:
    """Whatever comes, only WireError is raised."""
    reader = ResponseReader()
    try:
        reader.feed(start)
        for piece in pieces:
            reader.feed(piece)
    except WireError:
        pass
    reader.eof()
    assert reader.keep_alive in (True, False)


def test_readers_leave_nothing_for_the_garbage_collector() -> None:
    """A reader, whole, cut short or broken, is no part of a reference cycle."""
    gc.collect()
    gc.disable()
    try:
        for number in range(1000):
            message = [CHUNKED, SIZED[:-3], CLOSED, CHUNKED[:60] + b"\0", CHUNKED + b"X", SIZED + SIZED][
                number % 6
            ]
            reader = ResponseReader()
            try:
                reader.feed(message)
            except WireError:
                continue
        del reader
        assert gc.collect() == 0
    finally:
        gc.enable()
