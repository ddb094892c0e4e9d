"""Holding streams: wait until they are ready, let a fixed window pass, end the load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate.client.order import Progress
from nameplate.client.process import Command
from nameplate.contract.plan import TrialPlan
from nameplate.engines.state import ServerSample
from nameplate.measure.held import Held
from nameplate.measure.readiness import EXTRA_PATIENCE, Gate, Restarts
from nameplate.schedule.stage import Requests, stages_of
from nameplate.trial.interruption import Interruption
from nameplate.wire.outcome import Outcome

_FINE = (Outcome.ok, Outcome.cancelled)

Decide = Callable[[Held], None]
Show = Callable[[Progress, Mapping[int, int]], None]


class SampleTail:
    """Read the samples that a growing file gains, and keep those of the last `keep_ns`."""

    def __init__(self, path: Path, keep_ns: int) -> None:
        self._path = path
        self._keep_ns = keep_ns
        self._offset = 0
        self._rest = b""
        self.samples: list[ServerSample] = []

    def read(self, now_ns: int) -> list[ServerSample]:
        """Return the samples kept, with those that are new; a line that is no sample is left to who reads evidence."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return self.samples
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                self.samples.append(msgspec.json.decode(line, type=ServerSample))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
        self.samples = [sample for sample in self.samples if sample.t_ns >= now_ns - self._keep_ns]
        return self.samples


class HoldSteering:
    """Steer a held load by its reports: `decide` takes the one decision that its evidence is later judged by.

    Times are those of the reports: what arrives before and after is recorded with its own stamps, so a late decision
    moves the window and falsifies nothing.
    """

    def __init__(
        self,
        plan: TrialPlan,
        interruption: Interruption,
        tail: SampleTail,
        decide: Decide,
        show: Show,
        *,
        server_tells: bool,
    ) -> None:
        assert plan.hold is not None
        self._hold = plan.hold
        self._streams = plan.concurrency
        self._requests = Requests(plan)
        self._first_index = stages_of(plan)[-1].first_index
        self._gate = Gate(plan.concurrency, plan.hold.stable_ns)
        self._interruption = interruption
        self._tail = tail
        self._decide = decide
        self._show = show
        self._server_tells = server_tells
        self._began_ns: int | None = None
        self._produced: dict[int, int] = {}
        self._restarts: list[tuple[int, int, int]] = []
        self._ttfts_ns: dict[int, int] = {}
        self._end_ns: int | None = None
        self._ready_ns: int | None = None
        self._released_ns: int | None = None
        self._failed = False
        self._cancelled = False

    def __call__(self, progress: Progress) -> Command | None:
        self._take(progress)
        self._show(progress, self._ttfts_ns)
        if self._cancelled:
            return None
        if self._interruption.command() is not None:
            # A cell that is cut short is void: its streams have thousands of tokens to go, and need not be awaited.
            return self._cancel()
        if progress.stage != "measured":
            return self._cancel() if self._failed else None
        if self._began_ns is None:
            self._began_ns = progress.t_ns
        if self._ready_ns is None:
            return self._await_ready(progress, self._began_ns)
        return self._pass_window(progress)

    def _take(self, progress: Progress) -> None:
        for index, ttft_ns in progress.first_outputs:
            phase = self._requests.phase(index)
            self._ttfts_ns[index] = ttft_ns
            if phase == "opening":
                self._produced.setdefault(index - self._first_index, progress.t_ns)
            elif phase == "steady":
                self._restarts.append((self._stream(index), progress.t_ns - ttft_ns, progress.t_ns))
            elif self._released_ns is not None and self._end_ns is None:
                assert self._hold.arrival is not None
                self._end_ns = progress.t_ns + self._hold.arrival.after_ns
        for row in progress.rows:
            self._ttfts_ns.pop(row.index, None)
            # An empty answer is no output, and its stream would start again at once, for ever.
            empty = row.outcome == Outcome.ok and not row.output_events
            self._failed = self._failed or empty or row.outcome not in _FINE
        keep_ns = progress.t_ns - 2 * EXTRA_PATIENCE * self._hold.stable_ns
        self._restarts = [restart for restart in self._restarts if restart[2] >= keep_ns]

    def _await_ready(self, progress: Progress, began_ns: int) -> Command | None:
        now_ns, hold = progress.t_ns, self._hold
        samples = self._tail.read(now_ns)
        firsts = list(self._produced.values())
        deadline_ns = began_ns + hold.ready_ns
        restarting = [
            (self._stream(index), sent, now_ns)
            for index, sent in progress.waiting_since
            if self._requests.phase(index) == "steady"
        ]
        restarts = Restarts([*self._restarts, *restarting])
        held = Held(
            streams_began_ns=began_ns,
            decided_ns=now_ns,
            deadline_ns=deadline_ns,
            saw=self._gate.look(now_ns, firsts, samples),
            server_tells=self._server_tells,
        )
        if self._failed:
            self._decide(
                structs.replace(
                    held, gave_up="a request failed or had an empty answer while the streams started"
                )
            )
            return self._cancel()
        if self._gate.ready(now_ns, firsts, samples, restarts, self._server_tells):
            self._ready_ns = now_ns
            end_ns = None if hold.arrival is not None else now_ns + hold.window_ns
            self._end_ns = end_ns
            self._decide(structs.replace(held, begin_ns=now_ns, end_ns=end_ns))
            return None
        if now_ns >= deadline_ns:
            limit = f"not ready within {hold.ready_ns / 1e9:.0f} s"
            self._decide(structs.replace(held, gave_up=limit))
            return self._cancel()
        if self._gate.crowded(now_ns, firsts, samples):
            self._decide(structs.replace(held, gave_up="more than ours ran on and on"))
            return self._cancel()
        return None

    def _pass_window(self, progress: Progress) -> Command | None:
        now_ns, arrival = progress.t_ns, self._hold.arrival
        if self._failed or (self._end_ns is not None and now_ns >= self._end_ns):
            return self._cancel()
        if arrival is not None and self._ready_ns is not None:
            if self._released_ns is None:
                if now_ns >= self._ready_ns + arrival.before_ns:
                    self._released_ns = now_ns
                    return "release"
            elif self._end_ns is None and now_ns >= self._released_ns + arrival.deadline_ns:
                return self._cancel()
        return None

    def _cancel(self) -> Command:
        self._cancelled = True
        return "cancel"

    def _stream(self, index: int) -> int:
        return self._requests.prompt(index) - self._first_index
