"""Sampling cold prefills one after the other until their spread is small, or a bound is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nameplate.client.order import Progress
from nameplate.client.process import Command
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.prefill import enough, samples_of
from nameplate.trial.interruption import Interruption
from nameplate.wire.outcome import Outcome

LET_END_NS = 2 * 10**9


class PrefillSteering:
    """Steer a load at concurrency one: cut it when there are enough samples, or one failed."""

    def __init__(
        self,
        plan: TrialPlan,
        interruption: Interruption,
        show: Callable[[Progress, Mapping[int, int]], None],
    ) -> None:
        assert plan.until is not None
        self._rule = plan.until
        self._tokens = plan.shape.input_tokens
        self._interruption = interruption
        self._show = show
        self._rows: list[RequestRow] = []
        self._ttfts_ns: dict[int, int] = {}
        self._began_ns: int | None = None
        self._cancelled = False

    def __call__(self, progress: Progress) -> Command | None:
        self._rows += progress.rows
        self._ttfts_ns.update(progress.first_outputs)
        self._show(progress, self._ttfts_ns)
        if self._began_ns is None:
            self._began_ns = progress.t_ns
        command = self._interruption.command()
        if command is not None:
            return command
        if self._cancelled:
            return None
        if any(row.outcome not in (Outcome.ok, Outcome.cancelled) for row in self._rows):
            self._cancelled = True
            return "cancel"
        samples = samples_of(self._rows, self._tokens)
        if not enough(samples, self._rule, progress.t_ns - self._began_ns):
            return None
        self._cancelled = True
        # The next one has begun meanwhile. A short one may end, and the server's counters stay comparable to ours.
        return "stop" if samples[-1].ttft_ns <= LET_END_NS else "cancel"
