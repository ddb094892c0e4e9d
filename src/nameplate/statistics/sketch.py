"""A histogram of any number of values in bounded memory: percentiles within a stated relative error."""

from __future__ import annotations

import math
from fractions import Fraction

from msgspec import Struct

from nameplate.statistics.censoring import CensoredPercentile
from nameplate.statistics.percentile import SHOWN, Distribution, Number, percent_as_fraction, supported

# Logarithmic buckets: HdrHistogram (Tene 2012), DDSketch (Masson, Rim & Lee 2019, VLDB 12).
METHOD = "logarithmic buckets (DDSketch: Masson, Rim & Lee 2019)"
RELATIVE_ERROR = 0.01
# Below it a value is zero, above it refused: with 1% that is at most 3,226 buckets. 1e19 ns are three centuries.
SMALLEST = 1e-9
LARGEST = 1e19
# Buckets are narrower than promised by this much, so that roundings at their edges cannot break the promise.
_SPARE = 1e-6


class SketchState(Struct, frozen=True, kw_only=True):
    """Hold a sketch as a frozen value that goes to JSON and back: pairs of a bucket's index and its count."""

    version: int = 1
    relative_error: float
    known: tuple[tuple[int, int], ...] = ()
    open: tuple[tuple[int, int], ...] = ()
    zeros: int = 0
    open_zeros: int = 0
    never: int = 0
    missing: int = 0
    total: float = 0.0
    smallest: float | None = None
    largest: float | None = None


