"""Bodies of any kind: bounded memory, no exception, and the details that a row does not show."""

import gzip
import json
import tracemalloc
import zlib
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.wire import body as body_module
from nameplate.wire.body import BodyDecoder
from nameplate.wire.events import Channel, Done, Event, Finish, Output, StreamError, Usage
from nameplate.wire.tests.streams import DONE, SCRIPTS, Script, chunk, line, say

SSE = "text/event-stream"


def decode(
    body: bytes, content_type: str = SSE, coding: str = "", size: int = 1 << 30
) -> tuple[list[Event], BodyDecoder]:
    """Decode a body in pieces of a size."""
    decoder = BodyDecoder(content_type, coding, "chat")
    events: list[Event] = []
    for start in range(0, len(body), size):
        events += decoder.feed(body[start : start + size])
    return events + decoder.finish(), decoder


def test_events_of_one_chunk_come_in_order() -> None:
    """Outputs come first, then the finish, the usage and the error; further outputs are joined."""
    delta = {"reasoning": "r", "content": "c", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    document = chunk(
        delta, "stop", usage={"prompt_tokens": 1, "completion_tokens": 4}, error={"message": "e"}
    )
    assert decode(line(document))[0] == [
        Output(Channel.reasoning, "r", 4, False),
        Output(Channel.content, "c", 0, True),
        Output(Channel.tool_call, "f{}", 0, True),
        Finish("stop"),
        Usage(1, 4, None, None),
        StreamError("e"),
    ]


@pytest.mark.parametrize(
    "usages, tokens",
    [
        ([1, 3, 4], [1, 2, 1]),
        ([None, 2, 3], [None, None, None]),
        ([2, None, 5], [2, None, 3]),
        ([3, 2, 4], [3, 0, 1]),
        ([None, None, 9], [None, None, None]),
    ],
)
def test_tokens_are_the_rise_of_a_count_that_was_there_from_the_first(
    usages: list[int | None], tokens: list[int | None]
) -> None:
    """A count is a running one only if the first output carries it; a fall is no token."""
    body = b"".join(say("x", usage=None if n is None else {"completion_tokens": n}) for n in usages)
    assert [event.tokens for event in decode(body)[0] if isinstance(event, Output)] == tokens


def test_a_message_inside_a_stream_is_output_only_if_nothing_was_streamed() -> None:
    """The whole message that some servers add at the end is not counted again."""
    whole = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}]
    }
    assert decode(line(whole))[0] == [Output(Channel.content, "ab"), Finish("stop")]
    assert decode(say("a") + line(whole))[0] == [Output(Channel.content, "a"), Finish("stop")]


@pytest.mark.parametrize(
    "document, message, kind, code",
    [
        ({"error": {"message": "m", "type": "t", "code": 500}}, "m", "t", "500"),
        ({"error": "m", "error_type": "overloaded"}, "m", "overloaded", ""),
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "code": 400},
            "m",
            "BadRequestError",
            "400",
        ),
        ({"detail": "m"}, "m", "", ""),
        ({"detail": [{"loc": ["body"], "msg": "m", "type": "missing"}]}, "m", "", ""),
        ({"error": {"error": {"message": "m", "code": "x"}}}, "m", "", "x"),
        ([{"error": {"message": "m", "status": "S"}}], "m", "S", ""),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "m"}},
            "m",
            "overloaded_error",
            "",
        ),
        ({"errors": [{"message": "m"}, {"message": "n"}]}, "m; n", "", ""),
        ({"error": {"metadata": {"raw": 1}}}, '{"error":{"metadata":{"raw":1}}}', "", ""),
        ({"error": True}, '{"error":true}', "", ""),
        ({"message": "m", "status_code": 503}, "m", "", "503"),
    ],
)
def test_errors_are_read_in_every_vendors_shape(document: Any, message: str, kind: str, code: str) -> None:
    """An error document gives its message, kind and code, as a body and inside a stream."""
    expected = [StreamError(message, kind, code)]
    assert decode(json.dumps(document).encode(), "application/json")[0] == expected
    assert decode(line(document))[0] == expected


