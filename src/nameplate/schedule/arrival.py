"""The arrival processes that can be asked for: constant, Poisson, gamma, ramp, steps, and a recorded trace.

Each says how its gaps are distributed and how its rate runs; a trace says its times. Rates are in requests per second,
and may be far below one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from math import isfinite
from struct import unpack_from
from sys import byteorder
from typing import Final

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.schedule.gaps import Even, Exponential, GammaGaps, Gaps
from nameplate.schedule.profile import Level, Profile, Slope, Stairs

MINIMUM_RATE: Final = 1e-6
"""One request in eleven days: less is no load, and its times would leave the 64 bits of a record."""

MAXIMUM_RATE: Final = 1e6
"""More than any client sends; what is above it is a mistake in the unit."""

BURSTINESS: Final = (1e-3, 1e6)
"""The shapes for which the gamma method is checked; beyond them arrivals are one heap, or constant."""


class Constant(Struct, frozen=True, tag=True):
    """Space requests evenly at `rate`, the first at once."""

    rate: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    @property
    def profile(self) -> Profile:
        return Level(self.rate)

    @property
    def gaps(self) -> Gaps:
        return Even()


class Poisson(Struct, frozen=True, tag=True):
    """Let requests arrive independently of each other at `rate`: exponential gaps."""

    rate: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    @property
    def profile(self) -> Profile:
        return Level(self.rate)

    @property
    def gaps(self) -> Gaps:
        return Exponential()


class Gamma(Struct, frozen=True, tag=True):
    """Draw gamma distributed gaps of the mean 1 / `rate` and the shape `burstiness`.

    `burstiness` is that of vLLM's serving benchmark (`--burstiness`: shape = burstiness, scale = 1 / (rate x
    burstiness)): 1 is Poisson, a *lower* value is burstier, a higher one more even; the squared coefficient of
    variation of the gaps is its inverse. Unlike there, the times are not stretched afterwards to meet the mean.
    """

    rate: float
    burstiness: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        _check_gaps(GammaGaps(self.burstiness))

    @property
    def profile(self) -> Profile:
        return Level(self.rate)

    @property
    def gaps(self) -> Gaps:
        return GammaGaps(self.burstiness)


class Ramp(Struct, frozen=True, tag=True):
    """Change the rate evenly from `from_rate` to `to_rate` over `over_ns`, then keep it; one of them may be 0."""

    from_rate: float
    to_rate: float
    over_ns: int
    gaps: Gaps = Exponential()

    def __post_init__(self) -> None:
        _check_rate(self.from_rate, zero=True)
        _check_rate(self.to_rate, zero=True)
        _check_gaps(self.gaps)
        if self.from_rate == self.to_rate == 0:
            raise CallerError("The ramp goes from 0 to 0: nothing would arrive.")
        if self.over_ns < 1:
            raise CallerError("The ramp has no duration.", hint="For a sudden change give steps.")

    @property
    def profile(self) -> Profile:
        return Slope(self.from_rate, self.to_rate, self.over_ns)


class Step(Struct, frozen=True):
    """Keep one rate for a time; 0 is a pause."""

    rate: float
    duration_ns: int


class Steps(Struct, frozen=True, tag=True):
    """Keep one rate after the other; the process ends with the last of them."""

    steps: tuple[Step, ...]
    gaps: Gaps = Exponential()

    def __post_init__(self) -> None:
        for step in self.steps:
            _check_rate(step.rate, zero=True)
            if step.duration_ns < 1:
                raise CallerError(f"The step at {step.rate:g} requests/s has no duration.")
        _check_gaps(self.gaps)
        if not any(step.rate for step in self.steps):
            raise CallerError("No step has a rate above 0: nothing would arrive.")

    @property
    def profile(self) -> Profile:
        return Stairs(tuple((step.rate, step.duration_ns) for step in self.steps))


class Trace(Struct, frozen=True, tag=True):
    """Repeat recorded arrival times, in ns from the start, none below the one before.

    They are kept packed, 8 bytes each, little-endian and signed: millions of them are no burden.
    """

    packed: bytes

    @classmethod
    def of(cls, times_ns: Iterable[int]) -> Trace:
        """Pack times. Raises `CallerError` if one is negative, beyond 292 years, or earlier than the one before."""
        try:
            times = (
                times_ns if isinstance(times_ns, array) and times_ns.typecode == "q" else array("q", times_ns)
            )
        except OverflowError:
            raise CallerError("A time of the trace is beyond 292 years.") from None
        before = 0
        for number, time_ns in enumerate(times):
            if time_ns < before:
                raise CallerError(
                    f"Time {number} of the trace, {time_ns} ns, is below the one before, {before} ns."
                )
            before = time_ns
        if byteorder == "big":
            times = times[:]
            times.byteswap()
        return cls(times.tobytes())

    def __post_init__(self) -> None:
        if len(self.packed) % 8:
            raise CallerError("The packed times of the trace are cut off: not a multiple of 8 bytes.")

    def __len__(self) -> int:
        return len(self.packed) // 8

    def time_ns(self, offset: int) -> int:
        """Return when request `offset` arrives."""
        time_ns: int = unpack_from("<q", self.packed, 8 * offset)[0]
        return time_ns


Process = Constant | Poisson | Gamma | Ramp | Steps | Trace


def _check_rate(rate: float, *, zero: bool = False) -> None:
    if not isfinite(rate) or not (MINIMUM_RATE <= rate <= MAXIMUM_RATE or (zero and rate == 0)):
        raise CallerError(
            f"{rate:g} requests/s is not a rate that can be offered.",
            hint=f"Rates are from {MINIMUM_RATE:g} to {MAXIMUM_RATE:g} requests per second"
            + ("; 0 is a pause." if zero else "."),
        )


def _check_gaps(gaps: Gaps) -> None:
    if isinstance(gaps, GammaGaps) and not BURSTINESS[0] <= gaps.burstiness <= BURSTINESS[1]:
        raise CallerError(
            f"{gaps.burstiness:g} is not a burstiness that can be offered.",
            hint=f"It is from {BURSTINESS[0]:g} to {BURSTINESS[1]:g}: 1 is Poisson, lower is burstier.",
        )
