"""The loop: one thread, one readiness poll, no task per request.

Order of work in each pass: read everything that is ready, start what is due, then parse for at most 0.2 ms. The poll
never sleeps longer than a millisecond, so a read's `since_empty` bounds when its first byte came even where several
segments share one kernel stamp.
"""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Callable
from time import monotonic_ns, sleep

from nameplate.client.bodies import Bodies
from nameplate.client.connection import READ_BYTES, USER_STAMPED, Connection
from nameplate.client.counter import Count
from nameplate.client.flight import Flight
from nameplate.client.load import Load
from nameplate.client.order import LoadOrder
from nameplate.client.poller import READABLE, WRITABLE
from nameplate.client.pool import REOPEN_EVERY_NS, Pool
from nameplate.wire.outcome import Ending

POLL_S = 0.001
PARSE_SLICE_NS = 200_000
# Waking up costs as much as reading two chunks, so from this many streams on what arrives within a moment is gathered:
# the kernel has stamped it, and a request that follows an answer is late by no more than that.
GATHER_FROM_STREAMS = 64
GATHER_S = 0.0003
HOUSEKEEPING_NS = 100_000_000
# An empty poll that took longer than this says nothing of the sockets: twice its own timeout.
UNSEEN_NS = 2_000_000
# Above this, the wall clock was stepped between two passes, and kernel stamps of that pass mean nothing.
CLOCK_JUMP_NS = 100_000
# A stamp that lies further than this after the read, or before its socket was empty, is from before such a step.
STAMP_DOUBT_NS = 10_000_000
# After these many full reads in a row one socket lets the others have their turn.
READS_IN_A_ROW = 8
CONNECT_TRIES = 4


