"""Which requests a waterfall shows where there are more than it has room for: a stated selection."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.report import numbers
from nameplate.wire.outcome import Outcome

_CUT = (Outcome.cancelled.value, Outcome.unfinished.value)


class Chosen(Struct, frozen=True):
    """Hold requests in the order in which they were due and started, and in words which these are."""

    rows: tuple[RequestRow, ...]
    said: str


def start_ns(row: RequestRow, opened: bool) -> int:
    """Return when a request's row begins: when it was due in an open loop, else when it was sent."""
    return row.scheduled_ns if opened or row.sent_ns is None else row.sent_ns


def choose(rows: Sequence[RequestRow], plan: TrialPlan, most: int) -> Chosen:
    """Return at most `most` requests: all, or those that failed, those that were slowest, and an even sample."""
    opened = plan.arrivals is not None
    ordered = sorted(rows, key=lambda row: (start_ns(row, opened), row.index))
    if len(ordered) <= most:
        return Chosen(tuple(ordered), f"all {numbers.count(len(ordered), 'request')}")
    bad = [row for row in ordered if _ended_badly(row, plan)]
    kept = {row.index for row in _evenly(bad, most // 4)}
    said = [f"{len(kept):,} of {len(bad):,} that did not end well"] if bad else []
    waits = sorted(ordered, key=lambda row: -_wait_ns(row, opened))[: most // 4]
    gaps = sorted(ordered, key=lambda row: -(row.longest_gap_ns or 0))[: most // 8]
    kept |= {row.index for row in (*waits, *gaps)}
    said += [f"the {len(waits):,} that waited longest", f"the {len(gaps):,} with the longest gaps"]
    others = [row for row in ordered if row.index not in kept]
    sample = _evenly(others, most - len(kept))
    kept |= {row.index for row in sample}
    said.append(f"{len(sample):,} of the rest, evenly spread")
    chosen = tuple(row for row in ordered if row.index in kept)
    return Chosen(chosen, f"{len(chosen):,} of {len(ordered):,} requests: {', '.join(said)}")


def _ended_badly(row: RequestRow, plan: TrialPlan) -> bool:
    return row.outcome != Outcome.ok and not (plan.cut and row.outcome in _CUT)


def _wait_ns(row: RequestRow, opened: bool) -> int:
    """Return how long a request waited for its first output, or until its end where none came."""
    until = row.first_output_ns or row.end_ns
    return 0 if until is None else until - start_ns(row, opened)


def _evenly(rows: Sequence[RequestRow], most: int) -> list[RequestRow]:
    if len(rows) <= most:
        return list(rows)
    return [rows[at * len(rows) // most] for at in range(most)]
