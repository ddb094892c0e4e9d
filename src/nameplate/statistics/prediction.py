"""Where a further value will lie: an upper bound from a few independent ones, positive and alike."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nameplate.statistics.tails import student_quantile


def further_bound(values: Sequence[float], confidence: float) -> float:
    """Return the value that one further draw stays below with this confidence, if logarithms are normal.

    exp(m + t s sqrt(1 + 1/k)), m and s the mean and standard deviation of the k logarithms, t Student's quantile with
    k - 1 degrees of freedom (Hahn & Meeker 1991, "Statistical Intervals", section 4.7). Infinite where the values are
    fewer than two or one of them is; ValueError where one is not positive.
    """
    if len(values) < 2 or any(math.isinf(value) for value in values):
        return math.inf
    if not min(values) > 0:
        raise ValueError(f"{min(values)} has no logarithm")
    logs = [math.log(value) for value in values]
    k = len(logs)
    mean = math.fsum(logs) / k
    spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (k - 1))
    # Equal values need not give a spread of exactly zero; what is below the logarithms' own precision is none.
    if spread < 1e-12:
        return max(values)
    reach = mean + student_quantile(confidence, k - 1) * spread * math.sqrt(1 + 1 / k)
    return math.exp(reach) if reach < 700 else math.inf
