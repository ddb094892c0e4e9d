"""The load's core, sans-I/O: which request starts when, and what each byte that comes back belongs to.

Theory of operation. A load runs its stages in order. A stage's slots wait in a heap by due time; `pop_due` turns a
due slot into a `Flight`. The shell (sockets, or simulated time) sends it, and reports what comes back through
`received`, `closed` and `failed`. Framing happens at once, since the end of a response frees the slot; meaning is
extracted later, in slices, from one queue in order of arrival (`parse`). A request's row is written when its end
leaves that queue.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from nameplate.client.counter import Count, Counter, LocalCounter
from nameplate.client.flight import Flight
from nameplate.client.order import LoadOrder, Progress
from nameplate.client.recorder import Recorder
from nameplate.evidence import timeline
from nameplate.evidence.records import Kind
from nameplate.evidence.rows import RequestRow
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.streams import Streams
from nameplate.wire.errors import WireError
from nameplate.wire.outcome import Ending

# A long read is parsed in pieces of this size, so that no slice of parsing holds the loop for long: 8 KiB of
# ordinary chunks take some 0.15 ms.
PARSE_PIECE_BYTES = 8192
# With more than this waiting to be parsed (at most 32 MiB), parsing goes on past its slice: a server that sends faster
# than we parse is slowed by its own socket, and memory stays bounded. Ordinary load stays below a hundredth of it.
BACKLOG_PIECES = 4096
# A clock is read after each kilobyte, four ordinary chunks or some 15 us, not after each of them.
PARSE_CHECK_BYTES = 1024

# Connections are opened ahead of an open loop's arrivals: for what is expected within this time, and a few at least.
AHEAD_NS = 1_000_000_000
LEAST_AHEAD, MOST_AHEAD = 4, 512

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


class Load:
    """Drive the stages of one order; see the module's theory of operation. Times are monotonic nanoseconds."""

    def __init__(self, order: LoadOrder, recorder: Recorder, counter: Counter | None = None) -> None:
        self._order = order
        self._recorder = recorder
        self._counter = counter or LocalCounter()
        self._stage = -1
        self._due: list[tuple[int, int]] = []
        self._slot_starts: dict[int, int] = {}
        self._pending: deque[tuple[Flight, int, bytes | Ending]] = deque()
        self._encode = msgspec.json.Encoder().encode
        self._rows: list[RequestRow] = []
        self._first_outputs: list[tuple[int, int]] = []
        self._exhausted = False
        self._released = False
        self._began_ns = 0
        self._arrivals: Iterator[tuple[int, int]] = iter(())
        self._arrival: tuple[int, int] | None = None
        self.overrun = False
        self.flights: dict[int, Flight] = {}
        self.stopping = False
        self.cancelled = False
        self.started = 0
        self.ended = 0
        self.reads = 0

    # -- stages ---------------------------------------------------------------------------------------------------

    @property
    def stage_name(self) -> str:
        return self._order.stages[self._stage].name if 0 <= self._stage < len(self._order.stages) else ""

    @property
    def slots_to_open(self) -> int:
        """Count the connections that the next stage needs at once on this worker."""
        following = self._stage + 1
        if following >= len(self._order.stages):
            return 0
        schedule = self._order.stages[following].schedule
        if isinstance(schedule, OpenLoop):
            return self._expected(schedule, 0)
        own = len(range(self._order.worker, schedule.slots, self._order.workers))
        return own + (isinstance(schedule, Streams) and schedule.arrival and self._order.worker == 0)

    @property
    def next_first_index(self) -> int:
        """Return the index of the first request of the next stage."""
        following = min(self._stage + 1, len(self._order.stages) - 1)
        return self._order.stages[following].first_index

    @property
    def stage_over(self) -> bool:
        """Say whether the running stage (or none yet) has nothing left to start or to await."""
        waits = self._due or self._arrival is not None
        return not self.flights and (self._stage < 0 or self.stopping or not waits)

    @property
    def finished(self) -> bool:
        """Say whether nothing is left to start, to await or to parse."""
        if self._pending or self.flights:
            return False
        return self.stage_over and (self.stopping or self._stage + 1 >= len(self._order.stages))

    def begin_stage(self, now_ns: int) -> None:
        """Start the next stage; its first requests become due."""
        self._stage += 1
        self.started = self.ended = 0
        self._exhausted = False
        schedule = self._order.stages[self._stage].schedule
        self._due.clear()
        self._slot_starts.clear()
        self._began_ns = now_ns
        if isinstance(schedule, OpenLoop):
            self._arrivals = schedule.arrivals(self._order.worker, self._order.workers)
            self._arrival = next(self._arrivals, None)
            return
        for slot in range(self._order.worker, schedule.slots, self._order.workers):
            if schedule.has(slot):
                heapq.heappush(self._due, (now_ns + (schedule.due_ns(slot) or 0), slot))

    def release(self, now_ns: int) -> None:
        """Let the arrival beside the streams start now, if it is this worker's and has not yet come."""
        if self._stage < 0 or self.stopping or self._released:
            return
        schedule = self._order.stages[self._stage].schedule
        # The first worker's, since each of the others may be without a stream, and so at its end already.
        if isinstance(schedule, Streams) and schedule.arrival and self._order.worker == 0:
            self._released = True
            heapq.heappush(self._due, (now_ns, schedule.slots))

    @property
    def busy_slots(self) -> int:
        """Count the slots that have a request in flight or will start one: as many connections are needed.

        Of an open loop, what is in flight and what is expected to arrive within the second that comes.
        """
        schedule = self._order.stages[self._stage].schedule if self._stage >= 0 else None
        if isinstance(schedule, OpenLoop) and self._arrival is not None:
            needed = len(self.flights) + self._expected(schedule, self._arrival[1])
            return min(needed, self._order.outstanding_limit or needed)
        return len(self.flights) + len(self._due)

    def _expected(self, schedule: OpenLoop, from_ns: int) -> int:
        """Return how many arrivals a worker should have connections for, from a moment of the stage on."""
        begin, end = schedule.expected(from_ns), schedule.expected(from_ns + AHEAD_NS)
        arriving = math.ceil(end - begin) if begin is not None and end is not None else 1
        most = min(MOST_AHEAD, self._order.outstanding_limit or MOST_AHEAD)
        return min(max(LEAST_AHEAD, -(-arriving // self._order.workers)), most)

    def next_due_ns(self) -> int | None:
        if self._arrival is not None and not self.stopping:
            return self._began_ns + self._arrival[1]
        return self._due[0][0] if self._due and not self.stopping else None

    def pop_due(self, now_ns: int) -> Flight | None:
        """Return the next request that is due, or None; it counts as in flight from now on."""
        if self.stage_name == "ramp":
            self._end_ramp_when_all_restarted()
        if self._arrival is not None:
            return self._pop_arrival(now_ns)
        while self._due and not self.stopping and self._due[0][0] <= now_ns:
            scheduled_ns, slot = heapq.heappop(self._due)
            schedule = self._order.stages[self._stage].schedule
            assert not isinstance(schedule, OpenLoop)
            if isinstance(schedule, Streams):
                return self._start(slot, scheduled_ns, schedule.offset(slot, self._slot_starts.get(slot, 0)))
            # The opening request of slot s has index s; later ones are taken in order from what is left.
            if slot not in self._slot_starts and not schedule.continues:
                return self._start(slot, scheduled_ns, slot)
            opening = 0 if schedule.continues else min(schedule.slots, schedule.requests)
            taken = self._counter.take(self._stage, schedule.requests - opening)
            if taken is not None:
                return self._start(slot, scheduled_ns, opening + taken)
            # This slot is done; others may still have an opening request whose time has not come.
            self._exhausted = True
        return None

    def _pop_arrival(self, now_ns: int) -> Flight | None:
        """Start the arrival that is due, whatever is outstanding, up to the limit at which the load ends."""
        assert self._arrival is not None
        offset, due_ns = self._arrival
        if self.stopping or self._began_ns + due_ns > now_ns:
            return None
        limit = self._order.outstanding_limit
        if limit is not None and len(self.flights) >= limit:
            self.overrun = True
            self.stop()
            return None
        self._arrival = next(self._arrivals, None)
        return self._start(None, self._began_ns + due_ns, offset)

    def _start(self, slot: int | None, scheduled_ns: int, offset: int) -> Flight:
        stage = self._order.stages[self._stage]
        index = stage.first_index + offset
        phase, prompt = stage.phase(index), stage.prompt(index)
        ask = self._order.asks[prompt]
        keep = self._recorder.keeps(index)
        flight = Flight(index, phase, slot, scheduled_ns, self._order.target.api, keep, prompt)
        flight.class_name = ask.class_name
        flight.asked_output_tokens = ask.output_tokens
        flight.prompt_sha256 = ask.prompt_sha256
        flight.head_sha256 = ask.head_sha256
        self.flights[index] = flight
        self.started += 1
        self._recorder.note(Kind.SCHEDULED, index, scheduled_ns)
        if slot is None:
            return flight
        self._slot_starts[slot] = self._slot_starts.get(slot, 0) + 1
        if stage.name == "ramp" and self._slot_starts[slot] == 2:
            self._counter.add(Count.RESTARTED, self._stage)
            self._end_ramp_when_all_restarted()
        return flight

    def _end_ramp_when_all_restarted(self) -> None:
        slots = self._order.stages[self._stage].schedule.slots or 0
        if self._counter.value(Count.RESTARTED, self._stage) < slots:
            return
        # A worker without slots of its own waits at both gates for those that go on without a pause.
        self.arrive(Count.LEFT)
        self.arrive(Count.READY)
        self._stage += 1
        self.started = self.ended = 0
        self._exhausted = False
        self._slot_starts.clear()

    # -- several workers ------------------------------------------------------------------------------------------

    def arrive(self, gate: Count) -> None:
        """Say to the other workers that this one has left its stage, or is ready for the next."""
        self._counter.add(gate, self._stage)

    def passed(self, gate: Count) -> bool:
        """Say whether all workers have arrived."""
        return self._counter.value(gate, self._stage) >= self._order.workers

    # -- what the shell reports -----------------------------------------------------------------------------------

    def sent(self, flight: Flight, t_ns: int) -> None:
        """Note that the first byte is about to be written on an open connection."""
        flight.sent_ns = t_ns
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
        if (flight.phase in ("opening", "steady")) == (self.stage_name == "measured"):
            self.ended += 1
        if flight.slot is None:
            return
        if not self.stopping and not self._exhausted and self._goes_on(flight, ending):
            heapq.heappush(self._due, (t_ns, flight.slot))

    def _goes_on(self, flight: Flight, ending: Ending) -> bool:
        """Say whether a slot starts again: an arrival comes once, and a held stream is not held against a server that
        refuses it, which would be asked thousands of times a second."""
        if flight.phase == "arrival":
            return False
        if not isinstance(self._order.stages[self._stage].schedule, Streams):
            return True
        status = flight.reader.status
        return ending is Ending.complete and status is not None and 200 <= status < 300

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

    def stop(self) -> None:
        """Start nothing more; what is in flight goes on."""
        self.stopping = True
        self._arrival = None
        self._due.clear()

    def cancel(self, now_ns: int) -> list[Flight]:
        """Start nothing more and end everything in flight as cancelled; the shell closes their connections."""
        self.cancelled = self.cancelled or not self.finished
        self.stop()
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
            stage=self.stage_name,
            started=self.started,
            ended=self.ended,
            in_flight=len(self.flights),
            rows=tuple(self._rows),
            first_outputs=tuple(self._first_outputs),
            waiting_since=waiting,
        )
        self._rows.clear()
        self._first_outputs.clear()
        return progress
