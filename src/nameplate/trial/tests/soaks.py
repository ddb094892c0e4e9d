"""Carry out a short soak, in simulated time or over real sockets, and read back what it left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import structs

from nameplate.client.order import Progress
from nameplate.contract.arrivals import OUTSTANDING_LIMIT, ArrivalPlan
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.sampling import Sampling
from nameplate.contract.shape import Shape
from nameplate.contract.soak import SOAK_REQUESTS, Soak
from nameplate.contract.target import Credentials, Target
from nameplate.evidence import layout
from nameplate.evidence.client_sample import ClientSample
from nameplate.evidence.header import Keeping
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan
from nameplate.sim.preset import Preset
from nameplate.sim.presets import DEMO
from nameplate.trial.corpus import Corpus
from nameplate.trial.ground import Ground, LiveGround, VirtualGround
from nameplate.trial.interruption import Interruption
from nameplate.trial.life import TrialSetup, carry_trial
from nameplate.trial.site import build_corpus, survey

SECOND_NS = 10**9


class Watching:
    """See a trial's reports; tests look at what a person would be shown."""

    def __init__(self) -> None:
        self.reports = 0
        self.most_shown = 0

    def tell(self, *_: object) -> None: ...

    def finished(self, *_: object, **__: object) -> None: ...

    def step(self, plan: object, what: str) -> None: ...

    def progress(self, _plan: object, _progress: Progress, ttfts_ns: Any, _directory: object) -> None:
        self.reports += 1
        self.most_shown = max(self.most_shown, len(ttfts_ns))

    def estimate(self, *_: object) -> None: ...


class SoakRun:
    """Prepare a soak and carry it out; `prepare` may be followed by changes of `app`, `setup` or `plan`."""

    def __init__(
        self,
        directory: Path,
        *,
        seconds: float = 20.0,
        shape: str = "64/8",
        concurrency: int = 4,
        rate: float | None = None,
        limit: int = OUTSTANDING_LIMIT,
        ground: Ground | None = None,
        target: Target | None = None,
        preset: Preset = DEMO,
        keeping: Keeping | None = None,
        warmup: int = 0,
        workers: int = 1,
        **soak: Any,
    ) -> None:
        self.directory = directory
        self.app = App(preset)
        ground = ground or VirtualGround(self.app)
        site = survey(ground, target or Target("http", "sim", 80), Sampling(), "nonce", _unnoted)
        asked = Shape.parse(shape)
        contract = Contract(site.target, (asked,), (), "nonce")
        self.watching = Watching()
        self.setup = TrialSetup(
            site=site,
            contract=contract,
            credentials=Credentials(),
            keeping=keeping or Keeping(),
            command=("nameplate", "soak"),
            client_host={},
            interruption=Interruption(),
            watch=self.watching,
            workers=workers,
            raise_scheduling=False,
        )
        self.corpus: Corpus = build_corpus(site, asked, contract.cache, "nonce", _unnoted)
        terms = {"drain_ns": 30 * SECOND_NS, "client_sample_ns": SECOND_NS, **soak}
        self.plan = TrialPlan(
            "soak.s1",
            "soak",
            asked,
            concurrency,
            SOAK_REQUESTS,
            warmup,
            soak=Soak(duration_ns=round(seconds * SECOND_NS), **terms),
            arrivals=None
            if rate is None
            else ArrivalPlan(kind="constant", rate=rate, outstanding_limit=limit),
        )

    def faults(self, *texts: str) -> SoakRun:
        """Have faults befall the server from now on, as `parse_fault` reads them; a probe would refuse to measure."""
        self.app._faults = FaultPlan().and_then(texts)
        return self

    def watch_with(self, watching: Watching) -> SoakRun:
        """Have somebody else see the reports."""
        self.watching, self.setup = watching, structs.replace(self.setup, watch=watching)
        return self

    def deadlines(self, **deadlines: int) -> SoakRun:
        """Change the contract's deadlines."""
        contract = structs.replace(
            self.setup.contract, deadlines=structs.replace(self.setup.contract.deadlines, **deadlines)
        )
        self.setup = structs.replace(self.setup, contract=contract)
        return self

    def carry(self) -> SoakRun:
        """Carry the segment out; what it raises is the test's to expect."""
        carry_trial(self.setup, self.plan, self.corpus, self.directory)
        return self

    @property
    def reader(self) -> TrialReader:
        return TrialReader(self.directory)

    def journal(self, what: str) -> list[JournalEntry]:
        """Return the journal's entries of one kind."""
        return [entry for entry in self.reader.journal() if entry.what == what]

    def entry(self, what: str) -> JournalEntry:
        """Return the journal's only entry of one kind."""
        (entry,) = self.journal(what)
        return entry

    def samples(self, process: str) -> list[ClientSample]:
        """Return the client's samples of one of its processes."""
        samples = self.reader.lines(layout.CLIENT, ClientSample)
        return [sample for sample in samples if sample.process == process]


def live(directory: Path, url: str, **options: Any) -> SoakRun:
    """Prepare a soak over real sockets."""
    target = Target.parse(url)
    return SoakRun(directory, ground=LiveGround(target, Credentials()), target=target, **options)


def _unnoted(what: str, **_detail: object) -> None: ...