class Loop:
    """Carry out a load over real sockets; `housekeeping(now_ns)` is called ten times a second."""

    def __init__(
        self, order: LoadOrder, load: Load, bodies: Bodies, housekeeping: Callable[[int], None]
    ) -> None:
        self._order = order
        self._load = load
        self._bodies = bodies
        self._housekeeping = housekeeping
        self._pool = Pool(order, self._connect_failed)
        self._waiting: deque[Flight] = deque()
        self._pass = 0
        self._offset_ns = 0

    @property
    def failure(self) -> str | None:
        """Say which limit of this machine was reached, or None."""
        return self._pool.failure

    # -- the passes -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every stage to its end; ServerError when the server cannot be connected to at all."""
        load = self._load
        while not load.finished:
            if load.stage_over and not load.unparsed:
                self._meet(Count.LEFT)
                self._open_ahead(load.agenda.slots_to_open)
                self._meet(Count.READY)
                if load.stopping:
                    break
                load.agenda.begin(time.monotonic_ns())
            self._run_stage()
        self._housekeeping(time.monotonic_ns())
        self._pool.close()

    def _run_stage(self) -> None:
        load, poll, connections = self._load, self._pool.poller.poll, self._pool.connections
        clock, wall = time.monotonic_ns, time.time_ns
        next_housekeeping_ns = clock()
        polled_ns = clock()
        self._offset_ns = wall() - clock()
        ready: list[tuple[int, int]] = []
        while not (load.stage_over and not load.unparsed):
            due_ns = load.agenda.next_ns()
            busy = load.unparsed or (
                due_ns is not None and due_ns - polled_ns < 1_000_000 and not self._waiting
            )
            if not busy and ready and len(load.flights) >= GATHER_FROM_STREAMS:
                sleep(GATHER_S)
            ready = poll(0 if busy else POLL_S, 1024)
            previous_ns, polled_ns = polled_ns, clock()
            if not ready and polled_ns - previous_ns > UNSEEN_NS:
                # A poll of a process that was stopped and continued comes back empty without having looked.
                ready = poll(0, 1024)
            self._pass += 1
            offset_ns = wall() - clock()
            stamps_hold = -CLOCK_JUMP_NS < offset_ns - self._offset_ns < CLOCK_JUMP_NS
            self._offset_ns = offset_ns
            now_ns = polled_ns
            for fd, events in ready:
                connection = connections.get(fd)
                if connection is None:
                    continue
                if connection.opened_ns is None:
                    # An event of a connection that had this descriptor before says nothing of this one.
                    if connection.connecting_ns < polled_ns:
                        self._pool.advance(connection)
                    continue
                if events & ~WRITABLE:
                    now_ns = self._read(connection, now_ns, previous_ns, stamps_hold)
                if events & WRITABLE and connection.writing and connections.get(fd) is connection:
                    self._flush(connection)
            due_ns = load.agenda.next_ns()
            if self._waiting or (due_ns is not None and due_ns <= clock()):
                self._start_due()
            self._bodies.top_up()
            if load.unparsed:
                load.parse(clock() + PARSE_SLICE_NS, clock)
            now_ns = clock()
            if now_ns >= next_housekeeping_ns:
                self._keep_house(now_ns)
                next_housekeeping_ns = now_ns + HOUSEKEEPING_NS

    def _keep_house(self, now_ns: int) -> None:
        for flight, ending in self._load.overdue(now_ns):
            self._abandon(flight, now_ns, ending)
        self._pool.drop_hung(now_ns)
        self._replace_connections(now_ns)
        self._housekeeping(now_ns)

    def cancel(self) -> None:
        """End everything in flight, telling the server by resetting the connections."""
        flights = {flight.index for flight in self._load.cancel(time.monotonic_ns())}
        self._waiting.clear()
        for connection in list(self._pool.connections.values()):
            if connection.flight is not None and connection.flight.index in flights:
                self._pool.drop(connection, reset=True)

    def _abandon(self, flight: Flight, now_ns: int, ending: Ending) -> None:
        detail = self._pool.refusal if ending is Ending.deadline_connect else ""
        self._load.failed(flight, now_ns, ending, detail)
        if flight in self._waiting:
            self._waiting.remove(flight)
        for connection in list(self._pool.connections.values()):
            if connection.flight is flight:
                self._pool.drop(connection, reset=True)

    # -- reading --------------------------------------------------------------------------------------------------

    def _read(self, connection: Connection, now_ns: int, previous_ns: int, stamps_hold: bool) -> int:
        """Take all that is there; return the time of the last read, or `now_ns` if there was none.

        `previous_ns` is when the poll before this one returned. If this socket was not ready then, it was empty
        then; otherwise it was empty when the last read of that pass came back short.
        """
        load = self._load
        empty_ns = connection.emptied_ns if connection.ready_pass == self._pass - 1 else previous_ns
        connection.ready_pass = self._pass
        before_ns = now_ns
        for _ in range(READS_IN_A_ROW):
            try:
                data, stamp_ns = connection.receive()
            except BlockingIOError:
                connection.emptied_ns = before_ns
                break
            except OSError as error:
                self._broken(connection, error.strerror or str(error))
                return before_ns
            t_ns = monotonic_ns()
            delay_ns = USER_STAMPED
            if stamps_hold and stamp_ns != USER_STAMPED:
                delay_ns = t_ns - stamp_ns + self._offset_ns
                if delay_ns < 0:
                    # A stamp later than now is a clock that moved by less than we notice: the read is not delayed.
                    delay_ns = 0 if delay_ns > -STAMP_DOUBT_NS else USER_STAMPED
                elif delay_ns > t_ns - empty_ns + STAMP_DOUBT_NS:
                    delay_ns = USER_STAMPED
            # Short: the buffer was empty once this read had been taken.
            short = len(data) < READ_BYTES
            closed = not data
            if connection.secure and data:
                try:
                    data, closed = connection.decrypt(data)
                except ssl.SSLError as error:
                    self._broken(connection, f"TLS: {error.reason or error}")
                    return t_ns
            flight = connection.flight
            if data:
                if flight is None:
                    self._pool.drop(connection)  # An answer that nobody asked for.
                    return t_ns
                if load.received(flight, t_ns, delay_ns, t_ns - empty_ns, data):
                    self._response_over(connection, flight, t_ns, closed)
                    flight = None
            if closed:
                if flight is not None:
                    load.closed(flight, t_ns, self._silent_idle(flight, "the server closed the connection"))
                self._pool.drop(connection)
                return t_ns
            if short:
                connection.emptied_ns = before_ns
                return t_ns
            before_ns = t_ns
        return before_ns

    def _response_over(self, connection: Connection, flight: Flight, t_ns: int, closed: bool) -> None:
        reader = flight.reader
        connection.flight = None
        if flight.body_sent_ns is None:
            # An early answer: the rest of this body would be taken for the next request.
            self._pool.drop(connection, reset=True)
        elif reader.keep_alive and not self._pool.fresh and not closed:
            self._pool.park(connection, t_ns)
        else:
            self._pool.fresh = self._pool.fresh or not reader.keep_alive
            self._pool.drop(connection)
        self._start_due()
        if self._pool.fresh:
            self._replace_connections(t_ns)

    def _broken(self, connection: Connection, reason: str) -> None:
        now_ns = time.monotonic_ns()
        flight = connection.flight
        if flight is not None:
            if flight.reader.close_delimited and flight.reader.status is not None:
                reason += " (in a body that only a clean close may end)"
            else:
                reason = self._silent_idle(flight, reason) or reason
            self._load.failed(flight, now_ns, Ending.reset, reason)
        self._pool.drop(connection)

    @staticmethod
    def _silent_idle(flight: Flight, what: str) -> str:
        """Name the idle age of a reused connection that ended before any byte of the answer; else empty."""
        if flight.idle_ns is None or flight.last_byte_ns is not None:
            return ""
        idle_s = flight.idle_ns / 1e9
        return f"{what} before any byte of the answer, on a connection that had been idle for {idle_s:.3f} s"

    # -- starting -------------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        load, clock = self._load, time.monotonic_ns
        while True:
            connection = self._pool.take()
            if connection is None:
                # Nothing to send on: what is due waits, counted, and connections are opened for it.
                while (flight := load.pop_due(clock())) is not None:
                    self._waiting.append(flight)
                if self._waiting:
                    self._replace_connections(clock())
                return
            flight = self._waiting.popleft() if self._waiting else load.pop_due(clock())
            if flight is None:
                self._pool.put_back(connection)
                return
            self._send(connection, flight)

    def _send(self, connection: Connection, flight: Flight) -> None:
        request = self._bodies.request(flight.prompt)
        now_ns = time.monotonic_ns()
        connection.flight = flight
        if connection.used:
            flight.idle_ns = now_ns - connection.idle_since_ns
        elif connection.opened_ns is not None:
            flight.connect_ns = connection.opened_ns - connection.connecting_ns
        self._load.sent(flight, now_ns)
        connection.used = True
        try:
            whole = connection.send(request)
        except OSError:
            # An early refusal may still be there to be read, or else the end: let the reading side find out.
            return
        if whole:
            self._load.body_sent(flight, time.monotonic_ns())
        else:
            self._pool.poller.modify(connection.fd, READABLE | WRITABLE)

    def _flush(self, connection: Connection) -> None:
        try:
            whole = connection.flush()
        except OSError:
            # As in sending: let the reading side find out.
            self._pool.poller.modify(connection.fd, READABLE)
            return
        if whole:
            self._pool.poller.modify(connection.fd, READABLE)
            if connection.flight is not None and connection.flight.body_sent_ns is None:
                self._load.body_sent(connection.flight, time.monotonic_ns())

    # -- connections ----------------------------------------------------------------------------------------------

    def _connect_failed(self, reason: str) -> None:
        """End the request for which a connection could not be opened, if there is one: nothing is retried."""
        if len(self._waiting) > self._pool.opening:
            self._load.failed(self._waiting.popleft(), monotonic_ns(), Ending.connect_failed, reason)

    def _open_ahead(self, slots: int) -> None:
        """Open the connections of the next stage before its first request is due, within the connect deadline."""
        load, pool = self._load, self._pool
        deadline_ns = monotonic_ns() + self._order.deadlines.connect_ns
        self._bodies.prepare(load.agenda.next_first_index, slots)
        wanted = pool.with_spares(slots)
        pool.refusal = ""
        failures = 0
        while pool.ready < wanted and failures < CONNECT_TRIES and not load.stopping:
            now_ns = monotonic_ns()
            if now_ns > deadline_ns:
                break
            pool.fill(wanted)
            self._serve_connections(0.005)
            if pool.refusal and not pool.opening:
                failures += 1
                if failures < CONNECT_TRIES:
                    pool.refusal = ""
                    sleep(REOPEN_EVERY_NS / 1e9)
            self._housekeeping(now_ns)
        if not load.stopping:
            pool.check(wanted)

    def _serve_connections(self, timeout_s: float) -> None:
        """Go on with connections that open, and drop idle ones that the server closes; no request is in flight."""
        for fd, _events in self._pool.poller.poll(timeout_s, 1024):
            connection = self._pool.connections.get(fd)
            if connection is not None and connection.opened_ns is None:
                self._pool.advance(connection)
            elif connection is not None:
                # A close, or a session ticket of TLS.
                now_ns = monotonic_ns()
                self._read(connection, now_ns, now_ns, False)

    def _meet(self, gate: Count) -> None:
        """Wait until all workers have come to the same point, or the load stops."""
        self._load.agenda.arrive(gate)
        while not self._load.agenda.passed(gate) and not self._load.stopping:
            self._serve_connections(POLL_S)
            self._housekeeping(monotonic_ns())

    def _replace_connections(self, now_ns: int) -> None:
        """See that each slot has a connection, or after a stop each request that still waits."""
        if self._waiting or not self._load.stopping:
            self._pool.replace(self._load.busy_slots, now_ns)
