"""What one trial warns about."""

from __future__ import annotations

from collections.abc import Sequence

from nameplate.measure.measurement import Measurement
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.verdict.facts import TrialFacts
from nameplate.verdict.gate import Gate, GateResult
from nameplate.verdict.trial import SloResult
from nameplate.verdict.warnings import (
    Code,
    Warned,
    above_running_limit,
    latency_drifts,
    queue_rises,
    stalled,
)


def trial_warnings(
    evidence: TrialEvidence,
    measurement: Measurement,
    facts: TrialFacts,
    gates: Sequence[GateResult],
    slos: Sequence[SloResult],
) -> tuple[Warned, ...]:
    """List a trial's warnings."""
    found: list[Warned] = []
    for result in slos:
        if result.whole.n and not result.whole.supported:
            found.append(_unsupported(result))
    for gate in gates:
        if gate.status == "unverified" and gate.gate == Gate.cached_tokens:
            found.append(_cold_not_observed(gate))
        elif gate.status == "unverified":
            found.append(
                Warned(
                    Code.unverified_gate,
                    f"The gate {gate.gate} could not be checked: {gate.detail}.",
                    "The trial counts, and this part of it is not proven.",
                    "See what `nameplate probe` says is missing.",
                )
            )
    if facts.prompt_warned:
        found.append(
            Warned(
                Code.prompt_length_off,
                f"{facts.prompt_warned} prompts are beyond max(8, 0.5%) of {facts.prompt_asked} tokens, within 2%.",
                "The shape that was reached is not quite the shape that was asked for.",
                "Read the reached range beside the shape.",
            )
        )
    if measurement.correctness.tokens_estimated:
        found.append(
            Warned(
                Code.tokens_estimated,
                "Output tokens are estimated from output events.",
                "One event can hold several tokens, or none.",
                "Use a server that reports usage in streams.",
            )
        )
    if measurement.correctness.silent_tails:
        found.append(
            Warned(
                Code.silent_tail,
                f"In {measurement.correctness.silent_tails} answers the last output came long before the finish.",
                "Tokens without text at the end make their ITL look shorter than it is.",
                "Read the chunk gaps and the E2E latency beside the ITL.",
            )
        )
    loops = measurement.correctness.loops
    if loops is not None and loops.looped:
        found.append(
            Warned(
                Code.looping,
                f"{loops.looped} of {loops.judged} judged answers end in a loop: one passage again and again.",
                "Repetition is easy to guess, so speculative decoding makes such answers faster than real ones.",
                "Sample as in operation, e.g. --temperature 1; greedy decoding loops most.",
            )
        )
    # In a rate study these are gates, and decide.
    queueing = measurement.queueing if facts.queue is None else None
    if (
        queueing is not None
        and queueing.outstanding is not None
        and queueing.outstanding.conclusion == "rising"
    ):
        found.append(queue_rises(queueing.outstanding.change))
    thirds = queueing.thirds if queueing is not None else None
    if queueing is not None and queueing.unsteady and thirds is not None:
        found.append(latency_drifts(thirds.sizes))
    stalls = measurement.stalls
    if stalls is not None and stalls.listed:
        longest = max(stalls.listed, key=lambda stall: stall.length_ns)
        found.append(
            stalled(
                stalls.count, longest.length_ns, longest.after_ns, longest.waited, longest.sent, longest.ended
            )
        )
    limit = evidence.identity_before.integer("running_limit_effective")
    # An open loop has no concurrency of its own: its plan's is the limit at which it ends.
    closed = evidence.plan.arrivals is None
    above = above_running_limit(evidence.plan.concurrency, limit) if closed else None
    return (*found, *([above] if above else []))


def _unsupported(result: SloResult) -> Warned:
    return Warned(
        Code.unsupported_percentile,
        f"{result.slo} is judged on {result.whole.n} values, fewer than the percentile needs.",
        "A single request decides such a percentile.",
        "Raise --requests.",
    )


def _cold_not_observed(gate: GateResult) -> Warned:
    return Warned(
        Code.cold_not_observed,
        f"Cached tokens were not reported: {gate.detail}.",
        "That prompts missed the cache follows from how they are made, and was not seen.",
        "On vLLM: --enable-prompt-tokens-details; on SGLang: --enable-cache-report.",
    )
