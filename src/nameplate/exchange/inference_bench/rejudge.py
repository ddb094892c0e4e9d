"""The status of an imported cell by what its file shows, whatever the tool itself made of it.

The order is ours (`nameplate.verdict.cell`): the first condition that is broken gives the status. What the tool says of
the cell stays as a note, since its readers have seen it.
"""

from __future__ import annotations

import re

from nameplate.exchange.inference_bench.claims import Claim, claim_of, contradicted, contradiction
from nameplate.exchange.inference_bench.foreign import LOOPED, OVER_CAPACITY, SKIPPED, TOOL, Cell, Setup
from nameplate.verdict.cell import UNDERFILLED_SHARE, CellStatus, CellVerdict

# That tool rounds its means to a tenth, of two of which this is above the error.
ROUNDING = 0.11
# Its window ends with the first look after the fixed length; one that is shorter than this was cut.
WHOLE_WINDOW = 0.95
_SAW = re.compile(r"\brunning_reqs=(\d{1,6})/(\d{1,6})")
_STATES = {
    "loop": CellStatus.looped,
    "looped": CellStatus.looped,
    "skipped": CellStatus.skipped,
    "over_capacity": CellStatus.over_capacity,
    "interrupted": CellStatus.interrupted,
}


def rejudge(cell: Cell, setup: Setup) -> CellVerdict:
    """Judge one row of a result file."""
    claim = claim_of(cell, setup)
    status, reason = _unmeasured(cell, setup, claim) or _measured(cell, setup, claim)
    return CellVerdict(status, reason, _notes(cell, status))


def _unmeasured(cell: Cell, setup: Setup, claim: Claim | None) -> tuple[CellStatus, str] | None:
    """Judge what the tool itself marks as no measurement."""
    if cell.looped or cell.rate == LOOPED or _STATES.get(cell.state) is CellStatus.looped:
        found = f"{cell.looped_streams} of {cell.concurrency} streams" if cell.looped_streams else "a stream"
        return (
            CellStatus.looped,
            f"{found} repeated the same text; {TOOL} drops a cell at the first that does",
        )
    if cell.rate == OVER_CAPACITY:
        return CellStatus.over_capacity, f"not run: {_need(cell, setup, claim)}"
    if cell.rate == SKIPPED:
        return CellStatus.skipped, "skipped by the person at the keyboard"
    if cell.rate is not None and cell.rate < 0:
        return CellStatus.skipped, f"a rate of {cell.rate:g}, which no known version of {TOOL} writes"
    if cell.failure or "error" in cell.state or "fail" in cell.state:
        return CellStatus.server_error, f"the tool reports: {cell.failure or cell.state}"
    if cell.errors:
        return CellStatus.server_error, f"{cell.errors} of {cell.concurrency} streams failed"
    if (status := _STATES.get(cell.state)) is not None:
        return status, f"the tool reports: {cell.state}"
    if cell.rate is None:
        return CellStatus.skipped, "the file gives no rate for it"
    return None


def _measured(cell: Cell, setup: Setup, claim: Claim | None) -> tuple[CellStatus, str]:
    """Judge a cell for which there is a rate by the server's gauges and the window."""
    saw = _saw(cell)
    if cell.timed_out or cell.ready == "warmup_timeout":
        return _not_ready(cell, claim, saw)
    if not cell.burst and cell.wall_s and setup.duration_s and cell.wall_s < WHOLE_WINDOW * setup.duration_s:
        return CellStatus.interrupted, f"its window lasted {cell.wall_s:.1f} of {setup.duration_s:g} s"
    if extra := _extra(cell, saw):
        return CellStatus.extra_traffic, extra
    if not cell.burst and (fewer := _fewer(cell)):
        return CellStatus.underfilled, fewer
    if "prometheus" in cell.source:
        return (
            CellStatus.server_error,
            "no output arrived; the rate is the server's, whoever it produced it for",
        )
    if not cell.rate or (not cell.client_tokens and not cell.total_tokens):
        return CellStatus.server_error, "no output arrived within the window"
    return CellStatus.valid, _ran(cell)


