"""How much neighbours in a series depend on each other, and what that does to a variance."""

from __future__ import annotations

import math
from collections.abc import Sequence

# An estimate above this says "a random walk" and no finite sample can tell how far it goes.
MOST_CORRELATION = 0.97


def autocorrelations(values: Sequence[float], lags: int) -> list[float]:
    """Return the sample autocorrelations at lags 0..lags, with divisor n; zeros where the values are constant."""
    n = len(values)
    lags = min(lags, n - 1)
    mean = math.fsum(values) / n
    centred = [value - mean for value in values]
    power = _dot(centred, centred)
    if power <= 0:
        return [1.0] + [0.0] * lags
    found = [1.0]
    for lag in range(1, lags + 1):
        found.append(_dot(centred[lag:], centred) / power)
    return found


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=False))


def lag_one(residuals: Sequence[float], fitted: int = 1) -> float:
    """Return the lag-one autocorrelation, corrected for the bias of a short sample, in -1..0.97.

    The plain estimate is too small by about (1 + 3 phi)/n when a mean was taken out (Kendall 1954, Biometrika 41;
    Marriott & Pope 1954) and by (2 + 4 phi)/n with a second fitted value (`fitted`: 1 for a mean, 2 for a line or two
    levels).
    """
    n = len(residuals)
    if n < 4:
        return 0.0
    if min(residuals) == max(residuals):
        return 0.0
    plain = autocorrelations(residuals, 1)[1]
    lost, scale = float(fitted), 2.0 + fitted
    if n <= scale:
        return plain
    return max(-1.0, min(MOST_CORRELATION, (n * plain + lost) / (n - scale)))


def mean_factor(n: int, phi: float) -> float:
    """Return by how much a first-order dependence multiplies the variance of a mean of n values; at least 1.

    (1 + phi)/(1 - phi) for long series, with its finite-sample term (Bayley & Hammersley 1946). A negative
    dependence would make a test sharper; that gift is not taken.
    """
    if phi <= 0 or n < 2:
        return 1.0
    phi = min(phi, MOST_CORRELATION)
    return max(1.0, (1 + phi) / (1 - phi) - 2 * phi * (1 - phi**n) / (n * (1 - phi) ** 2))
