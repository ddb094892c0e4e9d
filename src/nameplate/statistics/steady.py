"""Where a warm-up ends, and whether what follows stays the same from third to third.

Measured false alarms of the thirds, nominally 5%, n = 48 / 96 (400 series each): phi 0: 0.02 / 0.04, phi 0.5:
0.06 / 0.04, phi 0.9: 0.10 / 0.09. MSER-5 is no test: it makes the mean's error small. On a series without warm-up it
leaves out a little, with slow swings (phi 0.9) often more, and it does not see a warm-up longer than its bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from nameplate.statistics.dependence import lag_one, mean_factor
from nameplate.statistics.percentile import Number, percentile
from nameplate.statistics.ranks import finite, ranks

MSER = "MSER-5 (White 1997, Simulation 69; batches of five: White, Cobb & Spratt 2000)"
THIRDS = "Kruskal & Wallis 1952 on thirds, variance corrected for first-order dependence"
BATCH = 5
# A minimum in the second half says that the whole series is still on its way (White 1997; Hoad & Robinson 2011).
LATEST = 0.5
# The last batches alone have a small error by chance; the search never reaches them.
_FEWEST_BATCHES = 10


class WarmUp(Struct, frozen=True, kw_only=True):
    """Hold where a warm-up ends: `values` of the `n` belong to it.

    `statistic` is the squared standard error of the mean of what is left, the smallest over all cuts up to `latest`
    (a number of values); `ended` is false where that smallest stands at the last cut allowed, or where the series has
    fewer than ten batches: then no end was seen and `values` is the bound.
    """

    method: str = MSER
    n: int
    batch: int
    values: int
    latest: int
    statistic: float | None
    ended: bool


def warm_up_end(values: Sequence[Number], *, batch: int = BATCH, latest: float = LATEST) -> WarmUp:
    """Find how many first values to leave out so that the mean of the rest has the smallest standard error.

    Values stand in time order; `latest` bounds the warm-up as a share of the series. ValueError for values that are
    not finite, a batch below 1 or a share outside 0..1.
    """
    if batch < 1 or not 0 < latest < 1:
        raise ValueError(f"batches of {batch} up to a share of {latest} are impossible")
    finite(values, "the series")
    n = len(values)
    means = [math.fsum(values[i : i + batch]) / batch for i in range(0, n - batch + 1, batch)]
    most = math.floor(len(means) * latest)
    if len(means) < _FEWEST_BATCHES:
        return WarmUp(n=n, batch=batch, values=most * batch, latest=most * batch, statistic=None, ended=False)
    # Around the last mean, so that the difference of squares keeps its precision.
    centre = means[-1]
    total = squares = 0.0
    best, cut = math.inf, most
    for place in range(len(means) - 1, -1, -1):
        off = means[place] - centre
        total += off
        squares += off * off
        left = len(means) - place
        if place > most:
            continue
        error = max(0.0, squares - total * total / left) / (left * left)
        # Of equal cuts the earliest: nothing is thrown away without a gain.
        if error <= best:
            best, cut = error, place
    return WarmUp(n=n, batch=batch, values=cut * batch, latest=most * batch, statistic=best, ended=cut < most)


class Thirds(Struct, frozen=True, kw_only=True):
    """Hold whether three equal parts of a series come from one distribution, and how far they are apart.

    `sizes` are the thirds' percentiles (`percent`), `spread` the largest less the smallest, `relative_spread` that
    over the smallest (null where it is not above zero). `statistic` is H over `factor`, judged as 2 F with two and
    n/factor - 3 degrees of freedom, since the dependence was itself estimated.
    """

    method: str = THIRDS
    n: int
    percent: float
    sizes: tuple[float, float, float]
    statistic: float
    factor: float
    p_value: float
    alpha: float
    spread: float
    relative_spread: float | None
    material_relative: float
    material_absolute: float

    @property
    def significant(self) -> bool:
        return self.p_value < self.alpha

    @property
    def material(self) -> bool:
        if self.spread == 0 or self.spread < self.material_absolute:
            return False
        return self.relative_spread is None or self.relative_spread >= self.material_relative

    @property
    def drifting(self) -> bool:
        """Tell whether the thirds differ: significant and material."""
        return self.significant and self.material


def drift_between_thirds(
    values: Sequence[Number],
    *,
    percent: float = 50.0,
    alpha: float = 0.05,
    material_relative: float = 0.1,
    material_absolute: float = 0.0,
) -> Thirds:
    """Test whether the thirds of a series in time order differ; the test is on all ranks, the size on a percentile.

    ValueError for fewer than fifteen values or values that are not finite.
    """
    n = len(values)
    if n < 15:
        raise ValueError(f"{n} values have no thirds to compare: at least 15 are needed")
    finite(values, "the series")
    bounds = [0, n // 3, n - n // 3, n]
    ranked = ranks(values)
    middle = (n + 1) / 2
    residuals: list[float] = []
    between = 0.0
    sizes = []
    for low, high in pairwise(bounds):
        mean = math.fsum(ranked[low:high]) / (high - low)
        between += (high - low) * (mean - middle) ** 2
        residuals += [rank - mean for rank in ranked[low:high]]
        sizes.append(percentile(sorted(values[low:high]), percent))
    power = math.fsum((rank - middle) ** 2 for rank in ranked)
    factor = mean_factor(n // 3, lag_one(residuals, fitted=3))
    statistic = (n - 1) * between / power / factor if power > 0 else 0.0
    smallest, spread = min(sizes), max(sizes) - min(sizes)
    return Thirds(
        n=n,
        percent=percent,
        sizes=(sizes[0], sizes[1], sizes[2]),
        statistic=statistic,
        factor=factor,
        p_value=_p_value(statistic, n / factor),
        alpha=alpha,
        spread=spread,
        relative_spread=spread / smallest if smallest > 0 else None,
        material_relative=material_relative,
        material_absolute=material_absolute,
    )


def _p_value(statistic: float, effective: float) -> float:
    """Return P(2 F >= statistic), F with 2 and effective - 3 degrees of freedom; exp(-statistic/2) in the limit."""
    degrees = max(1.0, effective - 3)
    return math.exp(-degrees / 2 * math.log1p(statistic / degrees))
