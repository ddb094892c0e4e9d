"""The loop: one thread, one readiness poll, no task per request.

Order of work in each pass: read everything that is ready, start what is due, then parse for at most 0.2 ms. The poll
never sleeps longer than a millisecond, so a read's `since_empty` bounds when its first byte came even where several
segments share one kernel stamp.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from time import monotonic_ns, sleep

from nameplate.client.bodies import Bodies
from nameplate.client.connection import READ_BYTES, USER_STAMPED, Connection, tls_context
from nameplate.client.counter import Count
from nameplate.client.flight import Flight
from nameplate.client.load import Load
from nameplate.client.order import LoadOrder
from nameplate.client.poller import READABLE, WRITABLE, Poller
from nameplate.contract.errors import ClientError, ServerError
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
# After these many full reads in a row one socket lets the others have their turn.
READS_IN_A_ROW = 8
# Servers close idle connections after seconds, not within this.
FRESHLY_IDLE_NS = 5_000_000
SPARE_LIMIT = 64
REOPEN_EVERY_NS = 250_000_000
CONNECT_TRIES = 4
# What this machine runs out of, never the server.
OUR_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL)


class Loop:
    """Carry out a load over real sockets; `housekeeping(now_ns)` is called ten times a second."""

    def __init__(
        self, order: LoadOrder, load: Load, bodies: Bodies, housekeeping: Callable[[int], None]
    ) -> None:
        self._order = order
        self._load = load
        self._bodies = bodies
        self._housekeeping = housekeeping
        self._poller = Poller()
        self._connections: dict[int, Connection] = {}
        self._idle: deque[Connection] = deque()
        self._waiting: deque[Flight] = deque()
        self._opening = 0
        self._fresh = order.new_connections
        self._tls = (
            None
            if order.target.scheme == "http"
            else tls_context(order.target.ca_file, order.target.insecure)
        )
        self._family, self._address = resolve(order.target.host, order.target.port)
        self._last_connect_error = ""
        self._reopened_ns = 0
        self._pass = 0
        self._offset_ns = 0
        self.failure: str | None = None

    # -- the passes -----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every stage to its end; ServerError when the server cannot be connected to at all."""
        load = self._load
        while not load.finished:
            if load.stage_over and not load.unparsed:
                self._meet(Count.LEFT)
                self._open_ahead(load.slots_to_open)
                self._meet(Count.READY)
                if load.stopping:
                    break
                load.begin_stage(time.monotonic_ns())
            self._run_stage()
        self._housekeeping(time.monotonic_ns())
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._poller.close()

    def _run_stage(self) -> None:
        load, poll, connections = self._load, self._poller.poll, self._connections
        clock, wall = time.monotonic_ns, time.time_ns
        next_housekeeping_ns = clock()
        polled_ns = clock()
        self._offset_ns = wall() - clock()
        ready: list[tuple[int, int]] = []
        while not (load.stage_over and not load.unparsed):
            due_ns = load.next_due_ns()
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
                        self._advance(connection)
                    continue
                if events & ~WRITABLE:
                    now_ns = self._read(connection, now_ns, previous_ns, stamps_hold)
                if events & WRITABLE and connection.writing and connections.get(fd) is connection:
                    self._flush(connection)
            due_ns = load.next_due_ns()
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
        if self._opening:
            self._drop_hung(now_ns)
        self._replace_connections(now_ns)
        self._housekeeping(now_ns)

    def cancel(self) -> None:
        """End everything in flight, telling the server by resetting the connections."""
        flights = {flight.index for flight in self._load.cancel(time.monotonic_ns())}
        self._waiting.clear()
        for connection in list(self._connections.values()):
            if connection.flight is not None and connection.flight.index in flights:
                self._drop(connection, reset=True)

    def _abandon(self, flight: Flight, now_ns: int, ending: Ending) -> None:
        detail = self._last_connect_error if ending is Ending.deadline_connect else ""
        self._load.failed(flight, now_ns, ending, detail)
        if flight in self._waiting:
            self._waiting.remove(flight)
        for connection in list(self._connections.values()):
            if connection.flight is flight:
                self._drop(connection, reset=True)

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
                    delay_ns = 0
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
                    self._drop(connection)  # An answer that nobody asked for.
                    return t_ns
                if load.received(flight, t_ns, delay_ns, t_ns - empty_ns, data):
                    self._response_over(connection, flight, t_ns, closed)
                    flight = None
            if closed:
                if flight is not None:
                    load.closed(flight, t_ns, self._silent_idle(flight, "the server closed the connection"))
                self._drop(connection)
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
            self._drop(connection, reset=True)
        elif reader.keep_alive and not self._fresh and not closed:
            connection.idle_since_ns = t_ns
            self._idle.append(connection)
        else:
            self._fresh = self._fresh or not reader.keep_alive
            self._drop(connection)
        self._start_due()
        if self._fresh:
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
        self._drop(connection)

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
            connection = self._take_idle()
            if connection is None:
                # Nothing to send on: what is due waits, counted, and connections are opened for it.
                while (flight := load.pop_due(clock())) is not None:
                    self._waiting.append(flight)
                if self._waiting:
                    self._replace_connections(clock())
                return
            flight = self._waiting.popleft() if self._waiting else load.pop_due(clock())
            if flight is None:
                self._idle.appendleft(connection)
                return
            self._send(connection, flight)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.popleft()
            # Asking the kernel costs as much as a send; a connection whose answer has just ended needs no asking.
            if monotonic_ns() - connection.idle_since_ns < FRESHLY_IDLE_NS or connection.quiet():
                return connection
            self._drop(connection)
        return None

    def _send(self, connection: Connection, flight: Flight) -> None:
        request = self._bodies.request(flight.index)
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
            self._poller.modify(connection.fd, READABLE | WRITABLE)

    def _flush(self, connection: Connection) -> None:
        try:
            whole = connection.flush()
        except OSError:
            # As in sending: let the reading side find out.
            self._poller.modify(connection.fd, READABLE)
            return
        if whole:
            self._poller.modify(connection.fd, READABLE)
            if connection.flight is not None and connection.flight.body_sent_ns is None:
                self._load.body_sent(connection.flight, time.monotonic_ns())

    # -- connections ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            connection = Connection(
                self._family, self._address, time.monotonic_ns(), self._tls, self._order.target.host
            )
        except OSError as error:
            if error.errno in OUR_LIMITS:
                self.failure = f"no further connection can be opened here: {error.strerror}"
            self._connect_failed(describe(error))
            return
        self._connections[connection.fd] = connection
        self._poller.register(connection.fd, READABLE | WRITABLE)
        self._opening += 1

    def _advance(self, connection: Connection) -> None:
        try:
            if not connection.advance_opening():
                self._poller.modify(connection.fd, READABLE | (WRITABLE if connection.writing else 0))
                return
        except OSError as error:
            self._drop(connection)
            self._connect_failed(describe(error))
            return
        connection.opened_ns = connection.idle_since_ns = time.monotonic_ns()
        self._opening -= 1
        self._poller.modify(connection.fd, READABLE)
        self._idle.append(connection)

    def _connect_failed(self, reason: str) -> None:
        """Note why no connection could be opened, and end the request that it was opened for, if there is one."""
        self._last_connect_error = reason
        if len(self._waiting) > self._opening:
            self._load.failed(self._waiting.popleft(), time.monotonic_ns(), Ending.connect_failed, reason)

    def _drop(self, connection: Connection, reset: bool = False) -> None:
        # A dropped connection's descriptor may already belong to the next one.
        if self._connections.get(connection.fd) is not connection:
            return
        del self._connections[connection.fd]
        if connection.opened_ns is None:
            self._opening -= 1
        elif connection.flight is None and connection in self._idle:
            self._idle.remove(connection)
        self._poller.unregister(connection.fd)
        connection.flight = None
        connection.close(reset)

    def _open_ahead(self, wanted: int) -> None:
        """Open the connections of the next stage before its first request is due, within the connect deadline."""
        deadline_ns = time.monotonic_ns() + self._order.deadlines.connect_ns
        self._bodies.prepare(self._load.next_first_index, wanted)
        wanted += min(wanted, SPARE_LIMIT) if self._fresh else 0
        self._last_connect_error = ""
        failures = 0
        while len(self._idle) < wanted and not self._load.stopping and failures < CONNECT_TRIES:
            now_ns = time.monotonic_ns()
            if now_ns > deadline_ns:
                break
            # In batches: a server's listen backlog is often 128, and an overflowing one costs a second a connection.
            while (
                self._opening < 64
                and len(self._idle) + self._opening < wanted
                and not self._last_connect_error
            ):
                self._open()
            self._serve_connections(0.005)
            if self._last_connect_error and not self._opening:
                failures += 1
                if failures < CONNECT_TRIES:
                    self._last_connect_error = ""
                    time.sleep(REOPEN_EVERY_NS / 1e9)
            self._housekeeping(now_ns)
        if self.failure is not None:
            raise ClientError(
                f"{len(self._idle)} of {wanted} connections are open, and {self.failure}.",
                why="The concurrency that was asked for would not be reached.",
                hint="Raise the limit of open files (ulimit -n), or lower the concurrency.",
            )
        if wanted and not self._idle and not self._load.stopping:
            reason = self._last_connect_error or "no answer within the connect deadline"
            raise ServerError(
                f"No connection to {self._order.target.url}: {reason}.",
                hint=_TLS_HINT
                if self._tls is not None and self._last_connect_error
                else "Is the server running?",
            )

    def _serve_connections(self, timeout_s: float) -> None:
        """Go on with connections that open, and drop idle ones that the server closes; no request is in flight."""
        for fd, _events in self._poller.poll(timeout_s, 1024):
            connection = self._connections.get(fd)
            if connection is not None and connection.opened_ns is None:
                self._advance(connection)
            elif connection is not None:
                # A close, or a session ticket of TLS.
                now_ns = monotonic_ns()
                self._read(connection, now_ns, now_ns, False)

    def _meet(self, gate: Count) -> None:
        """Wait until all workers have come to the same point, or the load stops."""
        self._load.arrive(gate)
        while not self._load.passed(gate) and not self._load.stopping:
            self._serve_connections(POLL_S)
            self._housekeeping(time.monotonic_ns())

    def _drop_hung(self, now_ns: int) -> None:
        """Give up connections that did not open in time, so that others are tried in their place."""
        limit_ns = now_ns - self._order.deadlines.connect_ns
        for connection in list(self._connections.values()):
            if connection.opened_ns is None and connection.connecting_ns < limit_ns:
                self._drop(connection)

    def _replace_connections(self, now_ns: int) -> None:
        """Open a connection for each slot that has none, and spares where the server closes after each answer."""
        if self._load.stopping and not self._waiting:
            return
        wanted = self._load.busy_slots
        wanted += min(wanted, SPARE_LIMIT) if self._fresh else 0
        missing = wanted - len(self._connections)
        if missing <= 0:
            return
        if self._last_connect_error and now_ns - self._reopened_ns < REOPEN_EVERY_NS:
            return
        self._reopened_ns = now_ns
        self._last_connect_error = ""
        for _ in range(missing):
            self._open()


_TLS_HINT = "Does it speak TLS? Name its authority with --ca-file, or take any certificate with --insecure."


def resolve(host: str, port: int) -> tuple[int, tuple[object, ...]]:
    """Resolve once, before anything is timed; ServerError where the name has no address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ServerError(
            f"The host name {host!r} cannot be resolved: {reason}.", hint="Check the URL."
        ) from None
    family, _kind, _protocol, _name, address = found[0]
    return family, address


def describe(error: OSError) -> str:
    """Say in words what went wrong while connecting."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS certificate not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return error.strerror or str(error)
