"""How long cells will take: from the prefill rates seen so far, and from what is fixed."""

from __future__ import annotations

from bisect import bisect_left

from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, burst_of
from nameplate.verdict.cell_plan import expected_ready_ns, ready_deadline_ns

# What a trial costs beside its load: starting the load process, idle and identity before and after, sealing.
OVERHEAD_S = 4.0
_SECOND_NS = 10**9


class Forecast:
    """Estimate cells' durations; it learns one cold TTFT a context, and interpolates between contexts."""

    def __init__(self, matrix: Matrix, limits: ServerLimits) -> None:
        self._matrix = matrix
        self._limits = limits
        self._known: dict[int, float] = {}

    def learn(self, context_tokens: int, ttft_ns: float) -> None:
        """Take the cold TTFT of a prompt of this length; the latest word on a length counts."""
        if context_tokens > 0:
            self._known[context_tokens] = ttft_ns

    def prefill_ns(self, context_tokens: int) -> float | None:
        """Return the expected cold TTFT; between known lengths linear, beyond them by the nearest one's rate."""
        if not self._known:
            return None
        lengths = sorted(self._known)
        at = bisect_left(lengths, context_tokens)
        if at == 0:
            return self._known[lengths[0]] * context_tokens / lengths[0]
        if at == len(lengths):
            # Attention makes long prompts dearer a token: the square of the ratio bounds it from above.
            ratio = context_tokens / lengths[-1]
            return self._known[lengths[-1]] * ratio * ratio
        low, high = lengths[at - 1], lengths[at]
        share = (context_tokens - low) / (high - low)
        return self._known[low] + share * (self._known[high] - self._known[low])

    @property
    def knows_prefill(self) -> bool:
        """Say whether any prefill is known; without one, estimates are lower bounds."""
        return bool(self._known)

    def ready_s(self, cell: CellPlan) -> float | None:
        """Return how long a cell's streams should take to be ready, None while no prefill is known."""
        prefill_ns = self.prefill_ns(cell.context_tokens)
        return None if prefill_ns is None else expected_ready_ns(self._matrix, cell, prefill_ns) / _SECOND_NS

    def deadline_s(self, cell: CellPlan) -> float:
        """Return the cell's deadline for being ready."""
        return ready_deadline_ns(self._matrix, cell, self.prefill_ns(cell.context_tokens)) / _SECOND_NS

    def cell_s(self, cell: CellPlan) -> float:
        """Return how long a cell should take; what is not known counts as nothing: a lower bound at first."""
        matrix = self._matrix
        prefill_s = (self.prefill_ns(cell.context_tokens) or 0.0) / _SECOND_NS
        if cell.kind == "prefill":
            samples_s = matrix.prefill.least * prefill_s
            return OVERHEAD_S + min(
                max(samples_s, prefill_s), matrix.prefill.budget_ns / _SECOND_NS + prefill_s
            )
        if cell.kind == "mixed":
            assert matrix.mixed is not None
            around_s = (matrix.mixed.before_ns + matrix.mixed.after_ns) / _SECOND_NS
            return OVERHEAD_S + matrix.stable_ns / _SECOND_NS + around_s + 4 * prefill_s
        ready_s = self.ready_s(cell) or matrix.stable_ns / _SECOND_NS
        ready_s = min(ready_s, self.deadline_s(cell))
        requests = burst_of(matrix, cell.concurrency) if cell.kind == "burst" else matrix.requests
        if requests is not None:
            # A request that is counted instead of timed is assumed to last as long as a window.
            rounds = max(1.0, requests / cell.concurrency)
            return OVERHEAD_S + rounds * (cell.concurrency * prefill_s + matrix.window_ns / _SECOND_NS)
        warm = 2 if matrix.warm_streams else 1
        return OVERHEAD_S + warm * ready_s + matrix.window_ns / _SECOND_NS
