"""How late our own client was: judged, never corrected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from nameplate.evidence.rows import RequestRow
from nameplate.statistics.percentile import percentile


class Lag(Struct, frozen=True):
    """Hold the n, median, p99 and largest of one kind of lateness in nanoseconds."""

    n: int
    p50_ns: float
    p99_ns: float
    max_ns: float


class Lateness(Struct, frozen=True):
    """Hold the client's lateness over measured requests.

    `since_empty` is how long before each read its socket was last known to be empty; `send_lag` is sent - scheduled.
    `arrival_doubt` is how much too late the stamp of a read's events may be: 0 for a kernel-stamped read that holds at
    most one event, whose stamp is exact however late the read was, else `since_empty`. `user_stamped_share` is the
    share of reads without a kernel stamp. Null where nothing was seen.
    """

    since_empty: Lag | None
    arrival_doubt: Lag | None
    send_lag: Lag | None
    reads: int
    user_stamped_share: float | None


def measure_lateness(
    measured: Sequence[RequestRow],
    since_empty_ns: Iterable[int],
    arrival_doubt_ns: Iterable[int],
    user_stamped: int,
) -> Lateness:
    """Measure the lateness of reads and sends."""
    lags = [row.sent_ns - row.scheduled_ns for row in measured if row.sent_ns is not None]
    since_empty = _lag(since_empty_ns)
    reads = since_empty.n if since_empty else 0
    share = user_stamped / reads if reads else None
    return Lateness(since_empty, _lag(arrival_doubt_ns), _lag(lags), reads, share)


def _lag(values: Iterable[int]) -> Lag | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return Lag(len(ordered), percentile(ordered, 50.0), percentile(ordered, 99.0), float(ordered[-1]))
