"""Fold the timed reads of one request into what its row needs.

Which outcome an exchange has: see ``classify``.

Warnings beside an outcome: ``empty_output`` (ok without any text: gates decide on it), ``compressed``,
``usage_decreased``, ``bad_usage`` (a count that is none), ``bytes_after_done``, ``buffered`` (nearly all events came
together), ``repeated_text`` (the whole text was sent again each time; text, size and digest are then of the last),
``missing_blank_lines``, ``done_before_cut`` (the end marker came, the end of the message did not), ``streamed`` (a
stream where a whole answer was asked for), and ``internal`` (a fault of this program, never of the server).
"""

import hashlib
from array import array

from nameplate.wire.body import BodyDecoder
from nameplate.wire.chunk import Api
from nameplate.wire.classify import Exchange, classify, is_failure
from nameplate.wire.events import Channel, Done, Event, Finish, Output, StreamError, Usage
from nameplate.wire.loop import Loop, Tail
from nameplate.wire.loose import bounded
from nameplate.wire.outcome import Ending, Outcome

# Text is hashed in pieces of this many events: a digest update costs more than an append.
_PIECES = 256
# From how many output events on a pattern in them is more than chance.
_PATTERN_EVENTS = 16
_REPEATED_EVENTS = 4
_PIECE_CHARS = 65536
_TAGS = {channel: f"\x00{channel.value}\x00".encode() for channel in Channel}
_REASONING = Channel.reasoning


