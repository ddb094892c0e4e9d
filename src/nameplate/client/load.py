"""The load's core, sans-I/O: which request starts when, and what each byte that comes back belongs to.

Theory of operation. A load runs its stages in order; the `Agenda` knows what of them is due, and `pop_due` turns that
into a `Flight`. The shell (sockets, or simulated time) sends it, and reports what comes back through
`received`, `closed` and `failed`. Framing happens at once, since the end of a response frees the slot; meaning is
extracted later, in slices, from one queue in order of arrival (`parse`). A request's row is written when its end
leaves that queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from nameplate.client.agenda import Agenda
from nameplate.client.counter import Counter, LocalCounter
from nameplate.client.flight import Flight
from nameplate.client.lag import Lag
from nameplate.client.order import Ask, LoadOrder, Progress
from nameplate.client.recorder import Recorder
from nameplate.evidence import timeline
from nameplate.evidence.records import Kind
from nameplate.evidence.rows import RequestRow
from nameplate.schedule.streams import Streams
from nameplate.wire.errors import WireError
from nameplate.wire.outcome import Ending, Outcome

# A long read is parsed in pieces of this size, so that no slice of parsing holds the loop for long: 8 KiB of
# ordinary chunks take some 0.15 ms.
PARSE_PIECE_BYTES = 8192
# With more than this waiting to be parsed (at most 32 MiB), parsing goes on past its slice: a server that sends faster
# than we parse is slowed by its own socket, and memory stays bounded. Ordinary load stays below a hundredth of it.
BACKLOG_PIECES = 4096
# A clock is read after each kilobyte, four ordinary chunks or some 15 us, not after each of them.
PARSE_CHECK_BYTES = 1024

# Of the client's own word on how a request ended; records and rows have the same.
DETAIL_CHARS = 500

_RECORD_OF_ENDING = {
    Ending.malformed: Kind.BROKEN,
    Ending.reset: Kind.RESET,
    Ending.connect_failed: Kind.CONNECT_FAILED,
    Ending.cancelled: Kind.CANCEL,
    Ending.deadline_connect: Kind.DEADLINE,
    Ending.deadline_first_output: Kind.DEADLINE,
    Ending.deadline_silence: Kind.DEADLINE,
    Ending.deadline_total: Kind.DEADLINE,
}


def _payload(ending: Ending, detail: str) -> bytes:
    """Return what a record says beside its kind: which deadline it was, and the error in words."""
    named = f"{ending.value}: {detail}" if ending.value.startswith("deadline_") else detail
    return named.encode("utf-8", "replace")


def _answered(flight: Flight, ending: Ending) -> bool:
    """Say whether the server gave a whole answer, and not one that refuses."""
    status = flight.reader.status
    return ending is Ending.complete and status is not None and 200 <= status < 300


class Load:
    """Drive the stages of one order; see the module's theory of operation. Times are monotonic nanoseconds.

    `ask(index)` describes the prompt of that index, by the order if it is not given; LookupError where there is none
    (yet): the load then ends, and `failure` says so.
    """

    def __init__(
        self,
        order: LoadOrder,
        recorder: Recorder,
        counter: Counter | None = None,
        ask: Callable[[int], Ask] | None = None,
    ) -> None:
        self._order = order
        self._recorder = recorder
        self._ask = ask or order.asks.__getitem__
        self._pending: deque[tuple[Flight, int, bytes | Ending]] = deque()
        self._encode = msgspec.json.Encoder().encode
        self._rows: list[RequestRow] = []
        self._first_outputs: list[tuple[int, int]] = []
        self.agenda = Agenda(order, counter or LocalCounter())
        self.lag = Lag()
        self.failure: str | None = None
        self.flights: dict[int, Flight] = {}
        self.cancelled = False
        self.reads = 0

    # -- what starts when -----------------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        return self.agenda.stopping

    @property
    def overrun(self) -> bool:
        """Say whether the load ended because too many requests were outstanding."""
        return self.agenda.overrun

    @property
    def broke_off(self) -> bool:
        """Say whether what is in flight ends with the load; a soak that overran drains, and names what is left."""
        return self.failure is not None or (self.overrun and self._order.soak is None)

    @property
    def busy_slots(self) -> int:
        """Count the connections that are needed now."""
        return self.agenda.connections(len(self.flights))

    @property
    def stage_over(self) -> bool:
        """Say whether the running stage (or none yet) has nothing left to start or to await."""
        return not self.flights and not self.agenda.waits

    @property
    def finished(self) -> bool:
        """Say whether nothing is left to start, to await or to parse."""
        return not self._pending and self.stage_over and not self.agenda.more

    def pop_due(self, now_ns: int) -> Flight | None:
        """Return the next request that is due, or None; it counts as in flight from now on."""
        start = None if self.agenda.stopping else self.agenda.pop(now_ns, len(self.flights))
        if start is None:
            return None
        stage, slot, scheduled_ns, offset = start
        index = stage.first_index + offset
        phase, prompt = stage.phase(index), stage.prompt(index)
        try:
            ask = self._ask(prompt)
        except LookupError:
            self.failure = (
                f"the prompt of request {index} was not written when it was due, "
                "so this machine composes prompts more slowly than the server takes them"
            )
            self.stop(now_ns)
            return None
        keep = self._recorder.keeps(index)
        flight = Flight(index, phase, slot, scheduled_ns, self._order.target.api, keep, prompt)
        flight.class_name = ask.class_name
        flight.asked_output_tokens = ask.output_tokens
        flight.prompt_sha256 = ask.prompt_sha256
        flight.head_sha256 = ask.head_sha256
        self.flights[index] = flight
        self._recorder.note(Kind.SCHEDULED, index, scheduled_ns)
        return flight

    # -- what the shell reports -----------------------------------------------------------------------------------

    def sent(self, flight: Flight, t_ns: int) -> None:
        """Note that the first byte is about to be written on an open connection."""
        flight.sent_ns = t_ns
        self.lag.add(t_ns - flight.scheduled_ns)
        self._recorder.note(Kind.SENT, flight.index, t_ns)

    def body_sent(self, flight: Flight, t_ns: int) -> None:
        flight.body_sent_ns = t_ns
        self._recorder.note(Kind.BODY_SENT, flight.index, t_ns)

    def received(self, flight: Flight, t_ns: int, delay_ns: int, since_empty_ns: int, data: bytes) -> bool:
        """Take one read; return True when the response is over (the flight has ended)."""
        self.reads += 1
        if flight.keep:
            self._recorder.read(flight.index, t_ns, delay_ns, since_empty_ns, data)
        else:
            self._recorder.bare(flight.index, t_ns, delay_ns, since_empty_ns, len(data))
        arrival_ns = t_ns - delay_ns if delay_ns > 0 else t_ns
        flight.last_byte_ns = arrival_ns
        reader = flight.reader
        headed = reader.status is not None
        try:
            body = reader.feed(data)
        except WireError as error:
            self._head(flight, headed)
            if error.body:
                self._queue_body(flight, arrival_ns, error.body)
            flight.detail = error.message
            self._end(flight, arrival_ns, Ending.malformed)
            return True
        if not headed:
            self._head(flight, headed)
        if body:
            self._queue_body(flight, arrival_ns, body)
        if reader.complete:
            self._end(flight, arrival_ns, Ending.complete)
            return True
        return False

    def closed(self, flight: Flight, t_ns: int, detail: str = "") -> None:
        """Take the peer's close: the end of a close-delimited answer, or a cut one."""
        self._recorder.note(Kind.EOF, flight.index, t_ns, _payload(Ending.eof, detail))
        flight.detail = detail
        whole = flight.reader.eof()
        self._end(flight, t_ns, Ending.complete if whole else Ending.eof)

    def failed(self, flight: Flight, t_ns: int, ending: Ending, detail: str = "") -> None:
        """End a request by anything but its response: a reset, a failed connect, a deadline, a cancellation, or a body
        that is broken for good."""
        detail = (flight.tally.broken or "" if ending is Ending.malformed else detail)[:DETAIL_CHARS]
        self._recorder.note(_RECORD_OF_ENDING[ending], flight.index, t_ns, _payload(ending, detail))
        flight.detail = detail
        self._end(flight, t_ns, ending)

    def _head(self, flight: Flight, headed: bool) -> None:
        reader = flight.reader
        if not headed and reader.status is not None:
            flight.tally.headers(reader.status, reader.content_type, reader.content_encoding)

    def _queue_body(self, flight: Flight, t_ns: int, body: bytes) -> None:
        if len(body) <= PARSE_PIECE_BYTES:
            flight.unparsed += 1
            self._pending.append((flight, t_ns, body))
            return
        for at in range(0, len(body), PARSE_PIECE_BYTES):
            flight.unparsed += 1
            self._pending.append((flight, t_ns, body[at : at + PARSE_PIECE_BYTES]))

    def _end(self, flight: Flight, t_ns: int, ending: Ending) -> None:
        flight.ended = True
        self._pending.append((flight, t_ns, ending))
        del self.flights[flight.index]
        agenda = self.agenda
        if (flight.phase in ("opening", "steady")) == (agenda.stage_name == "measured"):
            agenda.ended += 1
        if flight.slot is None:
            return
        if not _answered(flight, ending):
            agenda.rest(flight.slot, t_ns)
        if self._goes_on(flight, ending):
            agenda.freed(flight.slot, t_ns)

    def _goes_on(self, flight: Flight, ending: Ending) -> bool:
        """Say whether a slot starts again: an arrival comes once, and a held stream is not held against a server that
        refuses it, which would be asked thousands of times a second."""
        if flight.phase == "arrival":
            return False
        stage = self.agenda.stage
        return stage is None or not isinstance(stage.schedule, Streams) or _answered(flight, ending)

    # -- deadlines, stopping --------------------------------------------------------------------------------------

    def overdue(self, now_ns: int) -> list[tuple[Flight, Ending]]:
        """List the requests to end: those past a deadline, with its name, and those that are broken for good."""
        late: list[tuple[Flight, Ending]] = []
        limits = self._order.deadlines
        for flight in self.flights.values():
            sent_ns = flight.sent_ns
            if flight.tally.broken is not None:
                # Nothing that still comes can make it an answer, and it may come for ever.
                late.append((flight, Ending.malformed))
            elif sent_ns is None:
                if now_ns - flight.scheduled_ns > limits.connect_ns:
                    late.append((flight, Ending.deadline_connect))
            elif now_ns - sent_ns > limits.total_ns:
                late.append((flight, Ending.deadline_total))
            elif flight.tally.first_output_ns is None:
                # With unparsed bytes at hand, the output may be among them.
                if not flight.unparsed and now_ns - sent_ns > limits.first_output_ns:
                    late.append((flight, Ending.deadline_first_output))
            elif now_ns - (flight.last_byte_ns or sent_ns) > limits.silence_ns:
                late.append((flight, Ending.deadline_silence))
        return late

    def stop(self, now_ns: int) -> None:
        """Start nothing more; what is in flight goes on."""
        self.agenda.stop(now_ns)

    def cancel(self, now_ns: int) -> list[Flight]:
        """Start nothing more and end everything in flight as cancelled; the shell closes their connections."""
        self.cancelled = self.cancelled or not self.finished
        self.stop(now_ns)
        flights = list(self.flights.values())
        for flight in flights:
            self.failed(flight, now_ns, Ending.cancelled)
        return flights

    # -- meaning, later -------------------------------------------------------------------------------------------

    @property
    def unparsed(self) -> int:
        return len(self._pending)

    def parse(self, until_ns: int, clock: Callable[[], int]) -> None:
        """Extract meaning from what arrived, oldest first, until nothing waits, or time is up and little waits."""
        pending = self._pending
        parsed_bytes = 0
        while pending:
            flight, t_ns, item = pending.popleft()
            if isinstance(item, Ending):
                self._finish(flight, t_ns, item)
                parsed_bytes = PARSE_CHECK_BYTES
            else:
                parsed_bytes += len(item)
                flight.unparsed -= 1
                flight.tally.body(t_ns, item)
                if not flight.told_first_output and flight.tally.first_output_ns is not None:
                    self._tell_first_output(flight)
            if parsed_bytes >= PARSE_CHECK_BYTES:
                parsed_bytes = 0
                if clock() >= until_ns and len(pending) <= BACKLOG_PIECES:
                    return

    def _tell_first_output(self, flight: Flight) -> None:
        flight.told_first_output = True
        if flight.phase in ("opening", "steady", "arrival") and flight.sent_ns is not None:
            assert flight.tally.first_output_ns is not None
            self._first_outputs.append((flight.index, flight.tally.first_output_ns - flight.sent_ns))

    def _finish(self, flight: Flight, t_ns: int, ending: Ending) -> None:
        flight.tally.end(t_ns, ending, flight.detail)
        if not flight.told_first_output and flight.tally.first_output_ns is not None:
            self._tell_first_output(flight)
        row = flight.row(self._order.worker)
        if flight.slot is not None and not (row.outcome == Outcome.ok and row.output_events):
            # An error inside an answer, or an empty one, shows only here: its slot's next request may have begun.
            self.agenda.rest(flight.slot, t_ns)
        self._recorder.timeline(timeline.pack(flight.timeline()))
        self._recorder.row(self._encode(row) + b"\n")
        self._rows.append(row)

    def take_progress(self, now_ns: int) -> Progress:
        """Return what happened since the last call."""
        waiting = tuple(
            (flight.index, flight.sent_ns)
            for flight in self.flights.values()
            if flight.sent_ns is not None and not flight.told_first_output and flight.phase != "warmup"
        )
        progress = Progress(
            t_ns=now_ns,
            stage=self.agenda.stage_name,
            began_ns=self.agenda.began_ns,
            submitted_ns=self.agenda.submitted_ns,
            overrun=self.overrun,
            started=self.agenda.started,
            ended=self.agenda.ended,
            in_flight=len(self.flights),
            rows=tuple(self._rows),
            first_outputs=tuple(self._first_outputs),
            waiting_since=waiting,
        )
        self._rows.clear()
        self._first_outputs.clear()
        return progress
