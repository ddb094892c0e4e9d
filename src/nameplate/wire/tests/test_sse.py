"""Event streams by the standard's line rules."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.wire import sse
from nameplate.wire.errors import WireError
from nameplate.wire.sse import SseDecoder, SseEvent


def decode(*pieces: bytes, finish: bool = True) -> list[SseEvent]:
    """Feed pieces and return all events."""
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.finish() if finish else events


@pytest.mark.parametrize(
    "stream, expected",
    [
        (b"data: a\n\n", [SseEvent(b"a")]),
        (b"data:a\n\ndata:  b\n\n", [SseEvent(b"a"), SseEvent(b" b")]),
        (b"data: a\ndata: b\n\n", [SseEvent(b"a\nb")]),
        (b"data\n\ndata\ndata\n\n", [SseEvent(b""), SseEvent(b"\n")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [SseEvent(b"a"), SseEvent(b"b"), SseEvent(b"c")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent(b"a")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [SseEvent(b"a")]),
        (b"id: 1\n\n: ping\n\nretry: 5\n\nevent: x\n\n", []),
        (b"event: x\ndata: a\n\ndata: b\n\n", [SseEvent(b"a", "x"), SseEvent(b"b")]),
        (b": one\n: two\nevent: error\n\n", [SseEvent(b"", "error", "one\ntwo")]),
        (b": old\n\nevent: error\n\n", [SseEvent(b"", "error")]),
        (b"error: {}\n\n", [SseEvent(b"", error=b"{}")]),
        (b'{"a": 1}\ndata: b\n\n', [SseEvent(b'{"a": 1}', stray=True), SseEvent(b"b")]),
        (b"nonsense\nDATA: x\n\n", []),
        (
            b"data: a\x0bb\x0cc\xc2\x85\xe2\x80\xa8\x1c\n\n",
            [SseEvent(b"a\x0bb\x0cc\xc2\x85\xe2\x80\xa8\x1c")],
        ),
        (b"data: a", [SseEvent(b"a")]),
        (b"data: a\n", [SseEvent(b"a")]),
        (b"", []),
    ],
)
def test_lines_follow_the_standard_wherever_they_are_cut(stream: bytes, expected: list[SseEvent]) -> None:
    """Each rule gives its events, with the stream whole, cut at each byte, and byte by byte."""
    assert decode(stream) == expected
    for place in range(1, len(stream)):
        assert decode(stream[:place], stream[place:]) == expected
    assert decode(*(stream[place : place + 1] for place in range(len(stream)))) == expected


def test_an_event_is_dispatched_at_the_carriage_return_of_its_blank_line() -> None:
    """A CR ends a line at once: the event does not wait for a line feed that may never come."""
    assert decode(b"data: a\r\r", finish=False) == [SseEvent(b"a")]
    assert decode(b"data: a\r\n\r", b"\ndata: b\n\n", finish=False) == [SseEvent(b"a"), SseEvent(b"b")]


def test_an_event_needs_its_blank_line_until_the_stream_ends() -> None:
    """Without a blank line nothing is dispatched before finish."""
    assert decode(b"data: a\n", finish=False) == []


@pytest.mark.parametrize("build", [lambda n: b"data: " + b"x" * n, lambda n: b"data: x\n" * (n // 2)])
def test_an_event_above_the_limit_fails_after_the_events_before_it(
    build: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit fails the stream, however it is split, and loses no event that was whole before."""
    monkeypatch.setattr(sse, "EVENT_LIMIT_BYTES", 1000)
    assert callable(build)
    stream = b"data: first\n\n" + build(1100) + b"\n\ndata: later\n\n"
    for size in (1, 7, 100, len(stream)):
        events: list[SseEvent] = []
        with pytest.raises(WireError):
            feed_all(SseDecoder(), stream, size, events)
        assert events == [SseEvent(b"first")]


def feed_all(decoder: SseDecoder, stream: bytes, size: int, events: list[SseEvent]) -> None:
    """Feed a stream in pieces of a size and keep the events, those before an error too."""
    for start in range(0, len(stream), size):
        events += decoder.feed(stream[start : start + size])
    events += decoder.finish()


def test_comments_and_names_are_kept_only_in_part() -> None:
    """Endless comments and long names cost a bounded amount of memory and no event."""
    [event] = decode(
        b": " + b"c" * 3000 + b"\n" + b": d\n" * 5000 + b"event: " + b"n" * 9000 + b"\ndata: a\n\n"
    )
    assert len(event.comment) <= sse.COMMENT_LIMIT_BYTES
    assert len(event.name) <= sse.COMMENT_LIMIT_BYTES


_PLAIN = [b"data: {}", b"data:", b"\n", b"\r", b"\r\n", b"\n\n", b": c", b"event: x", b"x"]
_PLAIN_PIECE = st.sampled_from(_PLAIN)
_PIECE = st.sampled_from([*_PLAIN, b"event: error", b"error: x", b"{", b"\xef\xbb\xbf"])


@given(st.lists(_PIECE, max_size=25).map(b"".join), st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=120, deadline=None)
def test_no_split_changes_the_events(stream: bytes, places: list[int]) -> None:
    """Streams made of the grammar's pieces give the same events in every split."""
    edges = [0, *sorted(place for place in places if place < len(stream)), len(stream)]
    pieces = [stream[start:stop] for start, stop in pairwise(edges)]
    assert decode(*pieces) == decode(stream)


def reference(stream: bytes) -> list[bytes]:
    """Return the data of the events by the slowest possible reading of the standard."""
    lines = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]
    events: list[bytes] = []
    data: list[bytes] = []
    for line in lines:
        if not line:
            if data:
                events.append(b"\n".join(data))
            data = []
        elif line == b"data" or line.startswith(b"data:"):
            value = line[5:]
            data.append(value.removeprefix(b" "))
    return events


@given(st.lists(_PLAIN_PIECE, max_size=25).map(b"".join))
@settings(max_examples=120, deadline=None)
def test_data_agrees_with_a_literal_reading_of_the_standard(stream: bytes) -> None:
    """A second, naive implementation finds the same data."""
    assert [event.data for event in decode(stream, finish=False)] == reference(stream)
