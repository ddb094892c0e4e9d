"""A curve of load against output: its steps, its knee, and what more load adds beyond it.

**The knee** is the lowest level from which no higher level pays: with every one of them output is less than
(1 + h)^log2(N'/N) times that of this level, so that a doubling of the load adds less than the share h (10% by
default). It is a rule about marginal throughput, as the power of Kleinrock ("Power and deterministic rules of thumb
for probabilistic problems in computer communications", ICC 1979), whose optimum stands where a doubling adds 41%; at
10% there is little left to win by it. The rule compares with *all* higher levels, so that one noisy step makes no
knee, and does not depend on how far the levels reach, as rules that scale both axes do.

Of an open loop that rule comes second. Below capacity output follows the rate, so the knee lies between the highest
rate that the server kept up with and the next one, at which the queue grew all the while; one trial that fell behind
is enough, for noise is not rounded upwards. Only where no queue is seen to grow does the rule about output decide.

**The bound** is that of operational analysis (Denning & Buzen, "The operational analysis of queueing network models",
Computing Surveys 10(3), 1978): requests never get faster for being more, so X(N) <= N x X(N0) / N0, and the highest
output seen cannot be reached with fewer than N0 x Xmax / X(N0) clients.

**The uncertainty** is over all combinations of the levels' trials, one trial a level: `lowest` is the lowest knee that
one of them can have, and no combination has a knee above `highest`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from nameplate.contract.curve import CurveKind
from nameplate.contract.identity import CONFIGURATION, Identity, Value

# A latency that grows by less than this from one level to the next is not called growing.
GROWS = 1.1


class Measured(Struct, frozen=True, kw_only=True):
    """Hold what one valid trial says of its level: output tokens a second, and median latencies in nanoseconds.

    `configuration` are the facts of the server that a number depends on, as far as they are known. `behind` says that
    the queue of an open loop grew all the while.
    """

    load: float
    output_per_s: float
    behind: bool = False
    ttft_ns: float | None = None
    itl_ns: float | None = None
    e2e_ns: float | None = None
    configuration: Mapping[str, Value] = {}


class Spread(Struct, frozen=True):
    """Hold one value of n trials: the lowest, the middle one (the lower of two), the highest."""

    low: float
    middle: float
    high: float
    n: int


class CurveLevel(Struct, frozen=True, kw_only=True):
    """Hold one level of a curve; latencies are medians in nanoseconds. `behind`: in a trial the queue grew."""

    load: float
    behind: bool = False
    output_per_s: Spread
    ttft_ns: Spread | None = None
    itl_ns: Spread | None = None
    e2e_ns: Spread | None = None


class Step(Struct, frozen=True, kw_only=True):
    """Hold the step from one level to the next: what output gained, also by doubling, and by what latency grew."""

    below: float
    above: float
    output_gain: float
    gain_per_doubling: float
    ttft_factor: float | None = None
    itl_factor: float | None = None
    e2e_factor: float | None = None


class Knee(Struct, frozen=True, kw_only=True):
    """Hold the knee of a curve: at `level` or between it and `after`, the next lower level.

    `not_reached`: output still rises at the highest level. `unknown`: fewer than two levels. `lowest` and `highest`
    bound the level over all combinations of trials, where there are several; a null `highest` beside a `lowest` is a
    knee that need not be reached. `least_load` is how much load the highest output needs at least. `rule` says by what
    it was found: output that hardly rises, or a queue that grows.
    """

    status: Literal["found", "not_reached", "unknown"]
    level: float | None = None
    after: float | None = None
    lowest: float | None = None
    highest: float | None = None
    least_load: float | None = None
    adds: Literal["waiting", "slower streams", "nothing"] | None = None
    rule: Literal["output", "queue"] = "output"


class Curve(Struct, frozen=True, kw_only=True):
    """Hold the levels that one configuration of the server was measured at, and what follows from them."""

    configuration: Mapping[str, Value]
    levels: tuple[CurveLevel, ...]
    steps: tuple[Step, ...]
    knee: Knee


def configuration_of(identity: Identity) -> dict[str, Value]:
    """Return the known facts of a server that its numbers depend on; when its process began is none of them."""
    return {name: fact.value for name in CONFIGURATION if (fact := identity.facts.get(name)) is not None}


def differing(one: Mapping[str, Value], other: Mapping[str, Value]) -> tuple[str, ...]:
    """Name the facts that both know and that differ; one that is not known says nothing."""
    return tuple(name for name in CONFIGURATION if name in one and name in other and one[name] != other[name])


def curves_of(kind: CurveKind, trials: Iterable[Measured], hardly: float) -> tuple[Curve, ...]:
    """Sort trials into curves, one a configuration, and judge each; levels under different limits are no one curve.

    `hardly` is the share of output that a doubling must add to pay.
    """
    groups: list[tuple[dict[str, Value], list[Measured]]] = []
    for trial in trials:
        for known, members in groups:
            if not differing(known, trial.configuration):
                known.update({name: v for name, v in trial.configuration.items() if name not in known})
                members.append(trial)
                break
        else:
            groups.append((dict(trial.configuration), [trial]))
    return tuple(_curve(kind, known, members, hardly) for known, members in groups)


def _curve(
    kind: CurveKind, configuration: Mapping[str, Value], trials: Sequence[Measured], hardly: float
) -> Curve:
    loads = sorted({trial.load for trial in trials})
    levels = tuple(_level(load, [trial for trial in trials if trial.load == load]) for load in loads)
    steps = tuple(_step(below, above) for below, above in pairwise(levels))
    # More tokens in a prompt are no more clients: a climb has steps and no knee.
    knee = Knee(status="unknown")
    if kind != "input":
        knee = (knee_of_queue(levels) if kind == "rate" else None) or knee_of(levels, hardly)
    return Curve(configuration=configuration, levels=levels, steps=steps, knee=knee)


def _level(load: float, trials: Sequence[Measured]) -> CurveLevel:
    return CurveLevel(
        load=load,
        behind=any(trial.behind for trial in trials),
        output_per_s=_spread([trial.output_per_s for trial in trials]),
        ttft_ns=_spread_of(trial.ttft_ns for trial in trials),
        itl_ns=_spread_of(trial.itl_ns for trial in trials),
        e2e_ns=_spread_of(trial.e2e_ns for trial in trials),
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(min(values), statistics.median_low(values), max(values), len(values))


def _spread_of(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return _spread(known) if known else None


def _step(below: CurveLevel, above: CurveLevel) -> Step:
    gain = _ratio(above.output_per_s.middle, below.output_per_s.middle)
    return Step(
        below=below.load,
        above=above.load,
        output_gain=gain - 1,
        gain_per_doubling=gain ** (1 / math.log2(above.load / below.load)) - 1,
        ttft_factor=factor(below.ttft_ns, above.ttft_ns),
        itl_factor=factor(below.itl_ns, above.itl_ns),
        e2e_factor=factor(below.e2e_ns, above.e2e_ns),
    )


def factor(below: Spread | None, above: Spread | None) -> float | None:
    """Return by what factor a value grew from one level to the next; None where either is unknown."""
    return None if below is None or above is None or not below.middle else above.middle / below.middle


def _ratio(above: float, below: float) -> float:
    """Return how many times the output below the output above is; a level without output gains without bound."""
    return above / below if below > 0 else (1.0 if above <= 0 else 1e9)


def knee_of(levels: Sequence[CurveLevel], hardly: float) -> Knee:
    """Find the knee of levels in ascending order; the module's text is the rule."""
    if len(levels) < 2:
        return Knee(status="unknown")
    at = _first_without_gain(levels, hardly, "middle", "middle")
    assert at is not None
    least = _least_load(levels)
    several = any(level.output_per_s.n > 1 for level in levels)
    lowest = _first_without_gain(levels, hardly, "high", "low") if several else None
    highest = _first_without_gain(levels, hardly, "low", "high") if several else None
    last = len(levels) - 1
    low_load = levels[lowest].load if lowest is not None and lowest < last else None
    high_load = levels[highest].load if highest is not None and highest < last else None
    if at == last:
        return Knee(status="not_reached", lowest=low_load, highest=high_load, least_load=least)
    return Knee(
        status="found",
        level=levels[at].load,
        after=levels[at - 1].load if at else None,
        lowest=low_load,
        highest=high_load,
        least_load=least,
        adds=_adds(levels[at], levels[at + 1]),
    )


