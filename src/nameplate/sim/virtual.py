"""Simulated time: the same load, the same bytes and the same evidence, without sockets and without waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate.client.asks import StoredAsks
from nameplate.client.bodies import Bodies
from nameplate.client.endurance import Endurance
from nameplate.client.flight import Flight
from nameplate.client.load import Load
from nameplate.client.order import Finished, LoadOrder
from nameplate.client.process import Steer
from nameplate.client.recorder import Recorder
from nameplate.contract.errors import ServerError
from nameplate.contract.target import Target
from nameplate.engines.failures import failure
from nameplate.engines.state import ServerSample
from nameplate.engines.transport import LIMIT_BYTES, Reply
from nameplate.evidence.writer import QUEUE_BLOCKS, EvidenceWriter
from nameplate.prompts.store import PromptStore
from nameplate.sim.app import App
from nameplate.sim.http import HttpRequest, Output
from nameplate.wire.http import ResponseReader
from nameplate.wire.outcome import Ending

SECOND_NS = 10**9
REPORT_EVERY_NS = SECOND_NS // 5
# A soak is written as it goes; simulated time runs ahead of a disk, which is waited for.
FLUSH_EVERY_NS = 10 * SECOND_NS
SIMULATED = Target("http", "sim", 80)


class World:
    """Hold one simulated server and its time; whatever waits lets that time pass."""

    def __init__(self, app: App, now_ns: int = 0) -> None:
        self.app = app
        self._now_ns = now_ns
        self._connections = 0
        self._takers: dict[int, Callable[[Output], None]] = {}
        self._sampler: Callable[[int], None] | None = None
        self._next_sample_ns = 0
        self._interval_ns = SECOND_NS
        self.down = False
        self._back_ns: int | None = None

    # -- clock ----------------------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        return self._now_ns

    def sleep_ns(self, duration_ns: int) -> None:
        """Let time pass; what the server still sends meanwhile goes to whoever asked for it."""
        self.pass_until(self._now_ns + max(0, duration_ns))

    def next_ns(self) -> int | None:
        """Return when the server does something next; None when it will not without a request."""
        next_ns = self.app.next_ns()
        if self._back_ns is None or (next_ns is not None and next_ns < self._back_ns):
            return next_ns
        return self._back_ns

    def pass_until(self, to_ns: int) -> None:
        """Advance to a moment, event by event."""
        while True:
            next_ns = self.next_ns()
            at_ns = to_ns if next_ns is None else min(next_ns, to_ns)
            self.step(at_ns)
            if at_ns >= to_ns:
                return

    def step(self, to_ns: int) -> None:
        """Advance to a moment at or before the server's next event, and deliver what it sends."""
        while self._sampler is not None and self._next_sample_ns <= to_ns:
            self._now_ns = max(self._now_ns, self._next_sample_ns)
            self._next_sample_ns += self._interval_ns
            self._sampler(self._now_ns)
        self._now_ns = max(self._now_ns, to_ns)
        if self._back_ns is not None and self._now_ns >= self._back_ns:
            self.app.restart(self._now_ns)
            self.down, self._back_ns = False, None
        for output in self.app.advance(self._now_ns):
            if output.end == "exit":
                self._exit()
            take = self._takers.get(output.connection)
            if take is not None:
                take(output)

    def _exit(self) -> None:
        """End the server's process; it may come back."""
        self.down = True
        if self.app.away_ns is not None:
            self._back_ns = self._now_ns + self.app.away_ns

    # -- connections ----------------------------------------------------------------------------------------------

    def open(self, take: Callable[[Output], None]) -> int:
        """Open a connection whose outputs go to `take`."""
        self._connections += 1
        self._takers[self._connections] = take
        return self._connections

    def close(self, connection: int) -> None:
        if self._takers.pop(connection, None) is not None:
            self.app.cancel(connection, self._now_ns)

    def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float = 10.0,
        limit_bytes: int = LIMIT_BYTES,
    ) -> Reply:
        """Fetch one answer in simulated time, as `engines.transport.Transport` has it."""
        del limit_bytes
        if self.down:
            raise failure("refused", SIMULATED)
        reader, parts, ends = ResponseReader(), [], []

        def take(output: Output) -> None:
            parts.append(reader.feed(output.data))
            if output.end != "more":
                ends.append(output.end)

        connection = self.open(take)
        headers = {"content-type": "application/json"}
        self.app.handle(connection, HttpRequest(method, path, headers, body or b""), self._now_ns)
        deadline_ns = self._now_ns + round(timeout_s * SECOND_NS)
        while not ends:
            next_ns = self.next_ns()
            if next_ns is None or next_ns > deadline_ns:
                self.pass_until(deadline_ns)
                self.close(connection)
                raise failure("timeout", SIMULATED, f"{timeout_s:g} s")
            self.step(next_ns)
        self.close(connection)
        if ends[0] in ("reset", "exit") or reader.status is None:
            raise failure("reset", SIMULATED)
        return Reply(reader.status, tuple(reader.headers), b"".join(parts))

    # -- state over time ------------------------------------------------------------------------------------------

    @contextmanager
    def sampling(self, path: Path, interval_ns: int = SECOND_NS) -> Iterator[None]:
        """Append the server's state to a file each interval, without the detour over its metrics page.

        Each line is in the file when its moment has passed, so whoever reads the growing file has it. Raises
        ValueError for an interval below one nanosecond.
        """
        if interval_ns < 1:
            raise ValueError(f"an interval of {interval_ns} ns would never let time pass")
        with path.open("ab") as stream:

            def sample(t_ns: int) -> None:
                stream.write(msgspec.json.encode(self.sample(t_ns)) + b"\n")
                stream.flush()

            self._sampler, self._next_sample_ns, self._interval_ns = sample, self._now_ns, interval_ns
            try:
                yield
            finally:
                self._sampler = None

    def sample(self, t_ns: int) -> ServerSample:
        """Return the engine's state as one line of `server.jsonl`: all that its metrics page would have given."""
        if self.down:
            return ServerSample(t_ns=t_ns, error=failure("refused", SIMULATED).what)
        engine = self.app.engine
        state, counters, histograms = engine.state(), engine.counters, engine.histograms
        speculative = engine.parameters.draft_tokens > 0
        return ServerSample(
            t_ns=t_ns,
            running=state.running + self.app.phantom_running,
            waiting=state.waiting,
            kv_usage_mean=state.kv_use,
            kv_usage_max=state.kv_use,
            preemptions_total=counters.preemptions,
            prompt_tokens_total=counters.prompt_tokens,
            output_tokens_total=counters.generation_tokens,
            cached_tokens_total=counters.cached_tokens,
            cache_query_tokens_total=counters.prefix_queries,
            cache_hit_tokens_total=counters.prefix_hits,
            spec_drafts_total=counters.drafts if speculative else None,
            spec_draft_tokens_total=counters.draft_tokens if speculative else None,
            spec_accepted_tokens_total=counters.accepted_tokens if speculative else None,
            finished=tuple(sorted(counters.finished().items())),
            process_start_time_s=self.app.started_s,
            queue_s=histograms.queue.total,
            prefill_s=histograms.prefill.total,
            decode_s=histograms.decode.total,
            ttft_s=histograms.ttft.total,
            e2e_s=histograms.e2e.total,
        )


