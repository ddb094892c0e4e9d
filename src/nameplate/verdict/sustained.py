"""What makes a rate a sustained one: the gates on the queue and on the steadiness of latency, in a rate study's trials.

A trial that confirms must show both: what could not be told is inconclusive. While locating only what was shown to be
wrong counts. A trial of its own claims no sustained rate: there the same findings are warnings.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nameplate.verdict.gate import MEANING, Gate, GateResult

LatencyCourse = Literal["steady", "rising", "unsteady"]


class QueueFacts(Struct, frozen=True, kw_only=True):
    """Hold what the gates look at; `proves` says that the trial must show them to hold.

    `queue` is the conclusion on the outstanding requests, `growth` their rise as a share of the arrivals and
    `most_growth` what it is at most; `waiting_rises` is of the server's own queue, null where it does not tell enough.
    `latency` is `rising` where it drifts upwards, `unsteady` where it drifts otherwise. Null is too little to tell.
    """

    proves: bool
    resolution: float
    queue: Literal["rising", "bounded", "undecided"] | None = None
    growth: float | None = None
    most_growth: float | None = None
    waiting_rises: bool | None = None
    latency: LatencyCourse | None = None


def judge_sustained(facts: QueueFacts | None) -> tuple[GateResult, ...]:
    """Judge the two gates of a rate study's trial; None is a trial that claims no sustained rate."""
    if facts is None:
        return ()
    return _bounded_queue(facts), _steady_latency(facts)


def _bounded_queue(facts: QueueFacts) -> GateResult:
    gate = Gate.bounded_queue
    said = "too little to tell whether the queue grows"
    if facts.growth is not None and facts.most_growth is not None:
        said = (
            f"outstanding {facts.queue}: {facts.growth:+.1%} of the arrivals, {facts.most_growth:+.1%} at most, "
            f"{facts.resolution:.1%} may be"
        )
    if facts.queue == "rising":
        return GateResult(gate, "fail", f"{MEANING[gate]}: {said}", 1)
    if facts.waiting_rises:
        return GateResult(gate, "fail", f"{MEANING[gate]}: the server's own queue rises; {said}", 1)
    if facts.queue != "bounded" and facts.proves:
        return GateResult(gate, "inconclusive", f"{said}: the sample is too short or too rough to decide", 1)
    return GateResult(gate, "pass", said, 1)


def _steady_latency(facts: QueueFacts) -> GateResult:
    gate = Gate.steady_latency
    if facts.latency == "rising":
        return GateResult(gate, "fail", f"{MEANING[gate]}: who arrived late waited longer", 1)
    if facts.latency != "steady" and facts.proves:
        said = (
            "too little to tell"
            if facts.latency is None
            else "the thirds of the arrivals waited differently, without a rise"
        )
        return GateResult(gate, "inconclusive", f"no steady state was seen: {said}", 1)
    return GateResult(
        gate,
        "pass",
        "no rise, and no drift between thirds" if facts.latency == "steady" else "not decided",
        1,
    )
