"""The arrivals of an open loop as they are asked for: by which process, how fast, and how much may be outstanding."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError

ArrivalKind = Literal["constant", "poisson", "gamma"]

# Beyond this many unanswered requests a load ends: far above what a queue that is bounded ever holds.
OUTSTANDING_LIMIT = 4096


class ArrivalPlan(Struct, frozen=True, kw_only=True):
    """Let requests arrive at `rate` a second, whatever became of those before.

    `burstiness` is the shape of gamma distributed gaps: 1 is Poisson, lower is burstier. `seed` fixes the times.
    Where `outstanding_limit` requests are unanswered the load ends; arrivals are never thinned.
    """

    kind: ArrivalKind = "poisson"
    rate: float
    burstiness: float = 1.0
    seed: int = 42
    outstanding_limit: int = OUTSTANDING_LIMIT

    @classmethod
    def parse(cls, rate: float, text: str, seed: int, outstanding_limit: int) -> ArrivalPlan:
        """Read `poisson`, `constant` or `gamma:SHAPE`; CallerError for anything else."""
        if not rate > 0:
            raise CallerError(f"A rate of {rate:g} requests a second is no load.", hint="Give one above 0.")
        kind, colon, shape = text.strip().lower().partition(":")
        if kind in ("constant", "poisson") and not colon:
            return cls(
                kind="constant" if kind == "constant" else "poisson",
                rate=rate,
                seed=seed,
                outstanding_limit=outstanding_limit,
            )
        try:
            burstiness = float(shape) if kind == "gamma" and colon else 0.0
        except ValueError:
            burstiness = 0.0
        if not burstiness > 0:
            raise CallerError(
                f"--arrivals {text!r} is not known.",
                hint="Write poisson, constant, or gamma:SHAPE, e.g. gamma:0.5.",
            )
        return cls(
            kind="gamma", rate=rate, burstiness=burstiness, seed=seed, outstanding_limit=outstanding_limit
        )

    def __str__(self) -> str:
        shape = f" of shape {self.burstiness:g}" if self.kind == "gamma" else ""
        return f"{self.kind} arrivals{shape} at {self.rate:g} requests/s"
