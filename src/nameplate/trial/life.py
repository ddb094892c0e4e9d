"""One trial from beginning to seal: quiet, idle, flush, readiness, prompts, load, drain, measurement, manifest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from nameplate import __version__
from nameplate.client.order import Ask, LoadOrder, Progress
from nameplate.contract.contract import Contract
from nameplate.contract.errors import ClientError, Interrupted, NameplateError, ServerError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.target import Credentials
from nameplate.engines.flush import flush_when_idle
from nameplate.engines.idle import wait_idle
from nameplate.evidence import layout, manifest
from nameplate.evidence.header import ClockPair, Keeping, TrialHeader
from nameplate.evidence.journal import Journal
from nameplate.evidence.merge import merge_workers
from nameplate.evidence.writer import RESERVE_BYTES
from nameplate.measure import from_disk
from nameplate.measure.held import HELD
from nameplate.measure.readiness import EXTRA_PATIENCE
from nameplate.measure.result import TrialResult, encode, evaluate
from nameplate.schedule.stage import stages_of
from nameplate.trial.corpus import Corpus, warm_prefix, write_prompts
from nameplate.trial.draining import abort_what_goes_on, require_server, still_there
from nameplate.trial.feeding import Feeder
from nameplate.trial.holding import HoldSteering, SampleTail, Show
from nameplate.trial.interruption import Interruption
from nameplate.trial.pace import deadlines_of, scrape_ns
from nameplate.trial.prefilling import PrefillSteering
from nameplate.trial.site import Site
from nameplate.trial.soaking import SoakSetup, SoakSteering, soak_steering
from nameplate.trial.steering import Steering

IDLE_LIMIT_NS = 120 * 10**9
# Of a server that does not tell what it runs: what an engine takes to notice closed connections, and then some.
BLIND_DRAIN_NS = 2 * 10**9


class Watch(Protocol):
    """See what a study and its trials do, for a person's eyes."""

    def tell(self, text: str) -> None:
        """Take a sentence that stands for itself."""
        ...

    def finished(self, plan: TrialPlan, result: TrialResult, replayed: bool = False) -> None:
        """Take a trial's result; `replayed` says that it was sealed before and not run again."""
        ...

    def step(self, plan: TrialPlan, what: str) -> None:
        """Take what the trial is doing now, in a few words."""
        ...

    def progress(
        self, plan: TrialPlan, progress: Progress, ttfts_ns: Mapping[int, int], directory: Path
    ) -> None:
        """Take a load's report, with the measured TTFTs so far by index."""
        ...

    def estimate(self, left_s: float, done: int, of: int, note: str) -> None:
        """Take how long the study still takes, which of its steps are done, and a sentence about it or nothing."""
        ...


class TrialSetup(Struct, frozen=True, kw_only=True):
    """Hold what all trials of a study have in common; with `watch_gpus` this machine's GPUs are the server's."""

    site: Site
    contract: Contract
    credentials: Credentials
    keeping: Keeping
    command: tuple[str, ...]
    client_host: dict[str, str | int]
    interruption: Interruption
    watch: Watch
    workers: int = 1
    new_connections: bool = False
    raise_scheduling: bool = True
    watch_gpus: bool = False


def run_trial(
    setup: TrialSetup, plan: TrialPlan, corpus: Corpus, directory: Path, arrival: Corpus | None = None
) -> TrialResult:
    """Run one trial, seal it in `directory`, and return its result.

    `arrival` supplies the prompt of a request that arrives beside held streams.

    Raises ServerError where the server was lost and ClientError where this machine failed; what was recorded until
    then is on disk, without a result.
    """
    try:
        carry_trial(setup, plan, corpus, directory, arrival)
    except Interrupted:
        raise
    except NameplateError:
        _seal_what_is_there(directory)
        raise
    return seal(directory)


def carry_trial(
    setup: TrialSetup, plan: TrialPlan, corpus: Corpus, directory: Path, arrival: Corpus | None = None
) -> None:
    """Carry one trial out, all but measuring and sealing it; `run_trial` says what the arguments are.

    Raises as `run_trial` does. What was recorded until then is on disk, noted as interrupted, and can be sealed.
    """
    directory.mkdir(parents=True)
    journal = Journal(directory / layout.JOURNAL)
    trial = _Trial(setup, plan, corpus, directory, journal, arrival)
    try:
        trial.prepare()
        trial.load()
        trial.drain()
    except Interrupted as error:
        if not trial.loaded:
            raise
        trial.note(from_disk.INTERRUPTED, during="drain", error=error.what)
    except (NameplateError, OSError) as error:
        fault = error if isinstance(error, NameplateError) else manifest.disk_fault(directory, error)
        trial.note_fault(fault)
        raise fault from None
    finally:
        trial.close()
        journal.close()
        _tidy(directory, setup)


def _tidy(directory: Path, setup: TrialSetup) -> None:
    merge_workers(directory, setup.workers)
    if not setup.keeping.prompts:
        (directory / layout.PROMPTS).unlink(missing_ok=True)


