"""Steering a soak: feed it, watch its server, end it when its drain has taken long enough, and write down all that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.client.order import Progress
from nameplate.client.process import Command
from nameplate.client.self_sample import clock_pair
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.evidence import layout, soak_events
from nameplate.evidence.journal import Journal
from nameplate.evidence.soak_events import OUTSTANDING_LIMIT, DrainEnded, EndReason, SubmitEnded
from nameplate.trial.feeding import Feeder
from nameplate.trial.holding import SampleTail
from nameplate.trial.interruption import Interruption
from nameplate.trial.parent_samples import ParentSamples
from nameplate.trial.server_watch import ServerWatch
from nameplate.trial.site import Site
from nameplate.wire.outcome import Outcome

Note = Callable[[int, str, dict[str, Any]], None]
Show = Callable[[Progress, Mapping[int, int]], None]


# Long enough for a sample to be read with the report after it, whatever the parent does meanwhile.
KEEP_SAMPLES_NS = 60 * 10**9
# A server that hangs must not keep the parent from feeding the load.
HEALTH_S = 2.0


class SoakHelpers(Struct, frozen=True, kw_only=True):
    """Hold who works for a soak's steering: each is looked at with every report.

    `tail` reads the server's samples, None where there are none.
    """

    feeder: Feeder
    server: ServerWatch
    own: ParentSamples
    tail: SampleTail | None = None


class SoakSteering:
    """Answer a soak's reports; nothing that is held grows with the number of requests.

    Times are those of the reports. What begins and ends is noted with the moment of its event, which a report tells
    later.
    """

    def __init__(
        self, plan: TrialPlan, interruption: Interruption, helpers: SoakHelpers, note: Note, show: Show
    ) -> None:
        assert plan.soak is not None
        self._soak = plan.soak
        self._interruption = interruption
        self._helpers = helpers
        self._note = note
        self._show = show
        self._ttfts_ns: dict[int, int] = {}
        self._began_ns: int | None = None
        self._submitted_ns: int | None = None
        self._told = self._cancelled = self._stopped = False
        self._last_end_ns = 0
        self._cancelled_rows = 0
        self._seen_ns = 0

    def __call__(self, progress: Progress) -> Command | None:
        self._take(progress)
        helpers = self._helpers
        measured = progress.stage == "measured"
        if self._submitted_ns is None:
            helpers.feeder.feed(progress.started if measured else 0, progress.t_ns)
        samples = [] if helpers.tail is None else helpers.tail.read(progress.t_ns)
        fresh = [sample for sample in samples if sample.t_ns > self._seen_ns]
        self._seen_ns = max([self._seen_ns, *(sample.t_ns for sample in fresh)])
        helpers.server.look(progress.t_ns, progress.rows, fresh)
        helpers.own.look(progress.t_ns, helpers.feeder.ahead)
        self._show(progress, self._ttfts_ns)
        command = self._interruption.command()
        if command is not None:
            self._told = True
            self._cancelled = self._cancelled or command == "cancel"
            return command
        if self._drained_long_enough(progress):
            self._cancelled = True
            return "cancel"
        if progress.overrun and not self._stopped:
            # One worker came to its share of the limit: the others start nothing more either.
            self._stopped = True
            return "stop"
        return None

    def _take(self, progress: Progress) -> None:
        for kept in progress.kept:
            self._note(progress.t_ns, soak_events.RAW_KEPT, msgspec.to_builtins(kept))
        self._ttfts_ns.update(progress.first_outputs)
        for row in progress.rows:
            self._ttfts_ns.pop(row.index, None)
            if row.measured:
                self._last_end_ns = max(self._last_end_ns, row.end_ns or 0)
                self._cancelled_rows += row.outcome == Outcome.cancelled
        if progress.stage != "measured" or progress.began_ns is None:
            return
        if self._began_ns is None:
            self._began_ns = progress.began_ns
            self._note(self._began_ns, soak_events.SUBMIT_BEGAN, {})
        if self._submitted_ns is None and progress.submitted_ns is not None:
            self._submitted_ns = progress.submitted_ns
            ended = SubmitEnded(self._reason(progress, self._began_ns, self._submitted_ns))
            self._note(self._submitted_ns, soak_events.SUBMIT_ENDED, msgspec.to_builtins(ended))
            self._note(self._submitted_ns, soak_events.DRAIN_BEGAN, {})

    def _reason(self, progress: Progress, began_ns: int, ended_ns: int) -> EndReason:
        if progress.overrun:
            return OUTSTANDING_LIMIT
        if ended_ns >= began_ns + self._soak.duration_ns:
            return "duration"
        return "interrupted" if self._told else "broke_off"

    def _drained_long_enough(self, progress: Progress) -> bool:
        if self._submitted_ns is None or self._cancelled or not progress.in_flight:
            return False
        return progress.t_ns >= self._submitted_ns + self._soak.drain_ns

    def ended(self) -> None:
        """Note the end of the drain, once the load has ended in order."""
        if self._submitted_ns is not None:
            t_ns = max(self._submitted_ns, self._last_end_ns)
            self._note(t_ns, soak_events.DRAIN_ENDED, msgspec.to_builtins(DrainEnded(self._cancelled_rows)))


class SoakSetup(Struct, frozen=True):
    """Hold what a soak's steering must know of its trial; `identity` is what the server said before the load."""

    site: Site
    plan: TrialPlan
    directory: Path
    identity: Identity
    workers: int = 1


def soak_steering(
    setup: SoakSetup, feeder: Feeder, journal: Journal, interruption: Interruption, show: Show
) -> SoakSteering:
    """Put the steering of a trial's soak together."""
    site, plan, directory = setup.site, setup.plan, setup.directory

    def note(t_ns: int, what: str, detail: dict[str, Any]) -> None:
        journal.note(t_ns, what, **detail)

    assert plan.soak is not None
    live = site.ground.kind == "live"
    scraped = site.adapter.metrics_path is not None or not live
    # Several workers have files of their own until they are merged; the parent's is then one more.
    own = layout.CLIENT + ("" if setup.workers == 1 else f".{setup.workers}")
    helpers = SoakHelpers(
        feeder=feeder,
        server=ServerWatch(lambda: site.adapter.healthy(HEALTH_S), site.identity, note, setup.identity),
        own=ParentSamples(directory / own, plan.soak.client_sample_ns, clock_pair if live else None),
        tail=SampleTail(directory / layout.SERVER, KEEP_SAMPLES_NS) if scraped else None,
    )
    return SoakSteering(plan, interruption, helpers, note, show)
