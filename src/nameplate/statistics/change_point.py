"""Where a series jumps to another level: one shift or several, by ranks, told apart from a trend.

Measured false alarms of nominally 5%, n = 48 / 96, one shift (several, where they differ, in brackets):

    first-order noise (1,500 series)  phi 0: 0.00 / 0.00   phi 0.5: 0.02 / 0.01   phi 0.9: 0.05 / 0.05 (0.07 / 0.06)
    a straight rise, phi 0 (400)      of 1 deviation: 0.03 / 0.02   2: 0.07 / 0.04   3: 0.04 / 0.01   5 and more: 0.01
    a straight rise, phi 0.5 (400)    of 1 deviation: 0.04 / 0.04   2: 0.07 / 0.09   3: 0.11 / 0.06   5: 0.02 / 0.01

The significance alone (Pettitt's corrected p) fires on a trend as on a step; only the comparison with a line tells
them apart, so ask `found`, not `significant`. Power for a step of two deviations in the middle: phi 0: 0.79 / 0.96,
0.5: 0.52 / 0.73, 0.9: 0.14 / 0.26. Not told: a step on top of a trend of its own size, a ramp between two flat
parts (taken for one step or more), and shifts within five points of an end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from nameplate.statistics.dependence import lag_one, mean_factor
from nameplate.statistics.percentile import Number
from nameplate.statistics.ranks import finite, median, ranks, thinned

METHOD = "Pettitt 1979 on ranks, variance corrected for first-order dependence, held against a straight line"
SEVERAL = "binary segmentation (Scott & Knott 1974) by the test for one shift"
# Longer series are thinned by medians of runs, as for trends, so that both speak of the same points.
MOST_POINTS = 1_000
# No level is shorter than this: with fewer points on a side the p-value cannot reach 5%.
SHORTEST_LEVEL = 5
# Most shifts that are told: a series with more has no levels.
MOST_SHIFTS = 20


class Shift(Struct, frozen=True, kw_only=True):
    """Hold one shift: `index` is the first value of the new level; `before` and `after` are the levels' medians."""

    index: int
    before: float
    after: float
    p_value: float

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def relative_change(self) -> float | None:
        return self.change / self.before if self.before > 0 else None


class LevelShift(Struct, frozen=True, kw_only=True):
    """Hold the test for one shift and its best candidate, found or not.

    `statistic` is Pettitt's K, `factor` what dependence multiplies its variance by, `phi` the lag-one correlation of
    the ranks around the two levels. `advantage` is by how much two levels explain the ranks better than a straight
    line, n/factor x ln(RSS line / RSS levels); it must exceed `needed`, the price of the freely chosen place: twice
    the logarithm of n/factor (Zhang & Siegmund 2007, Biometrics 63).
    """

    method: str = METHOD
    n: int
    points: int
    run: int
    statistic: float
    phi: float
    factor: float
    p_value: float
    alpha: float
    advantage: float
    needed: float
    candidate: Shift
    material_relative: float
    material_absolute: float

    @property
    def significant(self) -> bool:
        return self.p_value < self.alpha

    @property
    def beats_line(self) -> bool:
        return self.advantage > self.needed

    @property
    def material(self) -> bool:
        return _is_material(self.candidate, self.material_relative, self.material_absolute)

    @property
    def found(self) -> bool:
        """Tell whether the level shifted: significant, better than a straight line, and material."""
        return self.significant and self.beats_line and self.material


class LevelShifts(Struct, frozen=True, kw_only=True):
    """Hold the shifts that were found, in time order; each one's p-value is that between its neighbours."""

    method: str = f"{SEVERAL}; {METHOD}"
    n: int
    points: int
    run: int
    alpha: float
    material_relative: float
    material_absolute: float
    shifts: tuple[Shift, ...]


class _Test(Struct, frozen=True):
    place: int
    statistic: float
    phi: float
    factor: float
    p_value: float
    advantage: float
    needed: float


