"""Planned cells for which a file has no row: that tool leaves out what it skipped, and what was never reached."""

from __future__ import annotations

from collections.abc import Iterable

from nameplate.contract.matrix import CellPlan
from nameplate.exchange.inference_bench.claims import claim_of
from nameplate.exchange.inference_bench.events import Log
from nameplate.exchange.inference_bench.foreign import TOOL, Cell, Document
from nameplate.verdict.cell import CellStatus, CellVerdict


def unwritten(
    document: Document, log: Log, written: Iterable[CellPlan]
) -> list[tuple[CellPlan, CellVerdict]]:
    """List the planned cells without a row, each with the most likely reason that the file gives."""
    setup, there = document.setup, set(written)
    grid = [(context, level) for context in setup.contexts for level in setup.concurrencies if level]
    planned = []
    if not setup.counted and _wanted(document):
        planned += [CellPlan("decode", *cell) for cell in grid]
    if setup.counted or setup.run_burst:
        planned += [CellPlan("burst", *cell) for cell in grid]
    planned += [CellPlan("prefill", context, 1) for context in _prefills(document)]
    planned += [CellPlan("mixed", context, max(1, setup.mixed_streams)) for context in setup.mixed_contexts]
    mixed = {plan.context_tokens for plan in there if plan.kind == "mixed"}
    return [
        (plan, _why(plan, document, log))
        for plan in planned
        if plan not in there and not (plan.kind == "mixed" and plan.context_tokens in mixed)
    ]


def _why(plan: CellPlan, document: Document, log: Log) -> CellVerdict:
    cell = (plan.context_tokens, plan.concurrency)
    if plan.kind == "decode":
        # The log says "skipped" of what does not fit as well as of what a person skipped, but only the latter began.
        if cell not in log.started and (need := _need(plan, document)) is not None:
            return CellVerdict(CellStatus.over_capacity, f"not run: {need}")
        said = log.why_skipped(*cell)
        if said is not None:
            return CellVerdict(CellStatus.skipped, f"the event log says that it was skipped {said}".rstrip())
        if cell in log.started and cell not in log.ended:
            return CellVerdict(CellStatus.interrupted, "the event log has its start and no end")
    reason = f"planned, but the file has no row for it: {TOOL} leaves out what it did not measure"
    return CellVerdict(CellStatus.skipped, reason)


def _need(plan: CellPlan, document: Document) -> str | None:
    """Say what a cell would need of the KV pool; None where it fits, or where the file does not tell."""
    setup = document.setup
    claim = claim_of(Cell(burst=False, context=plan.context_tokens, concurrency=plan.concurrency), setup)
    if claim is not None:
        return f"it would need {claim}" if claim.tokens > claim.pool else None
    if setup.pool_tokens is None or setup.max_tokens is None:
        return None
    need = plan.concurrency * (plan.context_tokens + setup.max_tokens)
    if need <= setup.pool_tokens:
        return None
    return f"{need:,} of {setup.pool_tokens:,} tokens, sharing left out of the count"


def _wanted(document: Document) -> bool:
    """Say whether decode cells were planned at all: a run of one phase alone still lists the whole grid."""
    metadata = document.metadata
    return not (metadata.get("prefill_only") is True or metadata.get("mixed_only") is True)


def _prefills(document: Document) -> tuple[int, ...]:
    setup = document.setup
    if setup.prefill == "integrated_decode_scout":
        return tuple(context for context in setup.contexts if context)
    return setup.prefill_contexts if setup.prefill == "standalone_cold" else ()
