"""The rates of a rate study: a geometric grid of round numbers, how requests arrive, how many make a sample."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

from msgspec import Struct

from nameplate.contract.arrivals import OUTSTANDING_LIMIT, ArrivalKind, ArrivalPlan
from nameplate.contract.errors import CallerError
from nameplate.contract.slo import Slo

# Rates have three significant digits: below this two neighbours could not be told apart by them, and a sample that
# tells 2% apart is in the tens of thousands.
FINEST, COARSEST = 0.02, 0.5
LOWEST_PER_S, HIGHEST_PER_S = 0.001, 1000.0

# What a sample holds at least: this many requests, so many beyond the strictest percentile, and so many times what one
# request alone takes. docs/rate.md has what that gives on servers of known capacity.
LEAST_REQUESTS, TAIL, LASTING = 64, 20, 10
# Over n Poisson arrivals chance moves their number by sqrt(n), a share of 1/sqrt(n): this over the resolution squared
# makes that 0.6 of the resolution.
FINE = 2.5


class Grid(Struct, frozen=True):
    """Hold a geometric grid of rates with three significant digits, `per_decade` of them from 1 to 10.

    Level k is 10^(k / per_decade) requests a second, rounded; level 0 is one a second.
    """

    per_decade: int

    @classmethod
    def of(cls, resolution: float) -> Grid:
        """Return the coarsest grid whose neighbours are never further apart than a resolution, a share of the lower."""
        return cls(_per_decade(resolution))

    def rate(self, level: int) -> float:
        """Return a level's rate in requests a second."""
        decades, place = divmod(level, self.per_decade)
        return float(f"{10 ** (place / self.per_decade):.2f}e{decades}")

    def at_most(self, rate: float) -> int:
        """Return the highest level whose rate is not above this one."""
        level = math.floor(math.log10(rate) * self.per_decade) + 1
        while self.rate(level) > rate:
            level -= 1
        return level

    def at_least(self, rate: float) -> int:
        """Return the lowest level whose rate is not below this one."""
        level = self.at_most(rate)
        return level if self.rate(level) == rate else level + 1

    @property
    def octave(self) -> int:
        """Return how many levels double the rate."""
        return round(math.log10(2) * self.per_decade)


@cache
def _per_decade(resolution: float) -> int:
    count = math.ceil(1 / math.log10(1 + resolution))
    while True:
        grid = Grid(count)
        rates = [grid.rate(level) for level in range(count + 1)]
        if all(b / a <= 1 + resolution + 1e-9 for a, b in pairwise(rates)):
            return count
        count += 1


class RateRules(Struct, frozen=True, kw_only=True):
    """Hold what belongs to a rate study alone: its grid, its arrivals, and where the search may go.

    `resolution` is how far neighbouring rates are apart at most, as a share. `guess_per_s` is where the locator
    starts; without it, at the rate that would take one request after the other.
    """

    kind: ArrivalKind = "poisson"
    burstiness: float = 1.0
    resolution: float = 0.05
    min_per_s: float = LOWEST_PER_S
    max_per_s: float = HIGHEST_PER_S
    guess_per_s: float | None = None
    outstanding_limit: int = OUTSTANDING_LIMIT

    @property
    def grid(self) -> Grid:
        return Grid.of(self.resolution)

    @property
    def spread(self) -> str:
        """Say how arrivals are spread."""
        return f"gamma:{self.burstiness:g}" if self.kind == "gamma" else self.kind

    def require(self) -> None:
        """Refuse rules under which no rate can be found; CallerError."""
        if not FINEST <= self.resolution <= COARSEST:
            raise CallerError(
                f"A resolution of {self.resolution:.3g} is not possible.",
                why="Finer ones would take tens of thousands of requests a trial, coarser ones tell nothing.",
                hint=f"Give one from {FINEST:.0%} to {COARSEST:.0%}.",
            )
        for name, rate in (
            ("--min", self.min_per_s),
            ("--max", self.max_per_s),
            ("--guess", self.guess_per_s),
        ):
            if rate is not None and not LOWEST_PER_S <= rate <= HIGHEST_PER_S:
                raise CallerError(
                    f"{name} {rate:g} is not a rate that can be tried.",
                    hint=f"Give one from {LOWEST_PER_S:g} to {HIGHEST_PER_S:g} requests a second.",
                )
        if self.grid.at_least(self.min_per_s) > self.grid.at_most(self.max_per_s):
            raise CallerError(
                f"No rate of the grid lies between --min {self.min_per_s:g} and --max {self.max_per_s:g}.",
                hint="Set them further apart, or lower --resolution.",
            )

    def measured_requests(
        self,
        level: int,
        slos: Iterable[Slo],
        asked: int | None = None,
        alone_ns: float | None = None,
        *,
        proves: bool,
    ) -> int:
        """Count the measured requests of a level: the most of what percentiles, resolution and duration ask for.

        That is max(64, ceil(20/(1-p))), p the strictest percentile, where the trial `proves` something ceil(2.5/r^2), r
        the resolution, and as many as arrive within ten times what one request alone takes; `asked` replaces all but
        the last.
        """
        percentiles = [slo.percentile for slo in slos if slo.percentile is not None]
        tail = max((math.ceil(round(TAIL / (1 - p / 100), 6)) for p in percentiles), default=0)
        fine = math.ceil(round(FINE / self.resolution**2, 6)) if proves else 0
        lasting = math.ceil(self.grid.rate(level) * LASTING * alone_ns / 1e9) if alone_ns else 0
        return max(asked if asked is not None else max(LEAST_REQUESTS, tail, fine), lasting)

    def arrivals(self, level: int, seed: int) -> ArrivalPlan:
        """Return the arrivals of a level."""
        return ArrivalPlan(
            kind=self.kind,
            rate=self.grid.rate(level),
            burstiness=self.burstiness,
            seed=seed,
            outstanding_limit=self.outstanding_limit,
        )


def arrival_seed(seed: int, trial: str) -> int:
    """Return the seed of a trial's arrivals: a function of the study's seed and the trial's name, below 2^48."""
    return int.from_bytes(hashlib.sha256(f"arrivals of {trial}\n{seed}".encode()).digest()[:6], "big")


class RateLevel(Struct, frozen=True):
    """Say which level of a rate study a trial is of, and what its queue must show.

    As many requests arrive as the rate says, in just that time (`nameplate.schedule.stage.balanced`). Where `proves` is
    set the trial must show that its queue is bounded and its latency steady; else, while locating, only what shows the
    contrary counts. `resolution` is how far the next rate is away.
    """

    level: int
    resolution: float
    proves: bool
