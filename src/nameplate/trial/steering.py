"""Watching a load while it runs: whether it may stop because failure is certain, and what a person sees of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nameplate.client.order import Progress
from nameplate.client.process import Command
from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.samples import from_schedule, lower_bounds
from nameplate.trial.interruption import Interruption
from nameplate.verdict.gate import gate_of_failure
from nameplate.verdict.trial import failure_certain
from nameplate.wire.outcome import Outcome


class Steering:
    """Answer a load's reports; `stopped_early` says that failure became certain and the load was cancelled."""

    def __init__(
        self,
        contract: Contract,
        plan: TrialPlan,
        interruption: Interruption,
        show: Callable[[Progress, Mapping[int, int]], None],
    ) -> None:
        self._contract = contract
        self._plan = plan
        self._interruption = interruption
        self._show = show
        self._rows: list[RequestRow] = []
        self._ttfts_ns: dict[int, int] = {}
        self.stopped_early = False

    def __call__(self, progress: Progress) -> Command | None:
        self._rows += [row for row in progress.rows if row.measured]
        self._ttfts_ns.update(progress.first_outputs)
        self._show(progress, self._ttfts_ns)
        command = self._interruption.command()
        if command is not None:
            return command
        if self._plan.stop_when_failed and not self.stopped_early and self._cannot_pass(progress):
            self.stopped_early = True
            return "cancel"
        return None

    def _cannot_pass(self, progress: Progress) -> bool:
        # Bounds rise by what is new and while a first output is awaited; most reports of a decode phase bring neither.
        if not (progress.rows or progress.first_outputs or progress.waiting_since):
            return False
        rows = self._rows if self._plan.arrivals is None else from_schedule(self._rows)
        bounds = dict(lower_bounds(self._contract.slos, rows, progress.t_ns))
        if "ttft" in bounds:
            ended = {row.index for row in self._rows}
            first = self._plan.warmup
            measured = range(first, first + self._plan.requests)
            known = [ttft for index, ttft in self._ttfts_ns.items() if index not in ended]
            waiting = [progress.t_ns - sent for index, sent in progress.waiting_since if index in measured]
            bounds["ttft"] = (*bounds["ttft"], *known, *waiting)
        failures = sum(
            row.outcome != Outcome.ok and gate_of_failure(row.outcome, row.http_status) is not None
            for row in self._rows
        )
        return failure_certain(self._contract.slos, self._plan.requests, bounds, failures)