def _not_ready(cell: Cell, claim: Claim | None, saw: int | None) -> tuple[CellStatus, str]:
    waited = f" after {cell.warmup_s:.0f} s" if cell.warmup_s else ""
    seen = cell.timeout or "no reason given"
    if saw is not None and saw > cell.concurrency:
        ours = f"{saw} running of {cell.concurrency} ours"
        return CellStatus.extra_traffic, f"{ours} when the warm-up timed out{waited}"
    reason = f"the warm-up timed out{waited}: {seen}"
    if claim is not None and claim.fits and contradicted(cell, claim):
        reason = f"{contradiction(cell, claim)}; {reason}"
    return CellStatus.not_ready, reason


def _extra(cell: Cell, saw: int | None) -> str | None:
    ours = cell.concurrency
    most = max(cell.running_max or 0.0, saw or 0)
    mean = cell.running_mean or 0.0
    if most > ours:
        return f"{most:.0f} running of {ours} ours, {mean:.1f} on average"
    waiting = cell.waiting_mean or 0.0
    if mean + waiting > ours + ROUNDING:
        return f"{mean:.1f} running and {waiting:.1f} waiting on average, of {ours} ours"
    return None


def _fewer(cell: Cell) -> str | None:
    if not cell.gauged or cell.running_mean is None:
        return None
    ours, mean, most = cell.concurrency, cell.running_mean, cell.running_max or 0.0
    if cell.underfilled or most < ours or mean < (1 - UNDERFILLED_SHARE) * ours:
        return f"{mean:.1f} running of {ours} on average, {most:.0f} at most"
    if (cell.queue_share or 0.0) > UNDERFILLED_SHARE:
        return f"requests were waiting in {cell.queue_share or 0:.0%} of the samples"
    return None


def _ran(cell: Cell) -> str:
    if cell.burst:
        return f"a wave of {cell.requests if cell.requests is not None else cell.concurrency} requests"
    if not cell.gauged:
        return f"{cell.concurrency} streams produced; the server's gauges were not seen"
    return f"{cell.concurrency} streams over the whole window"


def _need(cell: Cell, setup: Setup, claim: Claim | None) -> str:
    if claim is not None:
        return f"{cell.concurrency} at this context would need {claim}"
    if setup.pool_tokens and setup.max_tokens is not None:
        need = cell.concurrency * (cell.context + setup.max_tokens)
        return f"{need:,} of {setup.pool_tokens:,} tokens, sharing left out of the count"
    return "the tool found it too large for the KV pool"


def _notes(cell: Cell, status: CellStatus) -> tuple[str, ...]:
    notes = []
    if status is not CellStatus.valid and cell.rate is not None and cell.rate > 0:
        marks = [name for name, set_ in _marks(cell) if set_]
        notes.append(f"{TOOL} shows {cell.rate:.1f} tok/s here" + (f", {', '.join(marks)}" if marks else ""))
    elif status is CellStatus.valid and cell.capacity_limited:
        notes.append(f"{TOOL} calls it capacity limited")
    if cell.rate and cell.rate > 0 and cell.client_tokens and cell.wall_s:
        ours = cell.client_tokens / cell.wall_s
        # Trap: the time to the last token as the denominator, worth a word where it shows in the table.
        if abs(cell.rate - ours) > 0.01 * ours:
            notes.append(f"over the whole window it would be {ours:.2f} tok/s, not {cell.rate:.2f}")
    notes += _counted(cell)
    return tuple(notes)


def _counted(cell: Cell) -> list[str]:
    """Say where percentiles are of fewer requests than there were."""
    if cell.rate is None or cell.rate < 0:
        return []
    notes = []
    started = cell.concurrency if not cell.burst else (cell.target_requests or cell.concurrency)
    if cell.requests is not None and cell.requests < started:
        notes.append(
            f"its percentiles are of the {cell.requests} requests that got a token, of at least {started}"
        )
    if cell.samples and cell.requests:
        for name, known in (
            ("first token", sum(sample.ttft_s is not None for sample in cell.samples)),
            ("time between tokens", sum(sample.itl_s is not None for sample in cell.samples)),
        ):
            if known < cell.requests:
                notes.append(f"{name}: percentiles of {known} of {cell.requests} requests")
    return notes


def _marks(cell: Cell) -> tuple[tuple[str, bool], ...]:
    return (
        ("warm-up timed out", cell.timed_out),
        ("underfilled", cell.underfilled),
        ("capacity limited", cell.capacity_limited),
    )


def _saw(cell: Cell) -> int | None:
    match = _SAW.search(cell.timeout if cell.timed_out else cell.ready)
    return int(match[1]) if match is not None and int(match[2]) == cell.concurrency else None
