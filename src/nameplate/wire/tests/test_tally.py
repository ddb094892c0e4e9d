"""The fold: what a row says about each known kind of stream, and that nothing can break it."""

import gc
import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.wire.events import Channel
from nameplate.wire.loop import Loop
from nameplate.wire.outcome import Ending, Outcome
from nameplate.wire.tally import Tally
from nameplate.wire.tests.streams import DONE, ROLE, SCRIPTS, Script, chunk, line, say

_BY_NAME = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)


def tally_of(script: Script, cuts: tuple[int, ...] = (), ending: Ending = Ending.complete) -> Tally:
    """Feed a script in the pieces that the cuts make."""
    tally = Tally(script.api, streaming=True, keep_gaps=True)
    tally.headers(script.status, script.content_type, script.content_encoding)
    start = 0
    for number, stop in enumerate((*cuts, len(script.body))):
        tally.body(1000 * (number + 1), script.body[start:stop])
        start = stop
    tally.end(1_000_000, ending)
    return tally


def summary(tally: Tally) -> dict[str, object]:
    """Return everything of a row that does not depend on when its bytes came."""
    assert tally.output_event_tokens is not None
    return {
        "outcome": tally.outcome,
        "error": tally.error,
        "finish": tally.finish_reason,
        "tokens": tally.output_tokens,
        "source": tally.output_tokens_source,
        "usage": (tally.prompt_tokens, tally.cached_tokens, tally.reasoning_tokens),
        "text": (tally.text_chars, tally.output_bytes, tally.output_sha256),
        "events": (tally.output_events, tally.first_event_tokens, list(tally.output_event_tokens)),
        "loop": (tally.loop, tally.longest_channel_chars),
        "warnings": tally.warnings - {"buffered"},
    }


@_BY_NAME
def test_each_known_stream_means_what_it_means(script: Script) -> None:
    """A row says of every known kind of stream what its server meant."""
    tally = tally_of(script)
    assert tally.outcome == script.outcome, tally.error
    assert (tally.output_tokens, tally.output_tokens_source) == (script.tokens, script.source)
    assert tally.output_events == script.events
    assert tally.text_chars == len(script.text)
    assert tally.output_bytes == len(script.text.encode())
    assert tally.finish_reason == script.finish
    assert tally.cached_tokens == script.cached
    assert script.error in (tally.error or "")
    assert (tally.error is None) == (script.outcome == "ok")
    assert tally.warnings == set(script.warnings)
    if script.event_tokens is not None:
        assert tally.output_event_tokens is not None
        assert tuple(tally.output_event_tokens) == script.event_tokens


@_BY_NAME
def test_no_split_into_two_reads_changes_a_row(script: Script) -> None:
    """A body cut in two at any byte gives the same row."""
    whole = summary(tally_of(script))
    for cut in range(1, len(script.body)):
        assert summary(tally_of(script, (cut,))) == whole, cut


@_BY_NAME
def test_single_bytes_give_the_same_row(script: Script) -> None:
    """A body that comes byte by byte gives the same row."""
    assert summary(tally_of(script, tuple(range(1, len(script.body))))) == summary(tally_of(script))


@given(st.sampled_from(SCRIPTS), st.lists(st.integers(0, 3000), max_size=8))
@settings(max_examples=80, deadline=None)
def test_no_split_into_many_reads_changes_a_row(script: Script, cuts: list[int]) -> None:
    """Any number of cuts gives the same row."""
    inside = tuple(sorted(cut for cut in cuts if cut < len(script.body)))
    assert summary(tally_of(script, inside)) == summary(tally_of(script))


def test_times_belong_to_the_reads_that_completed_the_events() -> None:
    """First, second, last output, answer, finish and longest gap are the times of the reads that held them."""
    tally = Tally("chat", streaming=True, keep_gaps=True)
    tally.headers(200, "text/event-stream", "")
    half = say("x")
    for t_ns, data in [
        (10, ROLE),
        (20, line(chunk({"reasoning": "r"}))),
        (25, half[:9]),
        (50, half[9:]),
        (60, say("y") + say("z")),
        (70, line(chunk({}, "stop"))),
        (80, DONE),
    ]:
        tally.body(t_ns, data)
    assert tally.done
    assert tally.end(90, Ending.complete) is Outcome.ok
    assert (tally.first_output_ns, tally.second_output_ns, tally.last_output_ns) == (20, 50, 60)
    assert (tally.first_answer_ns, tally.finish_ns, tally.end_ns) == (50, 70, 90)
    assert tally.longest_gap_ns == 30
    assert tally.output_times_ns is not None
    assert list(tally.output_times_ns) == [20, 50, 60, 60]