class Tally:
    """Fold one request's response: ``headers``, then ``body`` for each read, then ``end``; none of them raises.

    Times are those given, in nanoseconds. An event that carries output counts once, however many channels or
    choices it has. Without the server's count ``output_tokens`` is the number of output events and its source
    ``estimated``. ``output_sha256`` is over the UTF-8 text, with a tag wherever the channel changes, so that
    different chunking of the same text gives the same digest. With ``keep_gaps`` the time of each output event
    and its tokens (-1 where the server does not count along) are kept. Each channel's text is looked at once, at
    the end: ``loop`` is the longest loop that one of them ended in (see ``loop``), ``longest_channel_chars`` how
    many characters the longest of them had, which tells a text without a loop from one too short to judge.
    """

    __slots__ = (
        "_api",
        "_asked_to_stream",
        "_channel",
        "_decoder",
        "_digest",
        "_done",
        "_extends",
        "_kind",
        "_last_body_ns",
        "_pieces",
        "_previous",
        "_tails",
        "_zero_gaps",
        "cached_tokens",
        "completion_tokens",
        "end_ns",
        "ending",
        "error",
        "finish_ns",
        "finish_reason",
        "first_answer_ns",
        "first_event_tokens",
        "first_output_ns",
        "http_status",
        "last_output_ns",
        "longest_channel_chars",
        "longest_gap_ns",
        "loop",
        "outcome",
        "output_bytes",
        "output_event_tokens",
        "output_events",
        "output_sha256",
        "output_times_ns",
        "prompt_tokens",
        "reasoning_tokens",
        "second_output_ns",
        "text_chars",
        "warnings",
    )

    def __init__(self, api: Api, streaming: bool, keep_gaps: bool = False) -> None:
        self._api: Api = api
        self._asked_to_stream = streaming
        self._decoder: BodyDecoder | None = None
        self._digest = hashlib.sha256()
        self._channel: Channel | None = None
        self._pieces: list[str] = []
        self._previous = ""
        self._tails: dict[Channel, Tail] = {}
        self._extends = True
        self._zero_gaps = 0
        self._last_body_ns = 0
        self._done = False
        self._kind = ""
        self.http_status: int | None = None
        self.ending: Ending | None = None
        self.outcome = Outcome.unfinished
        self.first_output_ns: int | None = None
        self.first_answer_ns: int | None = None
        self.second_output_ns: int | None = None
        self.last_output_ns: int | None = None
        self.finish_ns: int | None = None
        self.end_ns: int | None = None
        self.output_events = 0
        self.first_event_tokens: int | None = None
        self.longest_gap_ns: int | None = None
        self.output_times_ns: array[int] | None = array("q") if keep_gaps else None
        self.output_event_tokens: array[int] | None = array("q") if keep_gaps else None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        self.finish_reason: str | None = None
        self.text_chars = 0
        self.longest_channel_chars = 0
        self.loop: Loop | None = None
        self.output_bytes = 0
        self.output_sha256: str | None = None
        self.error: str | None = None
        self.warnings: set[str] = set()

    @property
    def done(self) -> bool:
        """Say whether the end marker has come; the end of the message can still be missing."""
        return self._done

    @property
    def broken(self) -> str | None:
        """Say why nothing that still comes can make this an answer; None while it can."""
        decoder = self._decoder
        return decoder.malformed if decoder is not None and decoder.dead else None

    @property
    def output_tokens(self) -> int | None:
        """Return the server's completion count, else the estimate; None if there is neither."""
        if self.completion_tokens is not None:
            return self.completion_tokens
        return self.output_events if self.output_tokens_source == "estimated" else None

    @property
    def output_tokens_source(self) -> str | None:
        """Return ``usage``, ``estimated`` (one token an event) or None (no count, and no stream of events)."""
        if self.completion_tokens is not None:
            return "usage"
        kind = self._kind if self._decoder is None else self._decoder.kind
        if self.output_events and kind == "sse":
            return "estimated"
        return None

    def headers(self, status: int, content_type: str = "", content_encoding: str = "") -> None:
        """Take the head of the response."""
        self.http_status = status
        self._decoder = BodyDecoder(content_type, content_encoding, self._api)

    def body(self, t_ns: int, data: bytes) -> None:
        """Take the body bytes of one read that arrived at ``t_ns``."""
        decoder = self._decoder
        if decoder is None or not data:
            return
        self._last_body_ns = t_ns
        try:
            events = decoder.feed(data)
            if events:
                self._fold(t_ns, events)
        except Exception as problem:
            self._internal(problem)

    def end(self, t_ns: int, ending: Ending, detail: str = "") -> Outcome:
        """Close the account and return the outcome; ``detail`` is the client's word on a failed connection."""
        self.end_ns = t_ns
        self.ending = ending
        decoder = self._decoder
        try:
            # What a cut or cancelled body left unterminated is no event.
            if ending is Ending.complete and decoder is not None:
                events = decoder.finish()
                if events:
                    self._fold(self._last_body_ns or t_ns, events)
            self._close_text()
        except Exception as problem:
            self._internal(problem)
        exchange = Exchange(
            ending=ending,
            detail=detail,
            http_status=self.http_status,
            asked_to_stream=self._asked_to_stream,
            kind="" if decoder is None else decoder.kind,
            malformed=None if decoder is None else decoder.malformed,
            cut=decoder is not None and decoder.cut,
            error=self.error,
            finish_reason=self.finish_reason,
            done=self._done,
            has_output=self.output_events > 0,
        )
        self.outcome, reason = classify(exchange)
        self.error = bounded(reason) if reason else None
        if decoder is not None:
            self._kind = decoder.kind
            self._warn(decoder)
            # Its buffers have done their duty; rows are kept for longer.
            self._decoder = None
        return self.outcome

    def _internal(self, problem: Exception) -> None:
        self.warnings.add("internal")
        if self._decoder is not None and self._decoder.malformed is None:
            self._decoder.malformed = f"internal fault while decoding: {type(problem).__name__}: {problem}"[
                :500
            ]

    def _fold(self, t_ns: int, events: list[Event]) -> None:
        times, counts = self.output_times_ns, self.output_event_tokens
        for event in events:
            if type(event) is not Output:
                self._other(t_ns, event)
                continue
            text = event.text
            channel = event.channel
            if channel is not self._channel:
                self._change(channel)
            if channel is not _REASONING and self.first_answer_ns is None:
                self.first_answer_ns = t_ns
            if self._extends:
                self._compare(text)
            pieces = self._pieces
            pieces.append(text)
            if len(pieces) >= _PIECES or len(text) > _PIECE_CHARS:
                self._flush()
            if event.joined:
                continue
            last_ns = self.last_output_ns
            if last_ns is None:
                self.first_output_ns = t_ns
                self.first_event_tokens = event.tokens
            else:
                gap = t_ns - last_ns
                if not gap:
                    self._zero_gaps += 1
                longest = self.longest_gap_ns
                if longest is None:
                    self.second_output_ns = t_ns
                    self.longest_gap_ns = gap
                elif gap > longest:
                    self.longest_gap_ns = gap
            self.last_output_ns = t_ns
            self.output_events += 1
            if times is not None and counts is not None:
                tokens = event.tokens
                times.append(t_ns)
                counts.append(-1 if tokens is None else tokens)

    def _change(self, channel: Channel) -> None:
        self._flush()
        self._channel = channel
        self._digest.update(_TAGS[channel])

    def _compare(self, text: str) -> None:
        """Watch whether each text begins with the whole of the one before; the first that does not ends it."""
        previous = self._previous
        if len(text) > len(previous) and text.startswith(previous):
            self._previous = text
        else:
            self._extends = False
            self._previous = ""

    def _other(self, t_ns: int, event: Event) -> None:
        if isinstance(event, Usage):
            self._usage(event)
        elif isinstance(event, Finish):
            # Of several choices the one that failed speaks for all.
            if not is_failure(self.finish_reason):
                self.finish_reason = event.reason
            self.finish_ns = t_ns
        elif isinstance(event, StreamError):
            if self.error is None:
                self.error = _words(event)
        elif isinstance(event, Done):
            self._done = True

    def _usage(self, usage: Usage) -> None:
        completion = usage.completion_tokens
        if completion is not None:
            if self.completion_tokens is not None and completion < self.completion_tokens:
                self.warnings.add("usage_decreased")
            self.completion_tokens = completion
        if usage.prompt_tokens is not None:
            self.prompt_tokens = usage.prompt_tokens
        if usage.cached_tokens is not None:
            self.cached_tokens = usage.cached_tokens
        if usage.reasoning_tokens is not None:
            self.reasoning_tokens = usage.reasoning_tokens

    def _flush(self) -> None:
        if not self._pieces:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        encoded = text.encode()
        self._digest.update(encoded)
        self.text_chars += len(text)
        self.output_bytes += len(encoded)
        # There is no text before its channel.
        assert self._channel is not None
        tail = self._tails.get(self._channel)
        if tail is None:
            tail = self._tails[self._channel] = Tail()
        tail.add(text)

    def _close_text(self) -> None:
        self._flush()
        if self._extends and self.output_events >= _REPEATED_EVENTS and self._channel is not None:
            encoded = self._previous.encode()
            self._digest = hashlib.sha256(_TAGS[self._channel] + encoded)
            self.text_chars, self.output_bytes = len(self._previous), len(encoded)
            self.warnings.add("repeated_text")
            # The same text again is the server's way of sending; what it says is the last one alone.
            last = Tail()
            last.add(self._previous)
            self._tails = {self._channel: last}
        self._previous = ""
        self._look_for_loops()
        if self.output_events:
            self.output_sha256 = self._digest.hexdigest()

    def _look_for_loops(self) -> None:
        tails = sorted(self._tails.items())
        self.longest_channel_chars = max((tail.chars for _, tail in tails), default=0)
        loops = [loop for channel, tail in tails if (loop := tail.loop(channel)) is not None]
        self.loop = max(loops, key=lambda loop: loop.length_chars, default=None)
        self._tails.clear()

    def _warn(self, decoder: BodyDecoder) -> None:
        warnings = self.warnings
        warnings |= decoder.warnings
        if decoder.compressed:
            warnings.add("compressed")
        if self._done and self.ending is not Ending.complete:
            warnings.add("done_before_cut")
        if self.output_events > _PATTERN_EVENTS and self._zero_gaps >= 0.9 * (self.output_events - 1):
            warnings.add("buffered")
        if self.outcome is not Outcome.ok:
            return
        if not self.output_events:
            warnings.add("empty_output")
        if decoder.kind == "json":
            if self._asked_to_stream:
                warnings.add("not_streamed")
            return
        if not self._asked_to_stream:
            warnings.add("streamed")
        if not self._done:
            warnings.add("no_done")
        if self.finish_reason is None:
            warnings.add("no_finish_reason")


def _words(event: StreamError) -> str:
    labels = [label for label in (event.kind, event.code) if label and label not in event.message]
    return f"{event.message} ({', '.join(labels)})" if labels else event.message