def _seal_what_is_there(directory: Path) -> None:
    """Seal a trial that a fault ended, if its load had begun: what was measured stands, marked as interrupted."""
    try:
        if (directory / layout.HEADER).exists():
            seal(directory)
    except (NameplateError, OSError):
        pass  # The fault itself is what the caller must hear of; an unsealed trial is visibly unfinished.


def seal(directory: Path) -> TrialResult:
    """Measure and judge what is on disk, write the result, then the manifest; ClientError where the disk is full."""
    result = evaluate(from_disk.load_evidence(directory))
    manifest.write_durably(directory / layout.RESULT, encode(result))
    names = [path.name for path in directory.iterdir() if path.is_file() and path.name != layout.MANIFEST]
    manifest.seal(directory, names)
    return result


def require_space(directory: Path) -> None:
    """Refuse to begin where the disk has too little room even for the reserve that sealing needs; ClientError."""
    free = shutil.disk_usage(directory).free
    if free < 2 * RESERVE_BYTES:
        raise ClientError(
            f"The disk of {directory} has {free >> 20} MiB left, and a trial wants {2 * RESERVE_BYTES >> 20} at least.",
            why="A full disk ends a trial without a result.",
            hint="Free disk space, or choose another --out.",
        )


@contextmanager
def _watching_gpus(path: Path, wanted: bool) -> Iterator[None]:
    """Sample this machine's GPUs, which are the server's, once a second while the context lasts."""
    if not wanted:
        yield
        return
    from nameplate.hosts.watch import GpuWatcher

    watcher = GpuWatcher(path)
    watcher.start()
    try:
        yield
    finally:
        watcher.stop()