def test_one_output_has_no_gap() -> None:
    """A request with one output event has neither a second output nor a gap."""
    tally = tally_of(Script("one", say("a", "stop") + DONE))
    assert (tally.second_output_ns, tally.longest_gap_ns) == (None, None)


@pytest.mark.parametrize(
    "ending, outcome",
    [
        (Ending.eof, "truncated"),
        (Ending.malformed, "malformed"),
        (Ending.reset, "reset"),
        (Ending.deadline_first_output, "timed_out_first_output"),
        (Ending.deadline_silence, "timed_out_silence"),
        (Ending.deadline_total, "timed_out_total"),
        (Ending.cancelled, "cancelled"),
        (Ending.unfinished, "unfinished"),
    ],
)
def test_an_ending_names_the_outcome_unless_the_body_says_worse(ending: Ending, outcome: str) -> None:
    """A cut exchange is named by its cut, but an error that the server reported before it weighs more."""
    assert tally_of(Script("cut", say("a") + b"data: {"), ending=ending).outcome == outcome
    assert tally_of(Script("cut", line({"error": "x"})), ending=ending).outcome == "stream_error"
    assert tally_of(Script("cut", b"{", status=503), ending=ending).outcome == "http_error"
    assert "done_before_cut" in tally_of(Script("cut", say("a", "stop") + DONE), ending=ending).warnings


@pytest.mark.parametrize(
    "ending, outcome",
    [
        (Ending.connect_failed, "connect_failed"),
        (Ending.deadline_connect, "timed_out_connect"),
        (Ending.deadline_first_output, "timed_out_first_output"),
        (Ending.eof, "reset"),
        (Ending.reset, "reset"),
        (Ending.malformed, "malformed"),
        (Ending.unfinished, "unfinished"),
    ],
)
def test_an_exchange_without_a_response_is_named_and_has_an_error(ending: Ending, outcome: str) -> None:
    """Without any response the connection's ending decides, and the error is never empty."""
    tally = Tally("chat", streaming=True)
    assert tally.end(5, ending) == outcome
    assert tally.error
    assert (tally.output_tokens, tally.output_sha256, tally.first_output_ns) == (None, None, None)


def test_digest_depends_on_the_text_and_its_channels_only() -> None:
    """The same text in other pieces has the same digest; the same text in another channel has not."""
    one = tally_of(Script("one", say("abc", "stop") + DONE))
    two = tally_of(Script("two", say("a") + say("bc", "stop") + DONE))
    thought = tally_of(Script("three", line(chunk({"reasoning": "abc"}, "stop")) + DONE))
    assert one.output_sha256 == two.output_sha256 == hashlib.sha256(b"\x00content\x00abc").hexdigest()
    assert thought.output_sha256 != one.output_sha256


def test_events_that_all_come_at_once_are_called_buffered() -> None:
    """A stream whose events come together is flagged; one that flows is not."""
    body = b"".join(say(f"w{number} ") for number in range(30)) + line(chunk({}, "stop")) + DONE
    assert "buffered" in tally_of(Script("b", body)).warnings
    assert "buffered" not in tally_of(Script("b", body), tuple(range(100, len(body), 100))).warnings


def test_a_falling_count_is_flagged_and_the_last_value_wins() -> None:
    """Usage is cumulative: the last value counts, and a fall is a warning."""
    body = b"".join(say("a", usage={"completion_tokens": count}) for count in (3, 2)) + DONE
    tally = tally_of(Script("u", body))
    assert (tally.completion_tokens, "usage_decreased" in tally.warnings) == (2, True)


def test_a_whole_answer_that_was_asked_for_needs_no_warning() -> None:
    """A request that did not ask for a stream gets ok for a whole answer and malformed for an empty one."""
    document = json.dumps({"choices": [{"text": "a", "finish_reason": "stop"}]}).encode()
    tally = Tally("completions", streaming=False)
    tally.headers(200, "application/json", "")
    tally.body(7, document)
    assert (tally.end(8, Ending.complete), tally.warnings) == (Outcome.ok, set())
    assert (tally.first_output_ns, tally.output_tokens) == (7, None)
    empty = Tally("chat", streaming=False)
    empty.headers(200, "", "")
    assert empty.end(8, Ending.complete) is Outcome.malformed


