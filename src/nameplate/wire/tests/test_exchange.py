"""The whole path: HTTP bytes in any split, through the reader, to the row."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.wire.errors import WireError
from nameplate.wire.http import ResponseReader
from nameplate.wire.outcome import Ending
from nameplate.wire.tally import Tally
from nameplate.wire.tests.streams import DONE, SCRIPTS, Script, line, say
from nameplate.wire.tests.test_tally import summary, tally_of


def response(script: Script, framing: str, chunk_bytes: int = 37) -> bytes:
    """Return a script as an HTTP response, chunked, sized or close-delimited."""
    head = f"HTTP/1.1 {script.status} X\r\nContent-Type: {script.content_type}\r\n"
    if script.content_encoding:
        head += f"Content-Encoding: {script.content_encoding}\r\n"
    body = script.body
    if framing == "sized":
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    if framing == "close":
        return f"{head}\r\n".encode() + body
    pieces = [body[start : start + chunk_bytes] for start in range(0, len(body), chunk_bytes)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"


def exchange(wire: bytes, cuts: tuple[int, ...] = (), script: Script = SCRIPTS[0]) -> Tally:
    """Read a response as the client and the verification do, and close it at the end of its bytes."""
    reader = ResponseReader()
    tally = Tally(script.api, streaming=True, keep_gaps=True)
    told = False
    start = 0
    for stop in (*cuts, len(wire)):
        piece, start = wire[start:stop], stop
        broken = ""
        try:
            body = reader.feed(piece)
        except WireError as problem:
            body, broken = problem.body, problem.message
        if not told and reader.status is not None:
            told = True
            tally.headers(reader.status, reader.content_type, reader.content_encoding)
        tally.body(start, body)
        if broken:
            tally.end(start, Ending.malformed, broken)
            return tally
        if reader.complete:
            break
    tally.end(start, Ending.complete if reader.eof() else Ending.eof)
    return tally


@pytest.mark.parametrize("framing", ["chunked", "sized", "close"])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_framing_changes_nothing(script: Script, framing: str) -> None:
    """Each known stream means the same under every framing, whole and in single bytes."""
    wire = response(script, framing)
    expected = summary(tally_of(script))
    assert summary(exchange(wire, script=script)) == expected
    assert summary(exchange(wire, tuple(range(1, len(wire))), script)) == expected


@pytest.mark.parametrize("framing", ["chunked", "sized"])
def test_a_response_cut_anywhere_is_truncated_and_never_ok(framing: str) -> None:
    """Whatever the place of the cut, a message that is not whole is no success."""
    wire = response(Script("s", say("a") + say("b", "length") + DONE), framing)
    head = wire.index(b"\r\n\r\n") + 4
    for place in range(len(wire)):
        outcome = exchange(wire[:place]).outcome
        assert outcome == ("truncated" if place >= head else "reset"), place


@given(st.sampled_from(SCRIPTS), st.integers(1, 90), st.lists(st.integers(0, 4000), max_size=8))
@settings(max_examples=80, deadline=None)
def test_no_split_of_the_wire_changes_a_row(script: Script, chunk_bytes: int, cuts: list[int]) -> None:
    """Any chunking by the server and any split by the network give the same row."""
    wire = response(script, "chunked", chunk_bytes)
    inside = tuple(sorted(cut for cut in cuts if cut < len(wire)))
    assert summary(exchange(wire, inside, script)) == summary(tally_of(script))


@given(st.sampled_from(SCRIPTS), st.data())
@settings(max_examples=100, deadline=None)
def test_a_mutated_wire_gives_one_row_in_every_split(script: Script, data: st.DataObject) -> None:
    """Bytes changed anywhere, framing included, raise nothing and depend on no split."""
    wire = bytearray(response(script, data.draw(st.sampled_from(["chunked", "sized", "close"]))))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(wire)))
        wire[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=4))
    whole = exchange(bytes(wire), script=script)
    assert "internal" not in whole.warnings
    cuts = tuple(sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=5))))
    assert summary(exchange(bytes(wire), cuts, script)) == summary(whole)


def test_an_error_before_a_broken_chunk_is_still_the_cause() -> None:
    """Body bytes of the read that broke the framing count: the server's error is not lost."""
    wire = response(Script("s", say("a") + line({"error": "out of memory"})), "chunked")
    broken = wire[:-5] + b"zz\r\n"
    tally = exchange(broken)
    assert (tally.outcome, tally.error, tally.output_events) == ("stream_error", "out of memory", 1)


def test_a_compressed_stream_under_chunks_is_read() -> None:
    """gzip inside chunked coding is decoded and flagged."""
    script = Script("z", gzip.compress(say("a", "stop") + DONE, mtime=0), content_encoding="gzip")
    tally = exchange(response(script, "chunked", 5))
    assert (tally.outcome, tally.output_events, "compressed" in tally.warnings) == ("ok", 1, True)