def knee_of_queue(levels: Sequence[CurveLevel]) -> Knee | None:
    """Find between which rates the server ceased to keep up; None where it kept up with the highest."""
    kept = max((at for at, level in enumerate(levels) if not level.behind), default=-1)
    if kept == len(levels) - 1:
        return None
    after = levels[kept].load if kept >= 0 else None
    return Knee(status="found", level=levels[kept + 1].load, after=after, adds="waiting", rule="queue")


def _first_without_gain(levels: Sequence[CurveLevel], hardly: float, here: str, there: str) -> int | None:
    """Return the first level that no higher one beats by enough; `here` and `there` say which of their trials count."""
    for at, level in enumerate(levels):
        own: float = getattr(level.output_per_s, here)
        if all(
            _ratio(getattr(above.output_per_s, there), own)
            < (1 + hardly) ** math.log2(above.load / level.load)
            for above in levels[at + 1 :]
        ):
            return at
    return None


def _least_load(levels: Sequence[CurveLevel]) -> float | None:
    first = levels[0]
    if not first.output_per_s.middle:
        return None
    return first.load * max(level.output_per_s.middle for level in levels) / first.output_per_s.middle


def _adds(knee: CurveLevel, above: CurveLevel) -> Literal["waiting", "slower streams", "nothing"]:
    """Say what the step beyond the knee adds: waiting, where the wait is at least half of what E2E grew by."""
    ttft, e2e = _growth(knee.ttft_ns, above.ttft_ns), _growth(knee.e2e_ns, above.e2e_ns)
    waits = (factor(knee.ttft_ns, above.ttft_ns) or 0) >= GROWS
    slower = (factor(knee.e2e_ns, above.e2e_ns) or 0) >= GROWS
    if waits and (not slower or ttft >= e2e / 2):
        return "waiting"
    return "slower streams" if slower else "nothing"


def _growth(below: Spread | None, above: Spread | None) -> float:
    return 0.0 if below is None or above is None else above.middle - below.middle
