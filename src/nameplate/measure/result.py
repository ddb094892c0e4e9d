"""The result of one trial: `result.json`, written when the trial seals and recomputed by whoever doubts it.

A JSON object with `version`, `plan`, `measurement`, `facts`, `gates`, `verdict`, `identity_before`, `identity_after`,
`warnings`, `speed` (of a trial of the speed matrix), `interrupted`, `started_ns`, `ended_ns`. Times are the trial's own
monotonic nanoseconds; null is absent.
JSON knows no infinity: an infinite best or worst case is null with its `*_infinite` flag set.

Version history: 1 - first.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.measure.facts import facts_of
from nameplate.measure.measurement import Measurement, measure
from nameplate.measure.queueing import measure_queueing, with_opening
from nameplate.measure.samples import from_schedule, slo_values
from nameplate.measure.speed_trial import SpeedTrial, measure_speed
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.measure.trial_warnings import trial_warnings
from nameplate.verdict.facts import TrialFacts
from nameplate.verdict.gate import Gate, GateResult
from nameplate.verdict.gates import judge_gates
from nameplate.verdict.trial import TrialVerdict, judge_slo, judge_trial
from nameplate.verdict.warnings import Warned

RESULT_VERSION = 1


class TrialResult(Struct, frozen=True, kw_only=True):
    """Hold one trial's measurement and verdict with everything they were judged by."""

    version: int = RESULT_VERSION
    plan: TrialPlan
    measurement: Measurement
    facts: TrialFacts
    gates: tuple[GateResult, ...]
    verdict: TrialVerdict
    identity_before: Identity
    identity_after: Identity | None
    warnings: tuple[Warned, ...] = ()
    speed: SpeedTrial | None = None
    interrupted: bool = False
    started_ns: int
    ended_ns: int

    @property
    def elapsed_s(self) -> float:
        """Return how long the trial took, without the quiet interval before it."""
        return (self.ended_ns - self.started_ns) / 1e9

    def gate(self, gate: Gate) -> GateResult:
        """Return one gate's result; KeyError where this result has none."""
        for result in self.gates:
            if result.gate == gate:
                return result
        raise KeyError(gate)


def evaluate(evidence: TrialEvidence) -> TrialResult:
    """Turn a trial's evidence into its result; pure: the live trial and `verify` call the same function."""
    queueing = measure_queueing(evidence)
    if queueing is not None:
        evidence = with_opening(evidence, queueing)
    measurement = measure(evidence, queueing)
    facts = facts_of(evidence, measurement)
    slos = evidence.contract.slos
    rows = evidence.rows if evidence.plan.arrivals is None else from_schedule(evidence.rows)
    gates = judge_gates(facts, error_rate_decides=any(slo.metric == "error_rate" for slo in slos))
    results = [
        judge_slo(
            slo,
            slo_values(slo, rows, evidence.plan.requests, evidence.ended_ns),
            # A queue that fills from empty makes the beginning better than what is sustained.
            steady_too=evidence.plan.rate_level is not None,
        )
        for slo in slos
    ]
    speed = measure_speed(evidence, measurement, gates)
    return TrialResult(
        plan=evidence.plan.as_written,
        measurement=measurement,
        facts=facts,
        gates=gates,
        verdict=judge_trial(gates, results) if speed is None else speed.trial_verdict,
        identity_before=evidence.identity_before,
        identity_after=evidence.identity_after,
        warnings=trial_warnings(evidence, measurement, facts, gates, results) if speed is None else (),
        speed=speed,
        interrupted=evidence.interrupted,
        started_ns=evidence.started_ns,
        ended_ns=evidence.ended_ns,
    )


def encode(result: TrialResult) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(result)) + b"\n"


def decode(data: bytes) -> TrialResult:
    """Decode `result.json`; EvidenceError where it is damaged or of a later version."""
    try:
        version = msgspec.json.decode(data, type=_Versioned).version
        if version <= RESULT_VERSION:
            return msgspec.json.decode(data, type=TrialResult)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"A trial's result cannot be read: {error}.") from error
    raise EvidenceError(
        f"A trial's result has version {version}; this program reads up to {RESULT_VERSION}.",
        hint="Use a newer nameplate.",
    )


class _Versioned(Struct):
    version: int
