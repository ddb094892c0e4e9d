"""The curve that a study is asked for: which levels of load, or which input lengths, and how each is measured."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.matrix import LIMIT_SLACK_TOKENS
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape

CurveKind = Literal["concurrency", "rate", "input"]

# A doubling of the load that adds less output than this adds hardly any. Trials of neighbouring levels differ by some
# percent through the edges of their windows; a server with room to batch gains some 40% and more (Kleinrock's power is
# highest at 41%).
HARDLY = 0.1
# How finely the border of an unknown context limit is searched for: a share of the length, and a floor in tokens.
BORDER_SHARE, BORDER_TOKENS = 1 / 128, 64


class CurvePlan(Struct, frozen=True, kw_only=True):
    """Fix the levels of a curve; exactly one of `concurrencies`, `rates` and `inputs` (or `to_limit`) is given.

    `rates` are requests a second, spread as `arrivals` says. `inputs` are prompt lengths in tokens at concurrency
    one, each with `output_tokens` of output; with `to_limit` the climb goes on to the context limit. Each level has
    `repeat` trials. A doubling of the load that adds less than `hardly` of output adds hardly any.
    """

    concurrencies: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    inputs: tuple[int, ...] = ()
    to_limit: bool = False
    output_tokens: int = 0
    arrivals: ArrivalPlan | None = None
    repeat: int = 1
    hardly: float = HARDLY

    @property
    def kind(self) -> CurveKind:
        if self.concurrencies:
            return "concurrency"
        return "rate" if self.rates else "input"

    def loads(self, context_limit_tokens: int | None = None) -> tuple[float, ...]:
        """Return the planned levels, ascending; the limit's own where it is asked for and known."""
        if self.kind != "input":
            return tuple(sorted({*map(float, self.concurrencies), *self.rates}))
        lengths = set(self.inputs)
        if self.to_limit and context_limit_tokens is not None:
            lengths.add(self.longest_input(context_limit_tokens))
        return tuple(float(tokens) for tokens in sorted(lengths))

    def longest_input(self, context_limit_tokens: int) -> int:
        """Return the longest prompt that surely fits a context beside its output."""
        return max(1, context_limit_tokens - self.output_tokens - LIMIT_SLACK_TOKENS)

    def shape_at(self, load: float) -> Shape:
        """Return the shape of one step of a climb."""
        return Shape(int(load), self.output_tokens)


def load_of(kind: CurveKind, plan: TrialPlan) -> float:
    """Return the level that a trial belongs to."""
    if kind == "input":
        return float(plan.shape.input_tokens)
    if kind == "rate":
        assert plan.arrivals is not None
        return plan.arrivals.rate
    return float(plan.concurrency)


def say_load(kind: CurveKind, load: float) -> str:
    """Say a level: `C=16`, `0.5 req/s`, `32,768 tokens`."""
    if kind == "concurrency":
        return f"C={load:.0f}"
    return f"{load:g} req/s" if kind == "rate" else f"{load:,.0f} tokens"


def border_width(accepted_tokens: int) -> int:
    """Return how far apart an accepted and a refused length may stay for the border between them to count as found."""
    return max(BORDER_TOKENS, int(accepted_tokens * BORDER_SHARE))
