"""The evidence of one trial as values: everything that its result is a pure function of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.engines.state import Histograms, ServerSample
from nameplate.evidence.header import Clock
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.hosts.sample import GpuSample
from nameplate.measure.held import Held


class TrialEvidence(Struct, frozen=True, kw_only=True):
    """Hold what was read from a trial's files, or what a running trial holds before it seals.

    `since_empty_ns` and `arrival_doubt_ns` (see `lateness`) are those of the reads of measured requests, and
    `user_stamped_reads` counts those without a kernel stamp. `idle_before` and `idle_after` are the
    server's counters while it was idle, before the warm-up and after the drain; None where that was not seen, and
    `histograms_before` and `histograms_after` its histograms then; None in evidence from before they were kept.
    `busy_before` counts the requests that the server held when the wait for it to become idle was given up: not ours.
    `held` says how a hold of streams went, `gpu_samples` are of the server's host. `damage` are sentences about torn or
    missing evidence. `interrupted` says that a person or a lost server ended it, `overrun` that too many
    requests of an open loop were outstanding. Times are the trial's own monotonic nanoseconds.
    """

    contract: Contract
    plan: TrialPlan
    clock: Clock
    rows: Sequence[RequestRow]
    timelines: Iterable[Timeline] = ()
    since_empty_ns: Iterable[int] = ()
    arrival_doubt_ns: Iterable[int] = ()
    user_stamped_reads: int = 0
    samples: Sequence[ServerSample] = ()
    idle_before: ServerSample | None = None
    idle_after: ServerSample | None = None
    histograms_before: Histograms | None = None
    histograms_after: Histograms | None = None
    busy_before: int = 0
    identity_before: Identity
    identity_after: Identity | None = None
    template_floor_tokens: int | None = None
    shared_prefix_tokens: int | None = None
    held: Held | None = None
    gpu_samples: Sequence[GpuSample] = ()
    damage: tuple[str, ...] = ()
    workers: int = 1
    interrupted: bool = False
    overrun: bool = False
    started_ns: int
    ended_ns: int

    @property
    def measured(self) -> list[RequestRow]:
        return [row for row in self.rows if row.measured]