class Sketch:
    """Count values into buckets whose width is a fixed share of the value.

    A percentile is within `relative_error` of that of the values themselves, by the house's definition (linear
    between closest ranks); values below 1e-9 count as 0. Sketches of parts merge into exactly the sketch of the
    whole. Beside known values it counts open ones (known to be at least x), failed ones and missing ones.
    """

    __slots__ = ("_known", "_log_gamma", "_open", "_state")

    def __init__(self, relative_error: float = RELATIVE_ERROR) -> None:
        if not 1e-4 <= relative_error <= 0.5:
            raise ValueError(f"a relative error of {relative_error} is outside 0.0001..0.5")
        kept = relative_error * (1 - _SPARE)
        self._log_gamma = math.log1p(kept) - math.log1p(-kept)
        self._known: dict[int, int] = {}
        self._open: dict[int, int] = {}
        self._state = _Scalars(relative_error)

    @property
    def relative_error(self) -> float:
        return self._state.relative_error

    @property
    def completed(self) -> int:
        return self._state.completed

    @property
    def n(self) -> int:
        """Return how many members there are: known, open, failed and missing."""
        held = self._state
        return held.completed + held.open + held.never + held.missing

    def add(self, value: Number) -> None:
        """Count one known value; ValueError where it is negative, not finite or above 1e19."""
        held = self._state
        index = self._index(value)
        if index is None:
            held.zeros += 1
        else:
            self._known[index] = self._known.get(index, 0) + 1
        held.completed += 1
        held.total += value
        if value < held.smallest:
            held.smallest = float(value)
        if value > held.largest:
            held.largest = float(value)

    def add_open(self, waited: Number) -> None:
        """Count one member of which is only known that its value is at least `waited`."""
        index = self._index(waited)
        if index is None:
            self._state.open_zeros += 1
        else:
            self._open[index] = self._open.get(index, 0) + 1
        self._state.open += 1

    def add_never(self, count: int = 1) -> None:
        """Count members that will never come to a value."""
        self._state.never += _count(count)

    def add_missing(self, count: int = 1) -> None:
        """Count members of which nothing is known."""
        self._state.missing += _count(count)

    def merge(self, other: Sketch) -> None:
        """Add another sketch's members; ValueError where its relative error is another."""
        mine, theirs = self._state, other._state
        if mine.relative_error != theirs.relative_error:
            raise ValueError(f"sketches of {mine.relative_error} and {theirs.relative_error} do not merge")
        for target, source in ((self._known, other._known), (self._open, other._open)):
            for index, count in list(source.items()):
                target[index] = target.get(index, 0) + count
        mine.merge(theirs)

    def percentile(self, percent: float) -> CensoredPercentile:
        """Return a percentile with its best and worst case, each within the relative error of the exact one."""
        held = self._state
        both = dict(self._known)
        for index, count in self._open.items():
            both[index] = both.get(index, 0) + count
        zeros, open_zeros = held.zeros, held.open_zeros
        n = self.n
        return CensoredPercentile(
            method=METHOD,
            percent=percent,
            n=n,
            completed=held.completed,
            open=held.open,
            never=held.never,
            missing=held.missing,
            completed_only=self._at(self._known, zeros, held.completed, percent, clip=True),
            best=self._at(both, zeros + open_zeros + held.missing, n, percent, clip=held.open == 0),
            worst=self._at(self._known, zeros, n, percent, clip=True),
            relative_error=held.relative_error,
        )

    def summarise(self, unit: str = "ns") -> Distribution:
        """Summarise as for values kept whole; open, failed and missing members are censored and stand at infinity."""
        held, n = self._state, self.n
        censored = n - held.completed
        p50, p90, p95, p99 = (self._at(self._known, held.zeros, n, percent, clip=True) for percent in SHOWN)
        return Distribution(
            unit=unit,
            n=n,
            censored=censored,
            mean=held.total / n if n and not censored else None,
            min=held.smallest if held.completed else None,
            max=held.largest if held.completed and not censored else None,
            p50=p50,
            p90=p90,
            p95=p95,
            p99=p99,
            unsupported=tuple(f"p{percent:g}" for percent in SHOWN if not supported(n, percent)),
        )

    def state(self) -> SketchState:
        """Return everything as a frozen value."""
        held = self._state
        return SketchState(
            relative_error=held.relative_error,
            known=tuple(sorted(self._known.items())),
            open=tuple(sorted(self._open.items())),
            zeros=held.zeros,
            open_zeros=held.open_zeros,
            never=held.never,
            missing=held.missing,
            total=held.total,
            smallest=held.smallest if held.completed else None,
            largest=held.largest if held.completed else None,
        )

    @classmethod
    def of(cls, state: SketchState) -> Sketch:
        """Return the sketch of a frozen value; ValueError where it is not one that a sketch can have written."""
        made = cls(state.relative_error)
        held = made._state
        edge = math.ceil(math.log(LARGEST) / made._log_gamma) + 1
        for index, count in (*state.known, *state.open):
            if count <= 0 or abs(index) > edge:
                raise ValueError(f"bucket {index} with count {count} is not one of a sketch")
        made._known, made._open = dict(state.known), dict(state.open)
        held.zeros, held.open_zeros = _count(state.zeros), _count(state.open_zeros)
        held.never, held.missing = _count(state.never), _count(state.missing)
        held.completed = held.zeros + sum(made._known.values())
        held.open = held.open_zeros + sum(made._open.values())
        held.total = state.total
        if held.completed:
            if state.smallest is None or state.largest is None:
                raise ValueError("a sketch of known values without their extremes")
            held.smallest, held.largest = state.smallest, state.largest
        return made

    def _index(self, value: Number) -> int | None:
        """Return the bucket that holds gamma^(i-1) < value <= gamma^i; None for the one of zeros."""
        if not 0 <= value <= LARGEST:
            raise ValueError(f"{value} is not a value between 0 and {LARGEST:g}")
        if value < SMALLEST:
            return None
        return math.ceil(math.log(value) / self._log_gamma)

    def _at(self, counts: dict[int, int], zeros: int, n: int, percent: float, *, clip: bool) -> float | None:
        """Return a percentile of zeros, then buckets, then infinite values up to n; None where it is infinite."""
        if n == 0:
            return None
        rank = percent_as_fraction(percent) * (n - 1)
        low, high = math.floor(rank), math.ceil(rank)
        known = zeros + sum(counts.values())
        if high >= known:
            return None
        found: list[float] = []
        passed = zeros
        wanted = [low, high]
        while wanted and wanted[0] < zeros:
            found.append(0.0)
            wanted.pop(0)
        for index in sorted(counts) if wanted else ():
            passed += counts[index]
            while wanted and wanted[0] < passed:
                found.append(self._value(index, clip))
                wanted.pop(0)
            if not wanted:
                break
        lower, upper = Fraction(found[0]), Fraction(found[1])
        return float(lower + (upper - lower) * (rank - low))

    def _value(self, index: int, clip: bool) -> float:
        """Return the value whose relative distance to both edges of a bucket is the same."""
        edge = math.exp(index * self._log_gamma)
        value = edge * 2 / (1 + math.exp(self._log_gamma))
        # Known values do not leave their extremes, which are kept exactly.
        return min(max(value, self._state.smallest), self._state.largest) if clip else value


class _Scalars:
    """Hold what a sketch counts beside its buckets."""

    __slots__ = (
        "completed",
        "largest",
        "missing",
        "never",
        "open",
        "open_zeros",
        "relative_error",
        "smallest",
        "total",
        "zeros",
    )

    def __init__(self, relative_error: float) -> None:
        self.relative_error = relative_error
        self.completed = self.open = self.zeros = self.open_zeros = self.never = self.missing = 0
        self.total = 0.0
        self.smallest = math.inf
        self.largest = -math.inf

    def merge(self, other: _Scalars) -> None:
        self.completed += other.completed
        self.open += other.open
        self.zeros += other.zeros
        self.open_zeros += other.open_zeros
        self.never += other.never
        self.missing += other.missing
        self.total += other.total
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)


def _count(count: int) -> int:
    if count < 0:
        raise ValueError(f"{count} is not a count")
    return count
