"""The live server: the simulated app on real sockets and the machine's monotonic clock, in one thread."""

import gc
import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from nameplate import __version__
from nameplate.sim.app import App
from nameplate.sim.connection import Connection
from nameplate.sim.faults import Fault, FaultPlan
from nameplate.sim.http import HttpRequest, Output
from nameplate.sim.presets import Preset
from nameplate.sim.sockets import Sockets, StopSignals, listen, raise_descriptor_limit, url_of
from nameplate.sim.truth import TruthLog

_DEATH = 70  # EX_SOFTWARE: what the fault `die` exits with


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Say where and how to serve.

    Port 0 takes a free one; `keep_alive_s` is uvicorn's default; `until_eof` is a pipe whose end ends the server.
    """

    host: str = "127.0.0.1"
    port: int = 0
    api_key: str | None = None
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    log: Path | None = None
    log_events: bool = False
    keep_alive_s: float = 5.0
    max_connections: int = 4_096
    until_eof: int | None = None


def serve(preset: Preset, options: ServeOptions, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `on_ready` gets the URL. Call it in the main thread; raises OSError."""
    raise_descriptor_limit()
    listener = listen(options.host, options.port)
    started_ns = time.monotonic_ns()
    app = App(
        preset,
        api_key=options.api_key,
        faults=FaultPlan(options.faults),
        seed=options.seed,
        epoch_s=int(time.time() - started_ns * 1e-9),
        started_ns=started_ns,
    )
    about: dict[str, object] = {
        "version": __version__,
        "preset": preset.name,
        "seed": options.seed,
        "pid": os.getpid(),
        "clock": "monotonic",
    }
    log = TruthLog(options.log, about, events=options.log_events)
    signals = StopSignals()

    def on_request(connection: Connection, request: HttpRequest, now_ns: int) -> None:
        app.handle(connection.number, request, now_ns)

    def on_lost(connection: Connection, now_ns: int) -> None:
        app.cancel(connection.number, now_ns)

    def open_on(listener: socket.socket) -> Sockets:
        sockets = Sockets(
            listener,
            on_request,
            on_lost,
            keep_alive_s=options.keep_alive_s,
            max_connections=options.max_connections,
        )
        for reader in enders:
            sockets.stop_on(reader)
        return sockets

    enders: list[socket.socket | int] = [
        signals.reader,
        *([] if options.until_eof is None else [options.until_eof]),
    ]
    sockets = open_on(listener)
    try:
        on_ready(url_of(listener))
        gc.collect()
        gc.freeze()  # a full collection must not fall into somebody's measured latency
        while sockets.turn(app.next_ns()):
            for output in app.advance(time.monotonic_ns()):
                if output.end == "exit":
                    _write_served(app, log)
                    if app.away_ns is None:
                        os._exit(_DEATH)
                    port = listener.getsockname()[1]
                    sockets.close()
                    if select.select(enders, [], [], app.away_ns * 1e-9)[0]:
                        return
                    listener = listen(options.host, port)
                    app.restart(time.monotonic_ns())
                    sockets = open_on(listener)
                    break
                _send(sockets, log, output)
            _write_served(app, log)
    finally:
        sockets.close()
        _write_served(app, log)
        log.close()
        signals.close()


def _send(sockets: Sockets, log: TruthLog, output: Output) -> None:
    connection = sockets.get(output.connection)
    if connection is None:
        return
    if output.end == "reset":
        sockets.reset(connection)
        return
    sockets.send(connection, output.data, done=output.end != "more", close=output.end == "close")
    if log.wanted:
        log.sent(output, time.monotonic_ns())


def _write_served(app: App, log: TruthLog) -> None:
    if app.served:
        for served in app.served:
            log.finished(served)
        app.served.clear()
        log.flush()
