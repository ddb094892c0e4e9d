"""The loop over real sockets, against servers that do what real ones do."""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from nameplate.client.tests.orders import BODY, HEAD, answer, chunk, event, order_of, plan_of
from nameplate.client.tests.runs import Run, outcomes, run
from nameplate.client.tests.servers import keep_alive, read_request, reset, serving, whole_answer
from nameplate.contract.deadlines import SECOND_NS, Deadlines
from nameplate.evidence.records import Kind

pytestmark = pytest.mark.live
SHORT = Deadlines(SECOND_NS, 2 * SECOND_NS, SECOND_NS, 5 * SECOND_NS)


def test_connections_are_reused(tmp_path: Path) -> None:
    """A server that keeps connections sees one a slot, opened before the first request was due."""
    with serving(keep_alive) as server:
        rows = run(order_of(plan_of(3, 30, 2), server.url, tmp_path, body=BODY))
        assert outcomes(rows) == {"ok": 32} and server.accepted == 3
    assert sum(row.connect_ns is not None for row in rows) == 3
    assert sum(row.idle_ns is not None for row in rows) == 29
    assert all(row.sent_ns is not None and row.sent_ns - row.scheduled_ns < 50_000_000 for row in rows)


@pytest.mark.parametrize("new_connections", [True, False])
def test_connections_are_opened_ahead_where_they_serve_once(tmp_path: Path, new_connections: bool) -> None:
    """By choice, or where the server closes after each answer, spares stand ready: requests do not wait for a
    connection, except when the server says `Connection: close` for the first time."""

    def once(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(whole_answer(4, *([] if new_connections else [b"Connection: close"])))
        if new_connections:
            connection.recv(1)

    with serving(once) as server:
        order = order_of(plan_of(3, 60), server.url, tmp_path, body=BODY, new_connections=new_connections)
        rows = run(order)
        assert outcomes(rows) == {"ok": 60} and server.accepted >= 60
    assert all(row.idle_ns is None and row.connect_ns is not None for row in rows)
    waits = sorted((row.sent_ns or 0) - row.scheduled_ns for row in rows)
    assert waits[len(waits) // 2] < 5_000_000, "half of all requests waited for a connection"
    assert max(waits) < 90_000_000, "a request waited for the next housekeeping"


def test_idle_connections_that_the_server_closed_are_replaced_ahead(tmp_path: Path) -> None:
    """A server that closes unused connections before their slot is due costs no request anything."""

    def impatient(connection: socket.socket, _number: int) -> None:
        connection.settimeout(0.15)
        while True:
            read_request(connection)
            connection.sendall(whole_answer())

    with serving(impatient) as server:
        plan = plan_of(4, 4, start="staggered", stagger_ns=300_000_000)
        rows = run(order_of(plan, server.url, tmp_path, body=BODY))
        assert outcomes(rows) == {"ok": 4} and server.accepted > 4
    assert all((row.sent_ns or 0) - row.scheduled_ns < 50_000_000 for row in rows)


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_reset_before_any_byte_on_a_reused_connection_tells_its_idle_age(tmp_path: Path, how: str) -> None:
    """When the server drops a reused connection as the request arrives, the row names it with the idle age."""

    def second_is_dropped(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(whole_answer())
        read_request(connection)
        reset(connection) if how == "reset" else connection.close()

    with serving(second_is_dropped) as server:
        rows = run(order_of(plan_of(1, 4), server.url, tmp_path, body=BODY))
    assert [row.outcome for row in rows] == ["ok", "reset", "ok", "reset"]
    assert rows[1].error is not None and rows[1].idle_ns is not None
    assert f"had been idle for {rows[1].idle_ns / 1e9:.3f} s" in rows[1].error and "any byte" in rows[1].error


def test_a_server_that_closes_without_saying_so(tmp_path: Path) -> None:
    """An answer followed by a silent close: the closed connection is not used again where the close has come."""

    def silent(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(whole_answer())

    with serving(silent) as server:
        plan = plan_of(2, 2, 2)
        rows = run(order_of(plan, server.url, tmp_path, body=BODY))
    assert set(outcomes(rows)) <= {"ok", "reset"}
    for row in rows:
        assert row.outcome == "ok" or "idle" in (row.error or "")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 61])
def test_reads_may_split_anywhere(tmp_path: Path, size: int) -> None:
    """Answers that come in pieces of any size mean the same."""

    def pieces(connection: socket.socket, _number: int) -> None:
        while True:
            read_request(connection)
            data = whole_answer(3)
            for at in range(0, len(data), size):
                connection.sendall(data[at : at + size])
                if at % 50 == 0:
                    time.sleep(0.0002)

    with serving(pieces) as server:
        runner = Run(order_of(plan_of(1, 2), server.url, tmp_path, body=BODY))
        rows = runner.run()
    assert [(row.outcome, row.output_tokens, row.finish_reason) for row in rows] == [("ok", 3, "length")] * 2
    for row in rows:
        reads = [r for r in runner.records() if r.request == row.index and r.kind == Kind.READ]
        assert b"".join(record.payload for record in reads) == whole_answer(3)


def test_a_header_that_never_ends_meets_its_deadline(tmp_path: Path) -> None:
    """A server that trickles its header for ever is ended by the first-output deadline, and by nothing earlier."""

    def slow(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            connection.sendall(b"a")
            time.sleep(0.05)

    deadlines = Deadlines(SECOND_NS, 600_000_000, 200_000_000, 5 * SECOND_NS)
    with serving(slow) as server:
        (row,) = run(order_of(plan_of(1, 1), server.url, tmp_path, body=BODY, deadlines=deadlines))
    assert row.outcome == "timed_out_first_output"
    assert 600_000_000 < (row.end_ns or 0) - (row.sent_ns or 0) < 2 * SECOND_NS


def test_silence_after_output_meets_its_own_deadline(tmp_path: Path) -> None:
    """A stream that stops is ended by the silence deadline, and the server is told by a reset."""
    told = threading.Event()

    def stops(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(HEAD + chunk(event("a")))
        try:
            connection.recv(1)
        except ConnectionResetError:
            told.set()

    deadlines = Deadlines(SECOND_NS, SECOND_NS, 300_000_000, 5 * SECOND_NS)
    with serving(stops) as server:
        (row,) = run(order_of(plan_of(1, 1), server.url, tmp_path, body=BODY, deadlines=deadlines))
        assert told.wait(5)
    assert row.outcome == "timed_out_silence" and row.output_events == 1


@pytest.mark.parametrize("closes", [True, False])
def test_an_early_refusal_of_a_large_body_is_read(tmp_path: Path, closes: bool) -> None:
    """A server that answers 413 while the body is still being sent is understood, whether it closes then or not, and
    the half-sent connection is never used again."""
    refusal = b'{"error":{"message":"too long"}}'
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\n\r\n" % len(refusal) + refusal
    seen = []

    def refuses(connection: socket.socket, _number: int) -> None:
        seen.append(connection.recv(100))
        connection.sendall(refusal)
        if not closes:
            time.sleep(0.3)
            connection.recv(1)

    body = b'{"x":"' + b"y" * (8 << 20) + b'"}'
    with serving(refuses) as server:
        runner = Run(order_of(plan_of(1, 3), server.url, tmp_path, body=body))
        rows = runner.run()
    assert [(row.outcome, row.http_status) for row in rows] == [("http_error", 413)] * 3
    assert all("too long" in (row.error or "") for row in rows)
    assert all(row.body_sent_ns is None for row in rows)
    assert not [record for record in runner.records() if record.kind == Kind.BODY_SENT]
    assert all(first.startswith(b"POST ") for first in seen)


def test_a_half_closed_answer_is_whole(tmp_path: Path) -> None:
    """A server that shuts its sending side after a close-delimited answer ends it; one inside a chunk cuts it."""
    streams = [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event("a") + b"data: [DONE]\n\n",
        HEAD + chunk(event("a"))[:-5],
    ]

    def half(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(streams[min(number, 1)])
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(100):
            pass

    with serving(half) as server:
        rows = run(order_of(plan_of(1, 2), server.url, tmp_path, body=BODY))
    assert [row.outcome for row in rows] == ["ok", "truncated"]


def test_ipv6(tmp_path: Path) -> None:
    """A server on the IPv6 loopback is measured like any other, and gets its host header in brackets."""
    heads = []

    def keeps(connection: socket.socket, _number: int) -> None:
        while True:
            heads.append(read_request(connection))
            connection.sendall(whole_answer())

    try:
        with serving(keeps, socket.AF_INET6) as server:
            rows = run(order_of(plan_of(2, 6), server.url, tmp_path, body=BODY))
            assert b"Host: [::1]:%d\r\n" % server.port in heads[0]
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    assert outcomes(rows) == {"ok": 6}


@pytest.mark.skipif(sys.platform != "linux", reason="kernel stamps are Linux's")
def test_reads_are_stamped_by_the_kernel(tmp_path: Path) -> None:
    """On Linux reads carry the kernel's stamp, and their first byte came after the socket was last seen empty."""

    def ticks(connection: socket.socket, _number: int) -> None:
        while True:
            read_request(connection)
            for piece in answer(20):
                connection.sendall(piece)
                time.sleep(0.002)

    with serving(ticks) as server:
        runner = Run(order_of(plan_of(2, 4), server.url, tmp_path, body=BODY))
        runner.run()
    reads = [record for record in runner.records() if record.kind == Kind.READ]
    stamped = [record for record in reads if record.delay_ns >= 0]
    assert len(stamped) >= 0.9 * len(reads) > 0
    # The newest byte came before it was read, and after the socket was empty, up to the clocks' resolution.
    assert all(record.since_empty_ns > 0 for record in reads)
    # A process that is put aside between the poll and its look at the clock notes the emptiness too late.
    beyond = [record for record in stamped if record.delay_ns > record.since_empty_ns + 200_000]
    assert len(beyond) <= len(stamped) // 20


def test_cancel_reaches_the_sockets(tmp_path: Path) -> None:
    """`cancel` resets what is in flight so that the server stops generating; every request has its row."""
    told = []

    def streams(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(HEAD)
        try:
            while True:
                connection.sendall(chunk(event("a")))
                time.sleep(0.01)
        except OSError:
            told.append(number)

    with serving(streams) as server:
        runner = Run(order_of(plan_of(3, 9), server.url, tmp_path, body=BODY))

        def cancel() -> None:
            flights = runner.load.flights.values()
            if len(flights) == 3 and all(flight.told_first_output for flight in flights):
                runner.loop.cancel()

        runner.housekeeping = cancel  # type: ignore[method-assign]
        rows = runner.run()
        deadline = time.monotonic() + 5
        while len(told) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert outcomes(rows) == {"cancelled": 3} and len(told) == 3
    assert all(row.output_events > 0 for row in rows)
