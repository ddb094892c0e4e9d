"""What only an open loop shows: latencies from schedule, its arrivals, its queue, its trace, the parts of its load."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.plan import TrialPlan
from nameplate.contract.trace import TracePlan
from nameplate.measure.breakdown import Breakdown
from nameplate.measure.delivered import Delivered
from nameplate.measure.latency import PhaseLatencies
from nameplate.measure.measurement import Measurement
from nameplate.measure.queueing import Queueing
from nameplate.measure.stalls import Stalls
from nameplate.report import numbers
from nameplate.report.latencies import latency_cells, latency_notes
from nameplate.report.layout import Cell, heading, indented
from nameplate.report.safe import safe
from nameplate.report.table import Column, FittingTable
from nameplate.statistics.percentile import Distribution

# From schedule first: what a user waits for, whatever the client or the server was busy with.
OPEN_LATENCIES = (
    ("TTFT from schedule", "ttft_from_schedule"),
    ("E2E from schedule", "e2e_from_schedule"),
    ("TTFT from sending", "ttft"),
    ("E2E from sending", "e2e"),
    ("first answer", "first_answer"),
    ("ITL", "itl"),
    ("TPOT", "tpot"),
    ("longest gap", "longest_gap"),
)
# What repeats another row to the nanosecond is left out.
REPEATS = {"ttft": "ttft_from_schedule", "e2e": "e2e_from_schedule", "first_answer": "ttft"}

MOST_PARTS = 20
_MOST_STALLS = 4
PARTS_OF = {
    "class": ("Classes of the trace", "class"),
    "step": ("Steps of the rate", "step"),
    "ramp": ("Tenths of the ramp", "rate"),
}


def open_latencies(latencies: PhaseLatencies) -> RenderableType:
    """Return the latencies of an open loop, which has no opening phase: those from schedule first."""
    whole = latencies.whole
    columns = [
        Column("latency", side="left"),
        Column("n"),
        Column("p50"),
        Column("p90", rank=1),
        Column("p95"),
        Column("p99"),
        Column("largest", rank=2),
    ]
    rows: list[Sequence[Cell]] = []
    for label, name in OPEN_LATENCIES:
        held: Distribution | None = getattr(whole, name)
        if held is None or (name in REPEATS and held == getattr(whole, REPEATS[name])):
            continue
        rows.append((label, f"{held.n:,}", *latency_cells(held)))
    notes = ["from schedule: from when the plan wanted the request sent, which is what SLOs judge"]
    return Group(
        heading("Latency of all measured requests"),
        indented(FittingTable(columns, rows)),
        *latency_notes(rows, notes, whole),
    )


def breakdown(found: Breakdown | None) -> RenderableType | None:
    """Return the latencies of a load's parts; None where it has none."""
    if found is None:
        return None
    title, name = PARTS_OF[found.of]
    columns = [
        Column(f"\n{name}", side="left"),
        Column("\nn"),
        Column("TTFT\np50"),
        Column("\np95"),
        Column("\np99", rank=2),
        Column("E2E\np50", rank=3),
        Column("\np95", rank=1, name="E2E p95"),
        Column("ITL\np50", rank=4),
    ]
    if found.of != "class":
        columns.append(Column("in\nflight"))
    rows: list[Sequence[Cell]] = []
    for part in found.parts[:MOST_PARTS]:
        cells = [safe(part.name, 60), f"{part.requests:,}"]
        cells += [numbers.percentile(part.ttft, one) for one in ("p50", "p95", "p99")]
        cells += [numbers.percentile(part.e2e, one) for one in ("p50", "p95")]
        cells.append(numbers.percentile(part.itl, "p50"))
        if found.of != "class":
            cells.append(numbers.count(part.outstanding))
        rows.append(cells)
    notes = ["TTFT and E2E from schedule"]
    if found.of != "class":
        notes[0] += "; in flight: our requests, on average while the part's were due"
    if len(found.parts) > MOST_PARTS:
        notes.append(f"and {len(found.parts) - MOST_PARTS:,} more, in result.json")
    if any(str(cell).endswith(numbers.UNSUPPORTED) for row in rows for cell in row):
        notes.append(numbers.UNSUPPORTED_NOTE)
    return Group(
        heading(title),
        indented(FittingTable(columns, rows)),
        *(indented(Text(note, style="dim")) for note in notes),
    )


