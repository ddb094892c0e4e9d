"""Where trials run: over real sockets, or in simulated time; everything above cannot tell them apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from nameplate.client import process
from nameplate.client.order import Finished, LoadOrder
from nameplate.client.process import Steer
from nameplate.contract.target import Credentials, Target
from nameplate.engines.adapter import Adapter
from nameplate.engines.clock import Clock, SystemClock
from nameplate.engines.transport import HttpTransport, Transport
from nameplate.engines.watch import Watcher
from nameplate.evidence.header import Clock as ClockKind
from nameplate.sim.app import App
from nameplate.sim.virtual import VirtualLoad, World

SECOND_NS = 1_000_000_000


class Ground(Protocol):
    """Supply time, a way to ask the server, and a way to carry out a load."""

    @property
    def kind(self) -> ClockKind: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def transport(self) -> Transport: ...

    def wall_ns(self) -> int:
        """Return the wall clock of the same moment as the ground's own clock now."""
        ...

    def carry(self, order: LoadOrder, steer: Steer) -> Finished:
        """Carry out a load; its evidence is in the order's directory when this returns or raises."""
        ...

    def watching(
        self, adapter: Adapter, path: Path, interval_ns: int = SECOND_NS
    ) -> AbstractContextManager[None]:
        """Append the server's state to `path` each interval while the context lasts."""
        ...


class LiveGround:
    """Run over real sockets: load and scraping in processes of their own."""

    kind: ClockKind = "live"

    def __init__(self, target: Target, credentials: Credentials) -> None:
        self.clock: Clock = SystemClock()
        self.transport: Transport = HttpTransport(target, credentials)
        self._credentials = credentials

    def wall_ns(self) -> int:
        return time.time_ns()

    def carry(self, order: LoadOrder, steer: Steer) -> Finished:
        return process.carry(order, steer)

    @contextmanager
    def watching(self, adapter: Adapter, path: Path, interval_ns: int = SECOND_NS) -> Iterator[None]:
        if adapter.metrics_path is None:
            yield
            return
        watcher = Watcher(adapter, self._credentials, path, interval_ns / SECOND_NS)
        watcher.start()
        try:
            yield
        finally:
            watcher.stop()


class VirtualGround:
    """Run against the built-in engine in simulated time."""

    kind: ClockKind = "virtual"

    def __init__(self, app: App) -> None:
        self._world = World(app)
        self.clock: Clock = self._world
        self.transport: Transport = self._world
        self._wall_offset_ns = time.time_ns() - self._world.now_ns()

    def wall_ns(self) -> int:
        return self._wall_offset_ns + self._world.now_ns()

    def go_on_after(self, wall_ns: int) -> None:
        """Let the wall clock be at least here: what was simulated before took longer than it took us."""
        self._wall_offset_ns = max(self._wall_offset_ns, wall_ns - self._world.now_ns())

    def carry(self, order: LoadOrder, steer: Steer) -> Finished:
        return VirtualLoad(self._world, order, steer).run()

    def watching(
        self, adapter: Adapter, path: Path, interval_ns: int = SECOND_NS
    ) -> AbstractContextManager[None]:
        del adapter
        return self._world.sampling(path, interval_ns)