def test_nothing_is_left_for_the_garbage_collector() -> None:
    """A thousand tallies of every kind leave no reference cycle."""
    gc.collect()
    gc.disable()
    try:
        for number in range(1000):
            script = SCRIPTS[number % len(SCRIPTS)]
            tally_of(script, (len(script.body) // 2,), list(Ending)[number % 3])
        assert gc.collect() == 0
    finally:
        gc.enable()


@given(
    st.lists(st.binary(max_size=200), max_size=6),
    st.sampled_from(["", "text/event-stream", "application/json"]),
)
@settings(max_examples=80, deadline=None)
def test_random_bytes_never_raise(pieces: list[bytes], content_type: str) -> None:
    """Whatever the bytes, the tally ends with an outcome and no fault of its own."""
    tally = Tally("chat", streaming=True)
    tally.headers(200, content_type, "")
    for piece in pieces:
        tally.body(1, piece)
    assert tally.end(2, Ending.complete) in Outcome
    assert "internal" not in tally.warnings


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_mutated_streams_never_raise_and_never_depend_on_the_split(data: st.DataObject) -> None:
    """A known stream with bytes changed, cut out or repeated gives one row, whatever the split."""
    script = data.draw(st.sampled_from(SCRIPTS))
    body = bytearray(script.body)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(body) - 1)))
        size = data.draw(st.integers(0, 12))
        new = data.draw(
            st.one_of(
                st.binary(max_size=6),
                st.sampled_from([b"\n", b"\r\n", b"\n\n", b"null", b"[", b"{}", b"-1", b'"']),
            )
        )
        body[place : place + size] = new * data.draw(st.integers(1, 3))
    mutant = Script("mutant", bytes(body), status=script.status, content_type=script.content_type,
                    content_encoding=script.content_encoding, api=script.api)  # fmt: skip
    whole = tally_of(mutant)
    assert "internal" not in whole.warnings
    cuts = tuple(sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5))))
    assert summary(tally_of(mutant, cuts)) == summary(whole)


def looped(*bodies: bytes, ending: Ending = Ending.complete) -> Tally:
    """Fold a stream that says these events after one another."""
    return tally_of(Script("looped", ROLE + b"".join(bodies)), ending=ending)


def test_a_loop_is_of_one_channel() -> None:
    """Each channel is judged by its own text, and the row tells which looped and how long the longest was."""
    think = [line(chunk({"reasoning": "so, "})) for _ in range(1500)]
    tally = looped(*think, say("an answer"), DONE)
    assert tally.loop == Loop(Channel.reasoning, 4, 6000)
    assert tally.longest_channel_chars == 6000
    mixed = looped(*(part for one in think for part in (one, say("x"))), DONE)
    assert mixed.loop == Loop(Channel.reasoning, 4, 6000)


@pytest.mark.parametrize("ending", [Ending.complete, Ending.cancelled, Ending.eof, Ending.unfinished])
def test_a_loop_is_seen_however_the_request_ended(ending: Ending) -> None:
    """A stream that was cut in the middle of its loop has looped."""
    assert looped(*[say("on ") for _ in range(2000)], ending=ending).loop == Loop(Channel.content, 3, 6000)


def test_a_text_too_short_to_judge_is_told_from_one_that_did_not_loop() -> None:
    """The characters of the longest channel tell the two apart; without output there are none."""
    short = looped(*[say("on ") for _ in range(1365)], DONE)
    assert (short.loop, short.longest_channel_chars) == (None, 4095)
    long = looped(*[say(f"{at} ") for at in range(2000)], DONE)
    assert long.loop is None and long.longest_channel_chars > 4096
    assert looped(DONE).longest_channel_chars == 0


def test_the_whole_text_sent_again_is_no_loop() -> None:
    """Of a server that sends the whole text each time only the last is judged."""
    words = [f"word {at} " for at in range(1200)]
    whole = [say("".join(words[: at + 1])) for at in range(0, 1200, 100)]
    tally = looped(*whole, DONE)
    assert "repeated_text" in tally.warnings
    assert tally.loop is None and tally.longest_channel_chars == tally.text_chars
    tally = looped(*[say("on " * size) for size in range(1500, 2001, 100)], DONE)
    assert "repeated_text" in tally.warnings
    assert tally.loop == Loop(Channel.content, 3, 6000)
