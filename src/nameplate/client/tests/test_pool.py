"""Connections that cannot be had: refused, hanging, gone and back, or too many for this machine."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

import msgspec
import pytest

from nameplate.client.connection import Connection
from nameplate.client.tests.orders import BODY, HEAD, chunk, event, order_of, plan_of
from nameplate.client.tests.runs import Run, outcomes, run
from nameplate.client.tests.servers import keep_alive, read_request, reset, serving, whole_answer
from nameplate.contract.deadlines import SECOND_NS, Deadlines
from nameplate.contract.errors import ClientError, ServerError

pytestmark = pytest.mark.live
SHORT = Deadlines(SECOND_NS, 2 * SECOND_NS, SECOND_NS, 5 * SECOND_NS)


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
