"""Run a load process against a server and read back what it wrote."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

from nameplate.client.bodies import Bodies
from nameplate.client.counter import LocalCounter
from nameplate.client.load import Load
from nameplate.client.loop import Loop
from nameplate.client.order import LoadOrder
from nameplate.client.recorder import Recorder
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Record
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.writer import EvidenceWriter
from nameplate.prompts.store import PromptStore


class Run:
    """Run an order's loop in this process; rows and records are read from disk afterwards."""

    def __init__(self, order: LoadOrder) -> None:
        self.order = order
        self.directory = Path(order.directory)
        self._writer = EvidenceWriter(self.directory)
        self._recorder = Recorder(self._writer.put, order.keeping)
        self.load = Load(order, self._recorder, LocalCounter())
        bodies = Bodies(PromptStore.open(Path(order.prompts_path)), order.target, order.credentials)
        self.loop = Loop(order, self.load, bodies, self._housekeeping)
        self.calls = 0

    def _housekeeping(self, now_ns: int) -> None:
        del now_ns
        self.calls += 1
        self.housekeeping()

    def housekeeping(self) -> None:
        """Look in ten times a second; tests replace it."""

    def run(self, limit_s: float = 20.0) -> list[RequestRow]:
        """Run to the end and return the rows by index; a load that does not end is cancelled and fails."""
        over = threading.Event()

        def watch() -> None:
            if not over.wait(limit_s):
                self.housekeeping = self.loop.cancel  # type: ignore[method-assign]

        threading.Thread(target=watch, daemon=True).start()
        try:
            self.loop.run()
        finally:
            late = self.housekeeping == self.loop.cancel
            over.set()
            self._recorder.flush()
            self._writer.close()
        assert not late, "the load did not end by itself"
        assert self._writer.failure is None
        return TrialReader(self.directory).rows()

    def records(self) -> list[Record]:
        """Read the wire's records back."""
        return list(TrialReader(self.directory).records())


def run(order: LoadOrder) -> list[RequestRow]:
    """Run an order and return its rows."""
    return Run(order).run()


def outcomes(rows: list[RequestRow]) -> Counter[str]:
    """Count outcomes."""
    return Counter(row.outcome for row in rows)