class _Trial:
    def __init__(
        self,
        setup: TrialSetup,
        plan: TrialPlan,
        corpus: Corpus,
        directory: Path,
        journal: Journal,
        arrival: Corpus | None = None,
    ) -> None:
        self._arrival = arrival
        self.setup = setup
        self._plan = plan
        self._corpus = corpus
        self.directory = directory
        self._journal = journal
        self._site = setup.site
        self._clock = setup.site.ground.clock
        self._asks: tuple[Ask, ...] = ()
        self._feeder: Feeder | None = None
        self.loaded = False

    def note(self, what: str, **detail: object) -> None:
        self._journal.note(self._clock.now_ns(), what, **detail)

    def note_fault(self, fault: NameplateError) -> None:
        """Note what ended the trial, where the disk still takes it."""
        try:
            self.note(from_disk.INTERRUPTED, fault=fault.fault, error=str(fault))
        except NameplateError:
            pass  # A full disk: the missing end says as much.

    def close(self) -> None:
        """Close what the trial holds open."""
        if self._feeder is not None:
            self._feeder.close()

    def prepare(self) -> None:
        """Wait for quiet and idle, flush, and write everything that stands before the first request."""
        setup, plan, site = self.setup, self._plan, self._site
        require_space(self.directory)
        if plan.quiet_s:
            self._step(f"quiet for {plan.quiet_s:g} s")
            self._clock.sleep_ns(round(plan.quiet_s * 1e9))
        self.note(from_disk.STARTED)
        self._step("waiting for an idle server")
        self._flush()
        if not site.adapter.healthy():
            raise ServerError(
                f"{site.target.url} no longer answers its health check.",
                hint="Did the server stop? See its log.",
            )
        self._warm()
        self._identity = identity = site.identity()
        self._note_idle("before")
        self._step("writing prompts")
        prompts = self.directory / layout.PROMPTS
        if plan.soak is None:
            self._asks = write_prompts(prompts, setup.contract, plan, self._corpus, self._arrival)
        else:
            kept = setup.keeping.prompts
            self._feeder = Feeder(prompts, setup.contract, plan, self._corpus, self._clock.now_ns, kept=kept)
        self._write_trace()
        header = TrialHeader(
            contract=setup.contract,
            plan=plan.as_written,
            clock=site.ground.kind,
            started=ClockPair(self._clock.now_ns(), site.ground.wall_ns()),
            command=setup.command,
            identity=identity,
            prompt_length=self._corpus.length,
            template_floor_tokens=site.report.floor_tokens,
            keeping=setup.keeping,
            tool_version=__version__,
            client_host=setup.client_host,
            workers=setup.workers,
        )
        manifest.write_durably(
            self.directory / layout.HEADER, msgspec.json.format(msgspec.json.encode(header)) + b"\n"
        )

    def _write_trace(self) -> None:
        """Write the requests of a trace as they are repeated, beside the header that names them."""
        trace = self._plan.arrivals.trace if self._plan.arrivals is not None else None
        if trace is not None and trace.rows is not None:
            manifest.write_durably(self.directory / layout.TRACE, b"".join(trace.rows.lines()))

    def load(self) -> None:
        """Carry out the load with the server watched from another process."""
        setup, plan, site = self.setup, self._plan, self._site
        order = LoadOrder(
            target=setup.contract.target,
            credentials=setup.credentials,
            deadlines=deadlines_of(setup.contract, plan),
            stages=stages_of(plan),
            asks=self._asks,
            directory=str(self.directory),
            prompts_path=str(self.directory / layout.PROMPTS),
            keeping=setup.keeping,
            soak=plan.soak,
            new_connections=setup.new_connections,
            # All workers together never have more than the limit.
            outstanding_limit=max(1, plan.arrivals.outstanding_limit // setup.workers)
            if plan.arrivals
            else None,
            raise_scheduling=setup.raise_scheduling,
            workers=setup.workers,
        )

        def show(progress: Progress, ttfts_ns: Mapping[int, int]) -> None:
            setup.watch.progress(plan, progress, ttfts_ns, self.directory)

        steering = self._steering(show)
        self._step("load")
        with (
            site.ground.watching(site.adapter, self.directory / layout.SERVER, scrape_ns(plan)),
            _watching_gpus(self.directory / layout.GPU, setup.watch_gpus),
            setup.interruption.loading(),
        ):
            finished = site.ground.carry(order, steering)
        self.loaded = True
        if isinstance(steering, SoakSteering):
            steering.ended()
        if setup.interruption.count:
            self.note(from_disk.INTERRUPTED, interrupts=setup.interruption.count)
        self.note(
            from_disk.LOAD_ENDED,
            stopped_early=isinstance(steering, Steering) and steering.stopped_early,
            **msgspec.to_builtins(finished),
        )
        if finished.failure is not None:
            raise ClientError(
                f"The load ended early: {finished.failure}.",
                why="Without complete evidence there is no verdict; what was written is intact.",
                hint="Free disk space, or keep less with --raw sample:N, --no-raw or --no-prompts.",
            )

    def _steering(self, show: Show) -> Steering | HoldSteering | PrefillSteering | SoakSteering:
        setup, plan = self.setup, self._plan
        if self._feeder is not None:
            soak = SoakSetup(setup.site, plan, self.directory, self._identity, setup.workers)
            return soak_steering(soak, self._feeder, self._journal, setup.interruption, show)
        if plan.until is not None:
            return PrefillSteering(plan, setup.interruption, show)
        if plan.hold is None:
            return Steering(setup.contract, plan, setup.interruption, show)
        state = self._site.adapter.state()
        return HoldSteering(
            plan,
            setup.interruption,
            SampleTail(self.directory / layout.SERVER, 2 * EXTRA_PATIENCE * plan.hold.stable_ns),
            lambda held: self.note(HELD, **msgspec.to_builtins(held)),
            show,
            server_tells=state.error is None and state.running is not None,
        )

    def drain(self) -> None:
        """Wait until the server is idle again, and read its counters and identity once more."""
        adapter, plan = self._site.adapter, self._plan
        self._step("waiting for the server to drain")
        if plan.cut and (reply := abort_what_goes_on(adapter, plan)) is not None:
            self.note("abort", **msgspec.to_builtins(reply))
        idle = wait_idle(adapter, limit_ns=IDLE_LIMIT_NS)
        self.note("drained", **msgspec.to_builtins(idle))
        if plan.cut and idle.status == "unknown":
            # It may still generate for connections that we closed, and does not tell.
            self._clock.sleep_ns(BLIND_DRAIN_NS)
        if plan.soak is None:
            require_server(adapter, self._clock)
        # That its server is gone at the end is what a soak is there to tell.
        if plan.soak is None or still_there(adapter, self._clock):
            self._note_idle("after")
            self.note(from_disk.IDENTITY, **from_disk.identity_detail("after", self._site.identity()))
        self.note(from_disk.ENDED)

    def _flush(self) -> None:
        adapter, contract = self._site.adapter, self.setup.contract
        if contract.cache.flush == "never":
            self.note(from_disk.IDLE_WAIT, **msgspec.to_builtins(wait_idle(adapter, limit_ns=IDLE_LIMIT_NS)))
            return
        reply, idle = flush_when_idle(adapter, limit_ns=IDLE_LIMIT_NS)
        self.note(from_disk.IDLE_WAIT, **msgspec.to_builtins(idle))
        self.note("flush", **msgspec.to_builtins(reply))
        if contract.cache.flush == "require" and not reply.accepted:
            raise ServerError(
                f"The server did not flush its prefix cache: {reply.detail}.",
                why="--flush require was given.",
            )

    def _warm(self) -> None:
        if not self._corpus.prefix:
            return
        self._step("warming the shared prefix")
        answer = warm_prefix(self._site.ground.transport, self.setup.contract, self._plan, self._corpus)
        self.note("prefix_warmed", **msgspec.to_builtins(answer))
        if not answer.ok:
            raise ServerError(f"The request that warms the shared prefix failed: {answer.error}.")

    def _note_idle(self, moment: str) -> None:
        """Note the server's counters, if it is idle: between two such moments they count what we sent."""
        state = self._site.adapter.state()
        if state.error is None and state.idle is not False:
            self.note(from_disk.IDLE, **from_disk.idle_detail(moment, state))

    def _step(self, what: str) -> None:
        self.setup.watch.step(self._plan, what)