class VirtualLoad:
    """Drive one load in simulated time."""

    def __init__(self, world: World, order: LoadOrder, steer: Steer) -> None:
        self._world = world
        self._order = order
        self._steer = steer
        self._writer = EvidenceWriter(Path(order.directory))
        self._recorder = Recorder(self._writer.put, order.keeping)
        store = PromptStore.open(Path(order.prompts_path))
        self._load = Load(order, self._recorder, ask=StoredAsks(store) if order.soak else None)
        self._endurance = (
            Endurance(order, self._load, self._recorder, self._writer, store) if order.soak else None
        )
        self._bodies = Bodies(store, order.target, order.credentials)
        self._flights: dict[int, Flight] = {}
        self._flushed_ns = 0

    def run(self) -> Finished:
        """Run every stage; ServerError where the simulated server is down."""
        try:
            self._run()
        finally:
            self._recorder.flush()
            self._writer.close()
        return Finished(
            cancelled=self._load.cancelled,
            overrun=self._load.overrun,
            failure=self._writer.failure or self._load.failure,
            reads=self._load.reads,
        )

    def _run(self) -> None:
        load, world = self._load, self._world
        report_ns = world.now_ns() + REPORT_EVERY_NS
        while not load.finished:
            if load.stage_over:
                if load.stopping:
                    break
                if world.down:
                    # What failed with the server has its rows first.
                    load.parse(2**62, world.now_ns)
                    raise ServerError("The simulated server is down.", hint="Start it again.")
                load.agenda.begin(world.now_ns())
            self._start_due()
            if load.stage_over and not load.flights:
                continue
            times = [t for t in (world.next_ns(), load.agenda.next_ns(), report_ns) if t is not None]
            world.step(max(world.now_ns(), min(times)))
            now_ns = world.now_ns()
            load.parse(2**62, world.now_ns)
            if now_ns >= report_ns:
                report_ns = now_ns + REPORT_EVERY_NS
                for flight, ending in load.overdue(now_ns):
                    load.failed(flight, now_ns, ending)
                    self._close_of(flight)
                # What ended by a deadline must be accounted for before the stage counts as over.
                load.parse(2**62, world.now_ns)
                if load.broke_off and load.flights:
                    self._cancel(now_ns)
                self._report(now_ns)
        load.parse(2**62, world.now_ns)
        self._report(world.now_ns())

    def _report(self, now_ns: int) -> None:
        progress = self._load.take_progress(now_ns)
        if self._endurance is not None:
            self._flush(now_ns)
            self._endurance.look(now_ns)
            progress = structs.replace(progress, kept=self._endurance.take_changes())
        # Nobody keeps a log of the requests that were served, and they may be millions.
        self._world.app.served.clear()
        command = self._steer(progress)
        if command == "stop":
            self._load.stop(now_ns)
        elif command == "release":
            self._load.agenda.release(self._world.now_ns())
        elif command == "cancel":
            self._cancel(now_ns)

    def _flush(self, now_ns: int) -> None:
        if now_ns - self._flushed_ns < FLUSH_EVERY_NS:
            return
        self._flushed_ns = now_ns
        while self._writer.queued > QUEUE_BLOCKS // 2 and self._writer.failure is None:
            time.sleep(0.001)
        self._recorder.flush()

    def _cancel(self, now_ns: int) -> None:
        for flight in self._load.cancel(now_ns):
            self._close_of(flight)
        self._load.parse(2**62, self._world.now_ns)

    def _close_of(self, flight: Flight) -> None:
        for connection, owner in list(self._flights.items()):
            if owner is flight:
                del self._flights[connection]
                self._world.close(connection)

    def _start_due(self) -> None:
        load, world = self._load, self._world
        now_ns = world.now_ns()
        while (flight := load.pop_due(now_ns)) is not None:
            if world.down:
                load.failed(flight, now_ns, Ending.connect_failed, "connection refused")
                continue
            connection = world.open(self._take)
            self._flights[connection] = flight
            _head, _blank, body = self._bodies.request(flight.prompt).partition(b"\r\n\r\n")
            load.sent(flight, now_ns)
            load.body_sent(flight, now_ns)
            headers = {
                "content-type": "application/json",
                **{n.lower(): v for n, v in self._order.credentials.headers},
            }
            request = HttpRequest("POST", self._order.target.generate_path, headers, body)
            world.app.handle(connection, request, now_ns)

    def _take(self, output: Output) -> None:
        flight = self._flights.get(output.connection)
        if flight is None:
            return
        t_ns = max(output.t_ns, flight.sent_ns or 0)
        over = bool(output.data) and self._load.received(flight, t_ns, 0, 0, output.data)
        if output.end == "more" and not over:
            return
        del self._flights[output.connection]
        if not over:
            if output.end == "close":
                self._load.closed(flight, t_ns)
            else:
                self._load.failed(flight, t_ns, Ending.reset, "the connection was reset")
        self._world.close(output.connection)
        if output.end == "exit":
            for connection, other in list(self._flights.items()):
                self._load.failed(other, t_ns, Ending.reset, "the connection was reset")
                self._world.close(connection)
            self._flights.clear()
