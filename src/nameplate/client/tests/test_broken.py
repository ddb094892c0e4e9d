"""Bodies that can no longer become an answer: they are ended, named, and recomputed to the same row."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nameplate.client.tests.orders import BODY, HEAD, chunk, order_of, plan_of
from nameplate.client.tests.runs import Run
from nameplate.client.tests.servers import read_request, serving
from nameplate.evidence.records import Kind
from nameplate.measure.rebuild import rebuild
from nameplate.wire.sse import EVENT_LIMIT_BYTES

pytestmark = pytest.mark.live

HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "piece", "words"),
    [(HEAD, b"x", "exceed"), (HTML, b"<p>please sign in</p>", "HTML")],
)
def test_a_flood_is_cut_and_recomputes(tmp_path: Path, head: bytes, piece: bytes, words: str) -> None:
    """A body that goes on for ever past its limit is ended by us as malformed, long before any deadline, and its raw
    reads give the same row again."""
    sent = []

    def flood(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(head)
        data = chunk(piece * (65536 // len(piece)))
        try:
            while True:
                connection.sendall(data)
                sent.append(len(data))
        except OSError:
            pass

    with serving(flood) as server:
        load = Run(order_of(plan_of(1, 1), server.url, tmp_path, body=BODY))
        (row,) = load.run()
    assert row.outcome == "malformed" and row.error is not None and words in row.error
    assert sum(sent) < 64 * EVENT_LIMIT_BYTES
    records = load.records()
    assert records[-1].kind == Kind.BROKEN
    (again,) = rebuild(records, plan_of(1, 1), "chat", {}, {row.index: row})
    assert (again.row.outcome, again.row.error, again.row.end_ns) == (row.outcome, row.error, row.end_ns)
