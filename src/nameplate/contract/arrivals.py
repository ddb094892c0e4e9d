"""The arrivals of an open loop as they are asked for: by which process, how fast, and how much may be outstanding."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.contract.quantity import format_limit, parse_duration_ns
from nameplate.contract.trace import TracePlan

ArrivalKind = Literal["constant", "poisson", "gamma", "trace"]

# Beyond this many unanswered requests a load ends: far above what a queue that is bounded ever holds.
OUTSTANDING_LIMIT = 4096


class RatePart(Struct, frozen=True):
    """Hold one stretch of a rate that varies: from one rate to another, in requests a second, over `over_ns`."""

    from_rate: float
    to_rate: float
    over_ns: int

    @property
    def expected(self) -> float:
        """Return how many requests are expected in it."""
        return (self.from_rate + self.to_rate) / 2 * self.over_ns / 1e9


class ArrivalPlan(Struct, frozen=True, kw_only=True):
    """Let requests arrive at `rate` a second, whatever became of those before.

    `burstiness` is the shape of gamma distributed gaps: 1 is Poisson, lower is burstier. `seed` fixes the times.
    Where the rate varies it is the mean one, and `ramp` or `steps` say how it runs. A recorded `trace` has times of its
    own, and `kind` is `trace`.
    Where `outstanding_limit` requests are unanswered the load ends; arrivals are never thinned.
    """

    kind: ArrivalKind = "poisson"
    rate: float
    burstiness: float = 1.0
    seed: int = 42
    outstanding_limit: int = OUTSTANDING_LIMIT
    ramp: RatePart | None = None
    steps: tuple[RatePart, ...] = ()
    trace: TracePlan | None = None

    @classmethod
    def parse(cls, rate: float, text: str, seed: int, outstanding_limit: int) -> ArrivalPlan:
        """Read `poisson`, `constant` or `gamma:SHAPE`; CallerError for anything else."""
        if not rate > 0:
            raise CallerError(f"A rate of {rate:g} requests a second is no load.", hint="Give one above 0.")
        kind, burstiness = _spread(text)
        return cls(
            kind=kind, rate=rate, burstiness=burstiness, seed=seed, outstanding_limit=outstanding_limit
        )

    @classmethod
    def parse_ramp(cls, ramp: str, text: str, seed: int, outstanding_limit: int) -> ArrivalPlan:
        """Read a ramp `FROM:TO:DURATION`, whose arrivals are spread as `text` says; CallerError where it is none."""
        words = ramp.split(":")
        if len(words) != 3:
            raise CallerError(f"--ramp {ramp!r} is not FROM:TO:DURATION.", hint="For example --ramp 1:20:5m.")
        part = RatePart(_rate(words[0], "--ramp"), _rate(words[1], "--ramp"), parse_duration_ns(words[2]))
        if not part.expected > 0:
            raise CallerError(f"Nothing would arrive in the ramp {ramp!r}.", hint="For example 1:20:5m.")
        kind, burstiness = _spread(text)
        return cls(
            kind=kind,
            rate=(part.from_rate + part.to_rate) / 2,
            burstiness=burstiness,
            seed=seed,
            outstanding_limit=outstanding_limit,
            ramp=part,
        )

    @classmethod
    def parse_steps(cls, steps: str, text: str, seed: int, outstanding_limit: int) -> ArrivalPlan:
        """Read steps `RATExDURATION,...`, whose arrivals are spread as `text` says; CallerError where they are none."""
        parts = []
        for word in steps.split(","):
            rate, cross, lasts = word.strip().partition("x")
            if not cross:
                raise CallerError(
                    f"--steps {steps!r} is not RATExDURATION,...",
                    hint="For example --steps 2x60s,10x30s,2x60s; 0x30s is a pause.",
                )
            level, over_ns = _rate(rate, "--steps"), parse_duration_ns(lasts)
            if not over_ns:
                raise CallerError(f"The step {word.strip()!r} has no duration.", hint="For example 10x30s.")
            parts.append(RatePart(level, level, over_ns))
        expected = sum(part.expected for part in parts)
        if not expected > 0:
            raise CallerError(
                f"Nothing would arrive in the steps {steps!r}.", hint="For example 2x60s,10x30s."
            )
        kind, burstiness = _spread(text)
        return cls(
            kind=kind,
            rate=expected * 1e9 / sum(part.over_ns for part in parts),
            burstiness=burstiness,
            seed=seed,
            outstanding_limit=outstanding_limit,
            steps=tuple(parts),
        )

    @property
    def parts(self) -> tuple[RatePart, ...]:
        """Return the stretches of a rate that varies; none of a rate that does not, or of a trace."""
        return self.steps if self.ramp is None else (self.ramp,)

    @property
    def steady(self) -> bool:
        """Say whether one rate holds from begin to end, so that the load has a steady state to judge."""
        return not self.parts and self.trace is None

    @property
    def speed(self) -> str:
        """Say how fast requests arrive, in words for people."""
        if self.trace is not None:
            mean = f"{self.rate:.4g} requests/s on average" if self.rate else "all at once"
            faster = (
                f", {self.trace.speed_up:g} times as fast as recorded" if self.trace.speed_up != 1 else ""
            )
            return f"of the trace {self.trace.name}: {mean}{faster}"
        if self.ramp is not None:
            over = format_limit(self.ramp.over_ns)
            return f"from {self.ramp.from_rate:g} to {self.ramp.to_rate:g} requests/s in {over}"
        if self.steps:
            shown = [f"{part.to_rate:g} for {format_limit(part.over_ns)}" for part in self.steps[:6]]
            more = f" and {len(self.steps) - 6} more" if len(self.steps) > 6 else ""
            return f"in steps: {', '.join(shown)}{more} requests/s"
        return f"at {self.rate:g} requests/s"

    def __str__(self) -> str:
        if self.trace is not None:
            return f"the arrivals {self.speed}"
        shape = f" of shape {self.burstiness:g}" if self.kind == "gamma" else ""
        return f"{self.kind} arrivals{shape} {self.speed}"


def _spread(text: str) -> tuple[Literal["constant", "poisson", "gamma"], float]:
    """Read how arrivals are spread: the kind, and the shape of gamma gaps."""
    kind, colon, shape = text.strip().lower().partition(":")
    if kind == "constant" and not colon:
        return "constant", 1.0
    if kind == "poisson" and not colon:
        return "poisson", 1.0
    try:
        burstiness = float(shape) if kind == "gamma" and colon else 0.0
    except ValueError:
        burstiness = 0.0
    if not burstiness > 0:
        hint = "Write poisson, constant, or gamma:SHAPE, e.g. gamma:0.5."
        if kind in ("ramp", "steps", "trace"):
            hint = f"--{kind} says how the rate runs, beside --arrivals: poisson, constant, or gamma:SHAPE."
        raise CallerError(f"--arrivals {text!r} is not known.", hint=hint)
    return "gamma", burstiness


def _rate(text: str, option: str) -> float:
    """Read a rate that may be a pause; whether it can be offered is the schedule's business."""
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not rate >= 0:
        raise CallerError(
            f"{text.strip()!r} in {option} is not a rate.", hint="Give requests per second, 0 or more."
        )
    return rate
