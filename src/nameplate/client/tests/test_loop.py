"""The loop over real sockets, against servers that do what real ones do."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from nameplate.client.connection import Connection
from nameplate.client.tests.orders import BODY, HEAD, answer, chunk, event, order_of, plan_of
from nameplate.client.tests.runs import Run, run
from nameplate.client.tests.servers import keep_alive, read_request, reset, serving, whole_answer
from nameplate.contract.deadlines import SECOND_NS, Deadlines
from nameplate.contract.errors import ClientError, ServerError
from nameplate.evidence.records import Kind
from nameplate.evidence.rows import RequestRow

pytestmark = pytest.mark.live
SHORT = Deadlines(SECOND_NS, 2 * SECOND_NS, SECOND_NS, 5 * SECOND_NS)


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between the attempts before a load gives up a server."""
    monkeypatch.setattr("nameplate.client.loop.REOPEN_EVERY_NS", 10_000_000)


def outcomes(rows: list[RequestRow]) -> Counter[str]:
    """Count outcomes."""
    return Counter(row.outcome for row in rows)


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
    assert all(record.delay_ns <= record.since_empty_ns + 200_000 for record in stamped)


def test_a_refused_connection_names_the_server(tmp_path: Path) -> None:
    """Where nothing listens, the error says refused, and blames the server."""
    with serving(keep_alive) as server:
        url = server.url
    with pytest.raises(ServerError, match="refused") as caught:
        Run(order_of(plan_of(2, 4), url, tmp_path, body=BODY)).run()
    assert caught.value.exit_code == 5 and url in str(caught.value)


def test_a_server_that_never_accepts_is_named_within_the_connect_deadline(tmp_path: Path) -> None:
    """Connections that stay half-open are no connections: the load does not begin."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        time.sleep(0.1)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ServerError, match="connect deadline"):
            Run(order_of(plan_of(2, 4), url, tmp_path, body=BODY, deadlines=SHORT)).run()
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "x" * 80])
def test_a_host_without_an_address_is_named(
    tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that do not resolve, or cannot be names, are the server's address being wrong."""
    if host.endswith(".invalid"):

        def unknown(*_arguments: object, **_options: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
    order = order_of(plan_of(1, 1), "http://h", tmp_path, body=BODY)
    order = msgspec.structs.replace(order, target=msgspec.structs.replace(order.target, host=host))
    with pytest.raises(ServerError, match="cannot be resolved"):
        Run(order)


def test_a_server_that_dies_ends_the_load_in_bounded_time(tmp_path: Path) -> None:
    """After a crash what was in flight is reset, what follows fails to connect, each with a row, and the load ends
    soon: no request is retried."""

    def streams_for_ever(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(HEAD)
        while True:
            connection.sendall(chunk(event("a")))
            time.sleep(0.01)

    with serving(streams_for_ever) as server:
        runner = Run(order_of(plan_of(4, 16), server.url, tmp_path, body=BODY))

        def die() -> None:
            flights = runner.load.flights.values()
            if len(flights) == 4 and all(flight.told_first_output for flight in flights):
                server.die()

        runner.housekeeping = die  # type: ignore[method-assign]
        began = time.monotonic()
        rows = runner.run()
    assert time.monotonic() - began < 5
    assert outcomes(rows) == {"reset": 4, "connect_failed": 12}
    assert all("refused" in (row.error or "") for row in rows if row.outcome == "connect_failed")


def test_a_server_that_comes_back_is_used_again(tmp_path: Path) -> None:
    """A request that finds no server fails; later ones are served again on new connections."""
    fails = 3

    def first_is_reset(connection: socket.socket, number: int) -> None:
        if number < fails:
            read_request(connection)
            reset(connection)
            return
        keep_alive(connection, number)

    with serving(first_is_reset) as server:
        rows = run(order_of(plan_of(2, 12), server.url, tmp_path, body=BODY))
    assert outcomes(rows) == {"ok": 9, "reset": 3}


def test_a_connection_that_hangs_while_opening_blocks_nobody_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that never finish opening are given up at the connect deadline, and others are tried."""
    seen: list[Connection] = []
    real = Connection.advance_opening

    def hangs(connection: Connection) -> bool:
        if connection not in seen:
            seen.append(connection)
        return seen.index(connection) not in (1, 2) and real(connection)

    def once(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(whole_answer(4, b"Connection: close"))

    monkeypatch.setattr(Connection, "advance_opening", hangs)
    deadlines = Deadlines(300_000_000, 2 * SECOND_NS, SECOND_NS, 5 * SECOND_NS)
    with serving(once) as server:
        rows = run(order_of(plan_of(1, 6), server.url, tmp_path, body=BODY, deadlines=deadlines))
    assert [row.outcome for row in rows] == ["ok", "timed_out_connect", "ok", "ok", "ok", "ok"]


def test_this_machines_limits_are_not_the_servers_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of descriptors before the load begins: a client's error that says how many were reached."""
    real, opened = socket.socket, 0

    class Limited(real):  # type: ignore[valid-type, misc]
        """Fail like a process at its limit of open files."""

        def connect_ex(self, address: object) -> int:
            nonlocal opened
            opened += 1
            if opened > 3:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return int(super().connect_ex(address))

    with serving(keep_alive) as server:
        monkeypatch.setattr(socket, "socket", Limited)
        with pytest.raises(ClientError, match=r"3 of 8 connections are open.*Too many open files") as caught:
            Run(order_of(plan_of(8, 16), server.url, tmp_path, body=BODY)).run()
        monkeypatch.undo()
    assert caught.value.exit_code == 4


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
