"""Scrape a server's state over time in a process of its own, so that parsing never disturbs the client.

`python -m nameplate.engines.watch` reads one JSON line (an `Order`) from stdin, appends a `ServerSample` a line to the
file, and ends when stdin closes. Secrets come in by stdin and go nowhere else.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct, structs

from nameplate.companion import Companion, beats
from nameplate.contract.target import Credentials, Target
from nameplate.engines.adapter import Adapter
from nameplate.engines.clock import SystemClock
from nameplate.engines.detect import adapter_named
from nameplate.engines.state import ServerSample, ServerState
from nameplate.engines.transport import HttpTransport

INTERVAL_S = 1.0
_SHORTEST_INTERVAL_S = 0.05  # a page takes a server a few milliseconds of its own time
_ORDER_LIMIT_BYTES = 1 << 20


class Order(Struct, frozen=True):
    """Hold what the child needs; `headers` hold keys, so an order is never written anywhere."""

    target: Target
    headers: tuple[tuple[str, str], ...]
    engine: str
    path: str | None = None
    interval_s: float = INTERVAL_S

    def __repr__(self) -> str:
        return f"Order({self.target.url}, {self.engine}, {self.path}, {self.interval_s} s)"


def sample(adapter: Adapter) -> ServerSample:
    """Scrape once; a failed scrape is a sample with its error."""
    start_ns = adapter.clock.now_ns()
    state = adapter.state()
    return ServerSample.of(state, adapter.clock.now_ns() - start_ns)


def watch(order: Order, file: BinaryIO, stdin: int) -> int:
    """Append a sample each interval until `stdin` closes; return the number of lines written."""
    transport = HttpTransport(order.target, Credentials(order.headers))
    adapter = adapter_named(order.engine, transport, order.target, SystemClock(), order.path)
    interval_s = max(_SHORTEST_INTERVAL_S, order.interval_s)
    encoder = msgspec.json.Encoder()
    lines = 0
    for _ in beats(stdin, interval_s):
        try:
            row = sample(adapter)
        except Exception as error:  # a watcher that dies would look like a server that fell silent
            text = f"the scrape failed inside: {type(error).__name__}"
            row = ServerSample.of(ServerState(time.monotonic_ns(), error=text))
        file.write(encoder.encode(row) + b"\n")
        file.flush()
        lines += 1
    return lines


class Watcher:
    """Start and stop one watching process; it ends its own child and no other."""

    def __init__(
        self, adapter: Adapter, credentials: Credentials, file: Path, interval_s: float = INTERVAL_S
    ) -> None:
        self._order = Order(
            structs.replace(adapter.target, extra_body={}),
            credentials.headers,
            adapter.name,
            adapter.metrics_path,
            interval_s,
        )
        self._companion = Companion(
            "nameplate.engines.watch", os.fspath(file), task="reads the server's metrics"
        )

    @property
    def running(self) -> bool:
        return self._companion.running

    def start(self) -> None:
        """Start the child; ClientError where it cannot be started."""
        self._companion.start(msgspec.json.encode(self._order) + b"\n")

    def stop(self) -> int | None:
        """Close its stdin and wait; return its exit status, None if it was never started."""
        return self._companion.stop()


def read_order(stdin: int) -> Order:
    """Read one line byte by byte, so that nothing of what follows is taken from the selector."""
    line = bytearray()
    while len(line) < _ORDER_LIMIT_BYTES and (byte := os.read(stdin, 1)) and byte != b"\n":
        line += byte
    return msgspec.json.decode(bytes(line), type=Order)


def main() -> int:
    """Run as the child: `python -m nameplate.engines.watch FILE`, the order on stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        order = read_order(0)
    except msgspec.DecodeError:
        return 2
    with Path(sys.argv[1]).open("ab") as file:
        watch(order, file, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
