"""Whether a queue grows that is fed by known arrivals, and by how much at most.

A queue beyond capacity is the arrivals' own random walk with a drift: over n Poisson arrivals chance alone moves it by
sqrt(n), as much as an overload of 5% does in 400. But how many arrivals were more or fewer than planned is known. A
saturated server holds on to every one of them, so where the surplus explains what the queue did, it is taken out first:
a control variate (Lavenberg & Welch 1981, Management Science 27), its coefficient by least squares on detrended series.
Where it explains little the server forgets a surplus, and the queue is judged as it is.

Measured error rates, with and without the control variate: docs/rate.md, by `python -m bench.rate queues`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from nameplate.statistics.trend import increments_of, no_upward_trend

METHOD = (
    "outstanding, less the surplus of arrivals where that explains it; one-sided Mann-Kendall with corrected variance "
    "and Student's t of increments (Bonferroni); bound by Sen's interval or the increments"
)
# The share of a queue's detrended movement that the surplus must explain: a saturated server comes near 1, one that
# forgets a surplus within its own latency stays far below.
EXPLAINED = 0.8
# A rise is called one below this: a level has three trials and every one must pass.
ALPHA = 0.01
# What is excluded is excluded at this confidence, one-sided.
CONFIDENCE = 0.95
# A rise of fewer requests is none, however short the sample.
LEAST_REQUESTS = 2.0

Conclusion = Literal["rising", "bounded", "undecided"]


class QueueGrowth(Struct, frozen=True, kw_only=True):
    """Hold whether a queue grew over `points` means, in which `arrivals` were planned.

    `explained` is which share of the queue's movement the surplus of arrivals explains, and `follows` which share of
    the surplus was taken out of it: 0 where it explains too little. `change` is the rise over the span of what is left,
    `most_change` what that is at most with 95% confidence. `rising`: `p_value` is below 1%
    and the rise above half the `resolution` of the arrivals; `bounded`: even the most is below the whole resolution, so
    that the server takes all but that share of the rate; else `undecided`.
    """

    method: str = METHOD
    points: int
    explained: float
    follows: float
    arrivals: float
    resolution: float
    change: float
    most_change: float
    p_value: float
    conclusion: Conclusion

    @property
    def growth(self) -> float:
        """Return the rise as a share of the arrivals."""
        return self.change / self.arrivals

    @property
    def most_growth(self) -> float:
        return self.most_change / self.arrivals


def queue_growth(
    queue: Sequence[float], surplus: Sequence[float], arrivals: float, resolution: float
) -> QueueGrowth:
    """Test whether a queue grows; `surplus` is how many more had arrived than planned at each of its points.

    ValueError for fewer than four points, different lengths, or no arrivals.
    """
    if len(queue) != len(surplus) or not arrivals > 0:
        raise ValueError("a queue needs its arrivals, point by point")
    coefficient, explained = _regression(queue, surplus)
    follows = coefficient if explained > EXPLAINED else 0.0
    adjusted = [value - follows * more for value, more in zip(queue, surplus, strict=True)]
    found = no_upward_trend(adjusted, alpha=1 - CONFIDENCE)
    change = found.trend.change
    most = min(found.trend.slope_high * found.trend.span, increments_of(adjusted).most_change(CONFIDENCE))
    conclusion: Conclusion
    if found.p_value < ALPHA and change > max(LEAST_REQUESTS, resolution / 2 * arrivals):
        conclusion = "rising"
    elif most <= max(LEAST_REQUESTS, resolution * arrivals):
        conclusion = "bounded"
    else:
        conclusion = "undecided"
    return QueueGrowth(
        points=len(queue),
        explained=explained,
        follows=follows,
        arrivals=arrivals,
        resolution=resolution,
        change=change,
        most_change=most,
        p_value=found.p_value,
        conclusion=conclusion,
    )


def _regression(queue: Sequence[float], surplus: Sequence[float]) -> tuple[float, float]:
    """Return the coefficient of one detrended series on another, within 0..1, and the share that it explains."""
    ours, theirs = _detrended(queue), _detrended(surplus)
    power, whole = math.fsum(value * value for value in theirs), math.fsum(value * value for value in ours)
    # What rounding leaves of a series without any movement is none.
    if power <= 1e-9 * len(theirs) or whole <= 1e-9 * len(ours):
        return 0.0, 0.0
    found = math.fsum(a * b for a, b in zip(ours, theirs, strict=True)) / power
    coefficient = max(0.0, min(1.0, found))
    left = math.fsum((a - coefficient * b) ** 2 for a, b in zip(ours, theirs, strict=True))
    return coefficient, max(0.0, 1 - left / whole)


def _detrended(values: Sequence[float]) -> list[float]:
    n = len(values)
    middle, mean = (n - 1) / 2, math.fsum(values) / n
    slope = math.fsum((at - middle) * value for at, value in enumerate(values)) / (n * (n * n - 1) / 12)
    return [value - mean - slope * (at - middle) for at, value in enumerate(values)]