def open_lines(plan: TrialPlan, measured: Measurement) -> list[tuple[str, str]]:
    """Return what was done of an open loop's plan, line by line; nothing of a closed one."""
    if plan.arrivals is None:
        return []
    lines: list[tuple[str, str]] = []
    if plan.arrivals.trace is not None:
        lines.append(("Trace", _trace(plan.arrivals.trace)))
    if measured.delivered is not None:
        lines.append(("Arrivals", _delivered(measured.delivered)))
    if measured.queueing is not None:
        lines.append(("Queue", _queueing(measured.queueing)))
    elif not plan.arrivals.steady:
        lines.append(("Queue", "not judged: this load has no one rate that it could keep up with"))
    if measured.stalls is not None and measured.stalls.count:
        lines.append(("Stalls", _stalls(measured.stalls)))
    return lines


def _stalls(stalls: Stalls) -> str:
    """Say when nothing came from the server, the longest times of it."""
    bound, total = numbers.duration(stalls.bound_ns), numbers.duration(stalls.total_ns)
    said = f"{numbers.count(stalls.count, 'time')} nothing came for more than {bound}, {total} in all: "
    longest = sorted(stalls.listed, key=lambda stall: -stall.length_ns)[:_MOST_STALLS]
    said += "; ".join(
        f"{numbers.duration(stall.length_ns)} from {numbers.duration(stall.after_ns)} on, "
        f"{stall.waited:,} waited, {stall.sent:,} of them sent meanwhile"
        for stall in sorted(longest, key=lambda stall: stall.begin_ns)
    )
    return said + (" and shorter ones" if stalls.count > len(longest) else "")


def _trace(trace: TracePlan) -> str:
    """Say what of a recorded trace was repeated."""
    said = f"{safe(trace.name, 80)}, {trace.format}: {trace.requests:,} of {trace.read:,} requests repeated"
    said += f" over {numbers.duration(trace.duration_ns)}"
    if trace.left_out:
        said += "; left out " + ", ".join(
            f"{count:,} {safe(why, 60)}" for why, count in trace.left_out.items()
        )
    if trace.raised:
        said += f"; {trace.raised:,} sent longer than recorded, as short as a prompt can be"
    if trace.block_tokens is not None:
        said += f"; shared prefixes in blocks of {trace.block_tokens:,} tokens"
    return said


def _delivered(delivered: Delivered) -> str:
    """Say how the arrivals of an open loop were delivered."""
    rate = delivered.rate
    # A trace may bring one request an hour.
    said_rate = numbers.count(rate) if rate is None or rate >= 0.1 else f"{rate:.3g}"
    said = f"{delivered.sent:,} of {delivered.planned:,} sent, {said_rate} requests/s"
    if delivered.overrun:
        said += "; ended by the limit of outstanding requests"
    tests = delivered.tests.tests if delivered.tests is not None else ()
    held = [
        f"{test.test} {'unknown' if test.held is None else 'held' if test.held else 'NOT HELD'}"
        for test in tests
    ]
    return said + (f"; {', '.join(held)}" if held else "")


def _queueing(queueing: Queueing) -> str:
    """Say whether the queue was bounded and the latency steady, after what was left out as a warm-up."""
    said = []
    for name, growth in (("outstanding", queueing.outstanding), ("waiting in the server", queueing.waiting)):
        if growth is not None:
            most = numbers.count(growth.most_change)
            said.append(f"{name} {growth.conclusion} (a rise of {most} at most, p {growth.p_value:.2g})")
    if queueing.thirds is not None:
        drifts = queueing.unsteady
        parts = " / ".join(numbers.duration(value) for value in queueing.thirds.sizes)
        said.append(f"TTFT by thirds {parts}: {'drifting' if drifts else 'steady'}")
    left = f"the first {numbers.duration(queueing.warm_up_s * 1e9)} left out" if queueing.warm_up_s else ""
    return "; ".join([*said, *([left] if left else [])]) or "too little to tell"