def level_shift(
    values: Sequence[Number],
    *,
    alpha: float = 0.05,
    material_relative: float = 0.05,
    material_absolute: float = 0.0,
) -> LevelShift:
    """Test a series in time order for one shift of its level (Pettitt 1979, Applied Statistics 28).

    ValueError for fewer than ten values or values that are not finite.
    """
    points, run = _prepare(values)
    test = _pettitt(points)
    return LevelShift(
        n=len(values),
        points=len(points),
        run=run,
        statistic=test.statistic,
        phi=test.phi,
        factor=test.factor,
        p_value=test.p_value,
        alpha=alpha,
        advantage=test.advantage,
        needed=test.needed,
        candidate=_shift(points, 0, test.place, len(points), run, test.p_value),
        material_relative=material_relative,
        material_absolute=material_absolute,
    )


def level_shifts(
    values: Sequence[Number],
    *,
    alpha: float = 0.05,
    material_relative: float = 0.05,
    material_absolute: float = 0.0,
) -> LevelShifts:
    """Find several shifts: split as if values were independent, then drop what their dependence explains.

    A shift stays if, between its neighbours, it is significant, explains the ranks better than a straight line, and
    is material; and all together must explain the whole series better than one line does. ValueError as for one.
    """
    points, run = _prepare(values)
    places = _split(points, 0, len(points), alpha)
    kept = _prune(points, _refine(points, places), alpha, material_relative, material_absolute, run)
    if kept and not _levels_beat_line(points, [shift.index // run for shift in kept]):
        kept = []
    return LevelShifts(
        n=len(values),
        points=len(points),
        run=run,
        alpha=alpha,
        material_relative=material_relative,
        material_absolute=material_absolute,
        shifts=tuple(kept),
    )


def _prepare(values: Sequence[Number]) -> tuple[list[float], int]:
    if len(values) < 2 * SHORTEST_LEVEL:
        raise ValueError(f"{len(values)} values show no shift: at least {2 * SHORTEST_LEVEL} are needed")
    finite(values, "the series")
    return thinned(values, MOST_POINTS)


def _pettitt(points: Sequence[float], phi: float | None = None) -> _Test:
    """Return the best place for a shift with its test; without `phi` the dependence is that around the two levels."""
    n = len(points)
    ranked = ranks(points)
    middle = (n + 1) / 2
    power = math.fsum((rank - middle) ** 2 for rank in ranked)
    if power == 0:
        return _Test(n // 2, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    best, place, running = -1.0, SHORTEST_LEVEL, 0.0
    for t in range(1, n):
        running += ranked[t - 1] - middle
        if SHORTEST_LEVEL <= t <= n - SHORTEST_LEVEL and abs(running) > best:
            best, place = abs(running), t
    statistic = 2 * best
    levels = [0, place, n]
    residuals = _residuals(ranked, levels)
    if phi is None:
        phi = lag_one(residuals, fitted=2)
    factor = mean_factor(n, phi)
    # 2 exp(-6 K^2/(n^3 + n^2)); ties make the ranks' power smaller than n(n^2-1)/12.
    exponent = 6 * statistic**2 / (n**3 + n**2) * (n * (n * n - 1) / 12) / power / factor
    advantage, needed = _advantage(ranked, residuals, factor, shifts=1)
    dated = _date(points, place)
    return _Test(dated, statistic, phi, factor, min(1.0, 2 * math.exp(-exponent)), advantage, needed)


def _date(points: Sequence[float], place: int) -> int:
    """Return the place at which the levels' medians around a first guess fit the values best, by absolute deviations.

    Ranks tell that a level shifted, and how surely, but forget the gap between levels, which tells when; no outlier
    weighs more than that gap.
    """
    n = len(points)
    before, after = median(points[:place]), median(points[place:])
    cost, best, dated = 0.0, math.inf, place
    for t in range(1, n - SHORTEST_LEVEL + 1):
        cost += abs(points[t - 1] - before) - abs(points[t - 1] - after)
        if t >= SHORTEST_LEVEL and cost < best:
            best, dated = cost, t
    return dated


def _residuals(ranked: Sequence[float], levels: Sequence[int]) -> list[float]:
    """Return the ranks less the mean of their level; `levels` are the levels' bounds."""
    found: list[float] = []
    for start, end in pairwise(levels):
        mean = math.fsum(ranked[start:end]) / (end - start)
        found += [rank - mean for rank in ranked[start:end]]
    return found


def _advantage(
    ranked: Sequence[float], residuals: Sequence[float], factor: float, shifts: int
) -> tuple[float, float]:
    """Return by how much levels explain the ranks better than a line, and what their free places cost."""
    n = len(ranked)
    line, levels = _line_power(ranked), math.fsum(value * value for value in residuals)
    effective = max(math.e, n / factor)
    # A shift costs a mean and a freely chosen place, in all 3 ln n (Zhang & Siegmund 2007), a slope ln n.
    needed = (3 * shifts - 1) * math.log(effective)
    # A thousandth of a rank step: the roundings of a perfect fit must not decide.
    floor = n * 1e-6
    return effective * math.log(max(line, floor) / max(levels, floor)), needed


def _line_power(ranked: Sequence[float]) -> float:
    """Return the squared residuals of the ranks around their least-squares line."""
    n = len(ranked)
    centre, middle = (n - 1) / 2, math.fsum(ranked) / n
    across = math.fsum((i - centre) * (rank - middle) for i, rank in enumerate(ranked))
    power = math.fsum((rank - middle) ** 2 for rank in ranked)
    return max(0.0, power - across * across / (n * (n * n - 1) / 12))


def _split(points: Sequence[float], start: int, end: int, alpha: float) -> list[int]:
    """Return the places that binary segmentation finds, ascending; a worklist, so that depth is no limit."""
    found: list[int] = []
    left = [(start, end)]
    while left and len(found) < MOST_SHIFTS:
        low, high = left.pop()
        if high - low < 2 * SHORTEST_LEVEL:
            continue
        # As if independent: too many places here, but the levels between them then show the dependence.
        test = _pettitt(points[low:high], phi=0.0)
        if test.p_value < alpha:
            found.append(low + test.place)
            left += [(low, low + test.place), (low + test.place, high)]
    return sorted(found)


def _refine(points: Sequence[float], places: Sequence[int]) -> list[int]:
    """Move each place to the best one between its neighbours: the first splits were made in sight of later levels."""
    refined = list(places)
    for i in range(len(refined)):
        low = refined[i - 1] if i else 0
        high = refined[i + 1] if i + 1 < len(refined) else len(points)
        if high - low >= 2 * SHORTEST_LEVEL:
            refined[i] = low + _pettitt(points[low:high], phi=0.0).place
    return refined


def _prune(
    points: Sequence[float], places: list[int], alpha: float, relative: float, absolute: float, run: int
) -> list[Shift]:
    """Drop the weakest shift that does not hold between its neighbours, until all hold.

    The dependence is estimated anew around the levels that are left: noise that was cut into levels shows its own as
    they go, while true levels leave none behind.
    """
    places = list(places)
    ranked = ranks(points)
    while places:
        bounds = [0, *places, len(points)]
        phi = lag_one(_residuals(ranked, bounds), fitted=len(bounds) - 1)
        shifts, worst, excess = [], -1, 0.0
        for i, place in enumerate(places):
            low, high = bounds[i], bounds[i + 2]
            if high - low < 2 * SHORTEST_LEVEL:
                weak, p_value = 1.0, 1.0
            else:
                test = _pettitt(points[low:high], phi)
                p_value = test.p_value
                weak = max(p_value / alpha if p_value >= alpha else 0.0, test.needed - test.advantage)
            shift = _shift(points, low, place, high, run, p_value)
            shifts.append(shift)
            if not _is_material(shift, relative, absolute):
                weak = max(weak, 1.0)
            if weak > excess:
                worst, excess = i, weak
        if worst < 0:
            return shifts
        del places[worst]
    return []


def _levels_beat_line(points: Sequence[float], places: Sequence[int]) -> bool:
    ranked = ranks(points)
    residuals = _residuals(ranked, [0, *places, len(points)])
    factor = mean_factor(len(points), lag_one(residuals, fitted=2))
    advantage, needed = _advantage(ranked, residuals, factor, shifts=len(places))
    return advantage > needed


def _shift(points: Sequence[float], low: int, place: int, high: int, run: int, p_value: float) -> Shift:
    return Shift(
        index=place * run,
        before=median(points[low:place]),
        after=median(points[place:high]),
        p_value=p_value,
    )


def _is_material(shift: Shift, relative: float, absolute: float) -> bool:
    size = abs(shift.change)
    if size < absolute or size == 0:
        return False
    return shift.before <= 0 or size >= relative * shift.before
