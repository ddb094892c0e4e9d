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
    `user_stamped_share` is the share of reads without a kernel stamp. Null where nothing was seen.
    """

    since_empty: Lag | None
    send_lag: Lag | None
    reads: int
    user_stamped_share: float | None


def measure_lateness(
    measured: Sequence[RequestRow], since_empty_ns: Iterable[int], reads: int, user_stamped: int
) -> Lateness:
    """Measure the lateness of reads and sends."""
    lags = [row.sent_ns - row.scheduled_ns for row in measured if row.sent_ns is not None]
    return Lateness(_lag(since_empty_ns), _lag(lags), reads, user_stamped / reads if reads > 0 else None)


def _lag(values: Iterable[int]) -> Lag | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return Lag(len(ordered), percentile(ordered, 50.0), percentile(ordered, 99.0), float(ordered[-1]))
