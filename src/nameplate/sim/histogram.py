"""A cumulative-bucket histogram like Prometheus', and vLLM's bucket edges."""

from bisect import bisect_left

# The edges of vLLM's V1 metrics (vllm/v1/metrics/loggers.py), in seconds.
TTFT_EDGES_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
ITL_EDGES_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_EDGES_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip


class Histogram:
    """Count observations by bucket; an observation equal to an edge belongs below it."""

    __slots__ = ("counts", "edges_s", "sum_s")

    def __init__(self, edges_s: tuple[float, ...]) -> None:
        self.edges_s = edges_s
        self.counts = [0] * (len(edges_s) + 1)
        self.sum_s = 0.0

    def observe_ns(self, value_ns: int, times: int = 1) -> None:
        """Count one duration, or several of the same length."""
        value_s = value_ns * 1e-9
        self.counts[bisect_left(self.edges_s, value_s)] += times
        self.sum_s += value_s * times

    @property
    def count(self) -> int:
        """Count all observations."""
        return sum(self.counts)

    @property
    def total(self) -> tuple[float, int]:
        """Return the sum in seconds and the count of all observations."""
        return self.sum_s, sum(self.counts)

    def cumulative(self) -> list[int]:
        """Return the count at or below each edge, the last being all."""
        total = 0
        result = []
        for count in self.counts:
            total += count
            result.append(total)
        return result
