"""What a trial's TTFT is made of, as a table: queue, prefill and what they leave."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.measure.waits import Estimate, Part, Waits
from nameplate.report import numbers
from nameplate.report.layout import Cell, heading, indented
from nameplate.report.safe import safe
from nameplate.report.table import Column, FittingTable
from nameplate.statistics.buckets import Interval

# Sums of seconds since a server's start, as a page writes them, hold no more.
ROUNDING_NS = 1000

_COLUMNS = (
    Column("part", side="left"),
    Column("n"),
    Column("mean"),
    Column("p50 within", rank=1),
    Column("p95 within"),
    Column("p99 within", rank=2),
)


def waits_table(waits: Waits | None) -> RenderableType | None:
    """Return queue, prefill and rest of the TTFT with their bucket intervals; None where nothing is told of them."""
    if waits is None:
        return None
    if waits.queue is None or waits.prefill is None:
        return _estimated(waits)
    rows: list[Sequence[Cell]] = [_row("queue", waits.queue), _row("prefill", waits.prefill)]
    if waits.rest_mean_ns is not None:
        rows.append(_plain("rest", waits.n, waits.rest_mean_ns))
        rows.append(_plain("= TTFT, ours", waits.n, waits.ttft_mean_ns))
    if waits.send_lag_mean_ns is not None:
        rows.append(_plain("send lag before it", waits.n, waits.send_lag_mean_ns))
    if waits.server_ttft is not None:
        rows.append(_row("TTFT, the server's", waits.server_ttft))
    if waits.decode is not None:
        rows.append(_row("decode", waits.decode))
    return Group(
        heading("Queue and prefill apart, by the server's own clock"),
        indented(FittingTable(_COLUMNS, rows)),
        *(indented(Text(note, style="dim")) for note in waits_notes(waits)),
    )


def between(interval: Interval | None, unsupported: bool = False) -> str:
    """Write a bucket interval; above the last edge there is no upper end."""
    if interval is None:
        return numbers.ABSENT
    mark = numbers.UNSUPPORTED if unsupported else ""
    if interval.high is None:
        return f"above {numbers.limit(interval.low)}{mark}"
    return f"{numbers.between(numbers.limit(interval.low), numbers.limit(interval.high))}{mark}"


def time_of(mean_ns: int | None) -> str:
    """Write a mean that may be a difference of others: below a microsecond it is their rounding."""
    return numbers.duration(0 if mean_ns is not None and abs(mean_ns) < ROUNDING_NS else mean_ns)


def _row(name: str, part: Part) -> Sequence[Cell]:
    marked = [
        between(interval, label in part.unsupported)
        for label, interval in (("p50", part.p50), ("p95", part.p95), ("p99", part.p99))
    ]
    return name, f"{part.n:,}", numbers.duration(part.mean_ns), *marked


def _plain(name: str, n: int, mean_ns: int | None) -> Sequence[Cell]:
    return name, f"{n:,}", time_of(mean_ns), "", "", ""


def waits_notes(waits: Waits) -> list[str]:
    """Return what must be known beside the parts of a wait."""
    notes = ["Means are exact; a quantile lies between two edges of the server's buckets."]
    if waits.rest_mean_ns is not None:
        notes.append(
            "rest: network and client, and the server's front (HTTP, tokenising, the step in flight)"
        )
        if waits.rest_mean_ns <= -ROUNDING_NS:
            notes.append("A rest below zero is the difference of two clocks.")
    if waits.unmeasured:
        quantiles = waits.queue.quantiles_n if waits.queue is not None else 0
        notes.append(
            f"The means hold {numbers.count(waits.unmeasured, 'request')} of warm-up or ramp as well; quantiles are of "
            f"the {quantiles:,} measured ones."
        )
    if waits.unobserved:
        notes.append(
            f"{numbers.count(waits.unobserved, 'request')} that did not finish: the server did not time them."
        )
    if waits.reason:
        notes.append(f"No rest is shown: {safe(waits.reason)}.")
    if any(part is not None and part.unsupported for part in (waits.queue, waits.decode)):
        notes.append(numbers.UNSUPPORTED_NOTE)
    return notes


def _estimated(waits: Waits) -> RenderableType:
    return Group(heading("Queue and prefill apart"), *(indented(Text(line)) for line in untold(waits)))


def untold(waits: Waits) -> list[str]:
    """Say why the server told nothing of the parts, and what is estimated in their place."""
    said = [f"Not told: {safe(waits.reason)}."]
    if waits.estimate is not None:
        said.append(f"Estimated: {estimate_words(waits.estimate)} (n {waits.n:,}).")
    return said


def estimate_words(estimate: Estimate) -> str:
    """Say an estimate with its range, and what it is made from."""
    spread = numbers.between(numbers.duration(estimate.low_ns), numbers.duration(estimate.high_ns))
    alone = numbers.between(numbers.duration(estimate.alone_low_ns), numbers.duration(estimate.alone_high_ns))
    return (
        f"{numbers.duration(estimate.mean_ns)} of the mean TTFT are queue or a slower prefill ({spread}), beyond the "
        f"{numbers.duration(estimate.alone_ns)} of a request alone ({alone})"
    )
