"""What a load of hours needs beside its loop: prompts as they are written, bounds, and a look at itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from nameplate.client.budget import RawBudget
from nameplate.client.lag import Lag
from nameplate.client.load import Load
from nameplate.client.order import LoadOrder
from nameplate.client.recorder import Recorder
from nameplate.client.self_sample import self_sample
from nameplate.evidence.client_sample import ClientSample
from nameplate.evidence.soak_events import RawKept
from nameplate.evidence.writer import EvidenceWriter
from nameplate.prompts.store import PromptStore

# New prompts are looked at in portions: each costs some 5 us of the loop's time.
REFRESH_AT_MOST = 500


class Endurance:
    """Keep house for one soak's load; `look` is called some ten times a second.

    `clocks` reads the monotonic and the wall clock together; None in simulated time, where there is no wall clock.
    """

    def __init__(
        self,
        order: LoadOrder,
        load: Load,
        recorder: Recorder,
        writer: EvidenceWriter,
        store: PromptStore,
        clocks: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        assert order.soak is not None
        self._worker = order.worker
        self._load = load
        self._recorder = recorder
        self._writer = writer
        self._store = store
        self._clocks = clocks
        self._budget = RawBudget.of(order.soak, order.keeping, order.worker, order.workers)
        self._interval_ns = order.soak.client_sample_ns
        self._next_ns = 0
        self._changes: list[RawKept] = []
        self._encode = msgspec.json.Encoder().encode
        # Of a budget that earlier segments have spent, not even the first requests are kept.
        self._weigh(0)

    def look(self, now_ns: int) -> None:
        """Take new prompts into account, decide what is kept of raw reads, and sample this process when it is due."""
        self._store.refresh(REFRESH_AT_MOST)
        began_ns = self._load.agenda.began_ns
        self._weigh(0 if began_ns is None else now_ns - began_ns)
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + self._interval_ns
            self._recorder.client(self._encode(self._sample(now_ns)) + b"\n")

    def _weigh(self, passed_ns: int) -> None:
        if self._budget.look(passed_ns, self._writer.reads_bytes, self._writer.free_bytes):
            self._recorder.keeping = self._budget.keeping
            assert self._budget.told is not None
            self._changes.append(self._budget.told)

    def take_changes(self) -> tuple[RawKept, ...]:
        """Return what changed in what is kept since the last call."""
        changes, self._changes = tuple(self._changes), []
        return changes

    def _sample(self, now_ns: int) -> ClientSample:
        load, writer = self._load, self._writer
        t_ns, wall_ns = (now_ns, None) if self._clocks is None else self._clocks()
        lag, load.lag = load.lag, Lag()
        own = self_sample()
        return ClientSample(
            t_ns=t_ns,
            wall_ns=wall_ns,
            process="load",
            worker=self._worker,
            rss_bytes=own.rss_bytes,
            descriptors=own.descriptors,
            cpu_s=own.cpu_s,
            disk_free_bytes=writer.free_bytes,
            in_flight=len(load.flights),
            started=load.agenda.started,
            ended=load.agenda.ended,
            sent=lag.count,
            send_lag_max_ns=lag.largest_ns if lag.count else None,
            send_lag_mean_ns=lag.mean_ns,
            unparsed=load.unparsed,
            queued_blocks=writer.queued,
            reads_bytes=writer.reads_bytes,
        )
