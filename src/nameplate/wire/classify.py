"""Name the outcome of one exchange from what was seen of it.

The first line that fits decides:

====================================================  ==========================
what was seen                                         outcome
====================================================  ==========================
no connection                                         connect_failed
a status outside 200..299, however the body ended     http_error
an error in the body, ``[DONE]`` after it or not      stream_error
a finish reason such as ``abort`` or ``error``        stream_error
broken HTTP framing                                   malformed
the peer closed before the message was whole          truncated (reset, if before any status)
reset, deadline, cancelled, unfinished                that
a body that ends inside an event or a document        truncated
HTML, plain text, NDJSON, undecodable data            malformed
a whole JSON answer                                   ok (``not_streamed`` if a stream was asked for)
finish reason, ``[DONE]`` or not                      ok (``no_done`` without it)
``[DONE]`` and output, no finish reason               ok (``no_finish_reason``)
``[DONE]`` and no output, no finish reason            ended_without_marker
neither finish reason nor ``[DONE]``                  ended_without_marker
====================================================  ==========================

An error that the server reported weighs more than how the connection ended, because it is the cause.
"""

import msgspec

from nameplate.wire.outcome import Ending, Outcome

# Words with which engines finish a request that they did not complete.
_FAILED_FINISHES = frozenset(
    {
        "abort",
        "aborted",
        "error",
        "failed",
        "failure",
        "exception",
        "cancel",
        "cancelled",
        "canceled",
        "timeout",
    }
)

# What an ending means by itself, when the response has said nothing that weighs more.
_OUTCOME_OF_ENDING: dict[Ending, Outcome] = {
    Ending.eof: Outcome.truncated,
    Ending.malformed: Outcome.malformed,
    Ending.reset: Outcome.reset,
    Ending.connect_failed: Outcome.connect_failed,
    Ending.deadline_connect: Outcome.timed_out_connect,
    Ending.deadline_first_output: Outcome.timed_out_first_output,
    Ending.deadline_silence: Outcome.timed_out_silence,
    Ending.deadline_total: Outcome.timed_out_total,
    Ending.cancelled: Outcome.cancelled,
    Ending.unfinished: Outcome.unfinished,
}

_ENDING_WORDS = {
    Ending.eof: "the connection was closed before the end that the framing promised",
    Ending.malformed: "broken HTTP framing",
    Ending.reset: "the connection was reset",
    Ending.connect_failed: "no connection could be made",
    Ending.deadline_connect: "no connection within the connect deadline",
    Ending.deadline_first_output: "no output within the first-output deadline",
    Ending.deadline_silence: "no byte within the silence deadline",
    Ending.deadline_total: "not finished within the deadline of the whole request",
    Ending.cancelled: "cancelled by us",
    Ending.unfinished: "still running when the trial ended",
}


class Exchange(msgspec.Struct, frozen=True, gc=False):
    """Hold what was seen of one exchange.

    ``kind``, ``malformed`` and ``cut`` are the body decoder's, ``error`` is what the server reported in the body,
    ``done`` says that the end marker came, ``detail`` is the client's word on a failed connection.
    """

    ending: Ending
    http_status: int | None = None
    asked_to_stream: bool = True
    kind: str = ""
    malformed: str | None = None
    cut: bool = False
    error: str | None = None
    finish_reason: str | None = None
    done: bool = False
    has_output: bool = False
    detail: str = ""


def is_failure(finish_reason: str | None) -> bool:
    """Say whether an engine's finish reason means that it did not complete the request."""
    return finish_reason is not None and finish_reason.lower() in _FAILED_FINISHES


def classify(seen: Exchange) -> tuple[Outcome, str]:
    """Return the outcome and its reason in words, which is empty for ok and never otherwise."""
    status, ending = seen.http_status, seen.ending
    if status is None:
        return _without_response(seen)
    if not 200 <= status < 300:
        said = seen.error or seen.malformed or seen.detail
        return Outcome.http_error, f"HTTP {status}: {said}" if said else f"HTTP {status}"
    if seen.error is not None:
        return Outcome.stream_error, seen.error or "an error without words"
    if is_failure(seen.finish_reason):
        return Outcome.stream_error, f"the server finished the request with reason {seen.finish_reason!r}"
    if ending is not Ending.complete:
        return _OUTCOME_OF_ENDING[ending], seen.detail or _ENDING_WORDS[ending]
    if seen.malformed is not None:
        return Outcome.truncated if seen.cut else Outcome.malformed, seen.malformed
    return _whole(seen)


def _without_response(seen: Exchange) -> tuple[Outcome, str]:
    ending = seen.ending
    if ending is Ending.complete:
        return Outcome.malformed, "the exchange ended without a response"
    if ending is Ending.eof:
        return Outcome.reset, seen.detail or "the server closed the connection before any response"
    return _OUTCOME_OF_ENDING[ending], seen.detail or _ENDING_WORDS[ending]


def _whole(seen: Exchange) -> tuple[Outcome, str]:
    if seen.kind == "json":
        return Outcome.ok, ""
    if not seen.kind and not seen.asked_to_stream:
        return Outcome.malformed, "an empty body"
    if seen.finish_reason is not None or (seen.done and seen.has_output):
        return Outcome.ok, ""
    if seen.done:
        return Outcome.ended_without_marker, "the stream had neither output nor a finish reason before [DONE]"
    return Outcome.ended_without_marker, "the stream ended without a finish reason and without [DONE]"
