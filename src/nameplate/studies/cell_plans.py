"""The plans of a speed study's trials: pure functions of the contract, the server's limits and what prefill costs."""

from __future__ import annotations

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, burst_of, exact_label
from nameplate.contract.plan import Arrival, Hold, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.verdict.cell_plan import ready_deadline_ns

WARMUP_OUTPUT_TOKENS = 64
# An arrival is there for its first token; a few more show that the stream goes on.
ARRIVAL_OUTPUT_TOKENS = 16


class CellPlanner(Struct, frozen=True):
    """Plan the trials of cells."""

    contract: Contract
    matrix: Matrix
    limits: ServerLimits

    def warmup(self, context_tokens: int) -> TrialPlan:
        """Plan the discarded warm-up: one cold request at the largest context, so that nothing is compiled later."""
        output = max(1, min(WARMUP_OUTPUT_TOKENS, self._output(context_tokens)))
        return TrialPlan(
            name=f"warmup.{exact_label(context_tokens)}",
            role="warmup",
            shape=Shape(context_tokens, output),
            concurrency=1,
            requests=1,
            warmup=0,
        )

    def alone(self, context_tokens: int) -> TrialPlan:
        """Plan the prefill samples that a mixed cell is compared with, where the matrix has none at its context."""
        cell = CellPlan("prefill", context_tokens, 1)
        return structs.replace(self._prefill(cell), name=f"alone.{exact_label(context_tokens)}")

    def plan(self, cell: CellPlan, prefill_ns: float | None) -> TrialPlan:
        """Plan one cell; `prefill_ns` is the cold TTFT at its context, None where it is not known."""
        if cell.kind == "prefill":
            return self._prefill(cell)
        if cell.kind == "mixed":
            return self._mixed(cell, prefill_ns)
        if cell.kind == "burst":
            return self._counted(cell, burst_of(self.matrix, cell.concurrency))
        if self.matrix.requests is not None:
            return self._counted(cell, max(self.matrix.requests, cell.concurrency))
        return self._decode(cell, prefill_ns)

    def _prefill(self, cell: CellPlan) -> TrialPlan:
        return TrialPlan(
            name=cell.name,
            role="prefill",
            shape=Shape(cell.context_tokens, 1),
            concurrency=1,
            requests=self.matrix.prefill.most + 1,
            warmup=0,
            until=self.matrix.prefill,
        )

    def _decode(self, cell: CellPlan, prefill_ns: float | None) -> TrialPlan:
        hold = Hold(
            window_ns=self.matrix.window_ns,
            stable_ns=self.matrix.stable_ns,
            ready_ns=ready_deadline_ns(self.matrix, cell, prefill_ns),
            warm_streams=self.matrix.warm_streams,
            loop_limit=self.matrix.loop_limit,
        )
        return TrialPlan(
            name=cell.name,
            role="decode",
            shape=Shape(cell.context_tokens, self._output(cell.context_tokens)),
            concurrency=cell.concurrency,
            requests=cell.concurrency,
            warmup=cell.concurrency if self.matrix.warm_streams else 0,
            hold=hold,
            shared_tokens=self.matrix.shared_tokens(cell.context_tokens),
        )

    def _counted(self, cell: CellPlan, requests: int) -> TrialPlan:
        return TrialPlan(
            name=cell.name,
            role="burst" if cell.kind == "burst" else "decode",
            shape=Shape(cell.context_tokens, self._output(cell.context_tokens)),
            concurrency=cell.concurrency,
            requests=requests,
            warmup=0,
            shared_tokens=self.matrix.shared_tokens(cell.context_tokens),
        )

    def _mixed(self, cell: CellPlan, prefill_ns: float | None) -> TrialPlan:
        rule = self.matrix.mixed
        assert rule is not None
        streams_ns = (
            None if prefill_ns is None else prefill_ns * rule.stream_input_tokens / cell.context_tokens
        )
        streams = CellPlan("decode", rule.stream_input_tokens, rule.streams)
        arrival = Arrival(
            Shape(cell.context_tokens, ARRIVAL_OUTPUT_TOKENS), rule.before_ns, rule.after_ns, rule.deadline_ns
        )
        hold = Hold(
            window_ns=rule.before_ns + rule.after_ns,
            stable_ns=self.matrix.stable_ns,
            ready_ns=ready_deadline_ns(self.matrix, streams, streams_ns),
            loop_limit=1.0,
            arrival=arrival,
        )
        return TrialPlan(
            name=cell.name,
            role="mixed",
            shape=Shape(rule.stream_input_tokens, rule.stream_output_tokens),
            concurrency=rule.streams,
            requests=rule.streams,
            warmup=0,
            hold=hold,
        )

    def _output(self, context_tokens: int) -> int:
        return self.matrix.output_for(context_tokens, self.limits.context_tokens)