@pytest.mark.parametrize(
    "document",
    [
        {"type": "ping"},
        {"error": None, "choices": []},
        {"message": "queued", "type": "status"},
        {"error": ""},
        None,
        {},
    ],
)
def test_documents_without_meaning_have_no_events(document: Any) -> None:
    """Pings, nulls, empty errors and status messages are neither output nor errors."""
    events, decoder = decode(line(document) + DONE)
    assert (events, decoder.malformed) == ([Done()], None)


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 5}, {"content": {"x": 1}}, {"content": [None, 3, {"type": "image"}]}, {"tool_calls": "x"},
        {"tool_calls": [None, {"function": None}, {"function": {"name": 3}}]}, {"tool_calls": []},
        {"function_call": []}, {"content": None, "reasoning": None}, [], "text", 7,
    ],
)  # fmt: skip
def test_odd_shapes_of_a_delta_are_no_output_and_no_fault(delta: Any) -> None:
    """Values of a wrong type are skipped."""
    events, decoder = decode(line(chunk(delta)))
    assert (events, decoder.malformed) == ([], None)


def test_tool_arguments_may_be_an_object() -> None:
    """Arguments that come parsed are text again."""
    delta = {"tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2]}}}]}
    assert decode(line(chunk(delta)))[0] == [Output(Channel.tool_call, 'f{"x":[1,2]}')]


@pytest.mark.parametrize("open_, close", [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [500, 950, 5000, 200_000])
@pytest.mark.parametrize(
    "shape",
    [
        '{"x":%s}',
        '{"error":%s}',
        '{"choices":[{"delta":{"content":%s}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":%s}}]}}]}',
    ],
)
def test_deep_nesting_is_no_crash(open_: str, close: str, depth: int, shape: str) -> None:
    """JSON nested beyond all reason ends in events or in a reason, never in an exception."""
    data = (shape % (open_ * depth + "1" + close * depth)).encode()
    for content_type, body in ((SSE, b"data: " + data + b"\n\n"), ("application/json", data), (SSE, data)):
        decode(body, content_type)


@pytest.mark.parametrize(
    "number", ["1e400", "-1", "9" * 5000, "9" * 25, "true", '"many"', "NaN", "1.5", "[]", "{}"]
)
def test_counts_that_are_none_are_absent_and_flagged(number: str) -> None:
    """Infinite, negative, huge, boolean and textual counts are absent, not zero."""
    body = f'data: {{"choices":[],"usage":{{"prompt_tokens":7,"completion_tokens":{number}}}}}\n\n'.encode()
    events, decoder = decode(body)
    assert events == [Usage(7, None, None, None)]
    assert decoder.warnings == {"bad_usage"}


def peak_bytes(
    pieces: int, piece: bytes, content_type: str, start: bytes = b"", coding: str = ""
) -> tuple[int, BodyDecoder]:
    """Return the peak of traced memory while one piece is fed again and again."""
    decoder = BodyDecoder(content_type, coding, "chat")
    tracemalloc.start()
    try:
        decoder.feed(start)
        for _ in range(pieces):
            decoder.feed(piece)
        decoder.finish()
        return tracemalloc.get_traced_memory()[1], decoder
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content_type, start, piece",
    [
        (SSE, b"data: {", b"x" * 8192),
        (SSE, b"data: x\n", b"data: xxxxxxxx\n" * 500),
        (SSE, b"", (b": " + b"p" * 1000 + b"\n") * 8),
        (SSE, b"", (b"event: " + b"e" * 1000 + b"\n") * 8),
        (SSE, b"", b"\n" * 8192),
        ("application/json", b'{"choices": "', b"x" * 8192),
        ("text/html", b"<", b"x" * 8192),
        ("text/plain", b"", b"x" * 8192),
        ("", b"", b" " * 8192),
        (SSE, gzip.compress(b"")[:10], b"\0" * 8192),
    ],
)  # fmt: skip
def test_memory_is_bounded_whatever_comes(
    content_type: str, start: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endless lines, events, comments, blanks, documents and pages keep memory near the limits."""
    monkeypatch.setattr("nameplate.wire.sse.EVENT_LIMIT_BYTES", 1 << 16)
    monkeypatch.setattr(body_module, "DOCUMENT_LIMIT_BYTES", 1 << 16)
    peak, _ = peak_bytes(300, piece, content_type, start)
    assert peak < 1 << 20


def test_a_compression_bomb_is_refused_in_bounded_memory() -> None:
    """A body that inflates a thousand times is given up with a reason."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(64)) + squeeze.flush()
    peak, decoder = peak_bytes(1, bomb, SSE)
    assert decoder.malformed is not None
    assert "inflates" in decoder.malformed
    assert peak < 16 << 20


@pytest.mark.parametrize(
    "bits, coding", [(31, "gzip"), (31, ""), (31, "x-gzip"), (15, "deflate"), (-15, "deflate")]
)
@pytest.mark.parametrize("size", [1, 3, 1 << 30])
def test_compressed_streams_are_read_and_flagged(bits: int, coding: str, size: int) -> None:
    """gzip, labelled or not, and both kinds of deflate are decoded, across members and reads."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, bits)
    body = (
        squeeze.compress(say("a"))
        + squeeze.flush(zlib.Z_SYNC_FLUSH)
        + squeeze.compress(say("b"))
        + squeeze.flush()
    )
    if bits == 31:
        body += gzip.compress(DONE)
    events, decoder = decode(body, SSE, coding, size)
    texts = [event.text for event in events if isinstance(event, Output)]
    assert (texts, decoder.compressed, decoder.malformed) == (["a", "b"], True, None)
    assert isinstance(events[-1], Done) is (bits == 31)


def test_a_large_compressed_event_is_whole() -> None:
    """Output that waits inside the decompressor is not forgotten."""
    text = "abc" * 300_000
    events, _ = decode(gzip.compress(say(text)))
    assert events == [Output(Channel.content, text)]


def test_a_damaged_compressed_body_keeps_what_came_before() -> None:
    """What was decoded before the damage counts, in one read or many."""
    whole = gzip.compress(say("a") * 3 + DONE)
    broken = whole[:-8] + b"\0\0\0\0" + whole[-4:]
    for size in (1, 5, 1 << 30):
        events, decoder = decode(broken, size=size)
        assert len(events) == 4
        assert decoder.malformed is not None
        assert "damaged" in decoder.malformed


_STARTS = st.sampled_from([b"", b"\x1f\x8b\x08\0", b"data: ", b'{"choices"'])
_TYPES = st.sampled_from([SSE, "", "application/json", "text/html"])
_CODINGS = st.sampled_from(["", "gzip", "deflate", "br"])


@given(st.lists(st.binary(max_size=300), max_size=5), _TYPES, _CODINGS, _STARTS)
@settings(max_examples=100, deadline=None)
def test_random_bytes_raise_nothing(
    pieces: list[bytes], content_type: str, coding: str, start: bytes
) -> None:
    """Whatever the bytes, decoding ends with events and perhaps a reason."""
    decoder = BodyDecoder(content_type, coding, "completions")
    for piece in (start, *pieces):
        decoder.feed(piece)
    decoder.finish()


# Values of every type that JSON has, and some that it has not.
_VALUES: list[Any] = [None, True, 0, -1, 2**70, 1.5, float("inf"), float("nan"), "", "x", "\ud83d", [], [None], [[1]],
                      {}, {"text": 1}, {"type": "text"}, {"error": {}}, [{"message": "x"}]]  # fmt: skip


@given(st.sampled_from(SCRIPTS), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_mutated_json_raises_nothing(script: Script, dice: Random) -> None:
    """Known streams whose JSON values are exchanged for any others raise nothing."""
    mutant = bytearray()
    for row in script.body.splitlines(keepends=True):
        try:
            document = json.loads(row.removeprefix(b"data: "))
        except ValueError:
            mutant += row
            continue
        text = json.dumps(exchange(document, dice))
        mutant += f"data: {text}\n".encode()
    decode(bytes(mutant), script.content_type, script.content_encoding)


def exchange(document: Any, dice: Random) -> Any:
    """Return a document with one value, somewhere, exchanged."""
    if isinstance(document, dict | list) and document and dice.random() < 0.85:
        key = dice.choice(list(document) if isinstance(document, dict) else range(len(document)))
        document[key] = exchange(document[key], dice)
        return document
    return dice.choice(_VALUES)
