"""How late requests were sent since somebody last asked: a maximum and a mean, in constant memory."""

from __future__ import annotations


class Lag:
    """Gather the send lags (sent - scheduled, ns) of a span of time."""

    __slots__ = ("count", "largest_ns", "total_ns")

    def __init__(self) -> None:
        self.count = self.total_ns = self.largest_ns = 0

    def add(self, lag_ns: int) -> None:
        """Take one request's lag."""
        self.count += 1
        self.total_ns += lag_ns
        if lag_ns > self.largest_ns:
            self.largest_ns = lag_ns

    @property
    def mean_ns(self) -> float | None:
        """Return the mean, None where nothing was sent."""
        return self.total_ns / self.count if self.count else None
