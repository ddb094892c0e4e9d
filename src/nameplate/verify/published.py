"""What the result says, against what the evidence recomputes to; each part of it belongs to one check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from nameplate import __version__
from nameplate.measure.result import TrialResult
from nameplate.verdict.gate import SUSTAINED, Gate, GateResult
from nameplate.verify.compare import ABSENT, Path, differences, told
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.names import GATES, Name

# The checks of gates by the gates that they recompute.
GATES_OF: dict[Name, tuple[Gate, ...]] = {
    Name.status_ok: (Gate.rejected, Gate.server_error, Gate.bad_request),
    Name.none_cancelled: (Gate.all_ended,),
    Name.no_errors: (
        Gate.stream_error,
        Gate.timeout,
        Gate.reset,
        Gate.refused,
        Gate.outstanding,
        Gate.warmup,
    ),
    Name.non_empty_output: (Gate.empty_output,),
    Name.output_length: (Gate.output_length,),
    Name.finish_reason: (Gate.finish_reason,),
    Name.input_length: (Gate.input_length,),
    Name.cached_tokens: (Gate.cached_tokens,),
    Name.unique_prompts: (Gate.unique_prompts,),
    Name.unique_outputs: (Gate.unique_outputs,),
    Name.looping: (Gate.looping,),
    Name.client_lateness: (Gate.client_lateness,),
    Name.no_other_traffic: (Gate.no_other_traffic,),
    Name.server_counters: (Gate.server_counters,),
    Name.same_server: (Gate.identity,),
    Name.planned_concurrency: (Gate.concurrency, Gate.arrivals, *SUSTAINED),
    Name.whole_evidence: (Gate.evidence,),
}

_OWNERS: dict[Path, Name] = {
    ("plan",): Name.plan,
    ("verdict",): Name.trial_verdict,
    ("identity_before",): Name.identity,
    ("identity_after",): Name.identity,
    ("measurement", "correctness"): Name.totals,
    ("measurement", "concurrency"): Name.concurrency,
}
_PARTS = (Name.totals, Name.concurrency, Name.identity)
# From the worst to the best; the check of several gates says the worst of them.
_WORST = ("invalid", "fail", "inconclusive", "unverified", "pass")


def check_result(
    recorded: dict[str, Any], recomputed: TrialResult, ledger: Ledger, *, written_by: str
) -> None:
    """Compare a decoded `result.json` with the recomputed result; `written_by` is the version that wrote it."""
    same_version = written_by == __version__
    words = (
        "" if same_version else f"; its words are those of version {clipped(written_by, 40)}, not compared"
    )
    # Through JSON, as the recorded one went: tuples are lists there, and names are texts.
    ours = msgspec.json.decode(msgspec.json.encode(recomputed))
    _check_gates(recorded.get("gates"), recomputed.gates, ledger, same_version)
    numbers = 0
    for key in recorded.keys() | ours.keys():
        if key == "gates":
            continue
        here, there = recorded.get(key, ABSENT), ours.get(key, ABSENT)
        for found in differences(here, there, (key,), same_version=same_version):
            ledger.fail(_owner(found[0]), told(*found))
        numbers += _leaves(ours.get(key))
    for name in _PARTS:
        ledger.close(name, "as recomputed")
    ledger.close(Name.published_numbers, f"as recomputed, {numbers} values in all{words}", numbers)
    _check_sums(recomputed, ledger)
    ledger.close(
        Name.trial_verdict,
        f"{recomputed.verdict.status}: {clipped('; '.join(recomputed.verdict.reasons))}{words}",
        len(recomputed.verdict.slos),
        recomputed.verdict.status,
    )


def _owner(path: Path) -> Name:
    for length in (2, 1):
        name = _OWNERS.get(path[:length])
        if name is not None:
            return name
    return Name.published_numbers


def _check_sums(recomputed: TrialResult, ledger: Ledger) -> None:
    held = recomputed.measurement.correctness
    total = held.ok + held.failed + held.cancelled + held.unfinished
    said = (
        f"sent {held.sent} = ok {held.ok} + failed {held.failed} + cancelled {held.cancelled} + "
        f"unfinished {held.unfinished}"
    )
    if total != held.sent:
        ledger.fail(Name.totals, f"not so: {said}")
    ledger.close(Name.totals, said, held.sent)
    flight = recomputed.measurement.concurrency
    said = f"at most {flight.max} in flight, {flight.planned} planned"
    gate = recomputed.gate(Gate.concurrency)
    if gate.status == "invalid":
        ledger.admit(Name.concurrency, gate.detail)
    ledger.close(Name.concurrency, said, flight.max or 0)


def _check_gates(
    recorded: Any, recomputed: tuple[GateResult, ...], ledger: Ledger, same_version: bool
) -> None:
    """Hold each recorded gate against the recomputed one, in its check."""
    try:
        held = msgspec.convert(recorded, tuple[GateResult, ...])
    except msgspec.ValidationError as error:
        ledger.fail(Name.files, f"the gates in result.json cannot be read: {error}")
        return
    by_gate: dict[Gate, list[GateResult]] = {}
    for result in held:
        by_gate.setdefault(result.gate, []).append(result)
    ours = {result.gate: result for result in recomputed}
    for name, gates in GATES_OF.items():
        for gate in gates:
            theirs, found = by_gate.get(gate, []), ours.get(gate)
            if not same_version and not theirs:
                # An earlier version did not know every gate; what it judged stands in its verdict.
                continue
            if not same_version and found is not None:
                theirs = [structs.replace(result, detail=found.detail) for result in theirs]
            # Not every trial is judged by every gate.
            if theirs != ([] if found is None else [found]):
                ledger.fail(name, _told(gate, theirs, found))
        if name in GATES:
            ledger.close(name, *_summary([ours[gate] for gate in gates if gate in ours]))


def _told(gate: Gate, recorded: list[GateResult], recomputed: GateResult | None) -> str:
    said = (
        " and ".join(f"{result.status} ({clipped(result.detail, 120)})" for result in recorded) or "nothing"
    )
    ours = "nothing" if recomputed is None else f"{recomputed.status} ({clipped(recomputed.detail, 120)})"
    return f"{gate}: recorded {said}, recomputed {ours}"


def _summary(results: Iterable[GateResult]) -> tuple[str, int, str]:
    ordered = sorted(results, key=lambda result: _WORST.index(result.status))
    worst = ordered[0]
    detail = worst.detail if len(ordered) == 1 else f"{worst.gate}: {worst.detail}"
    if worst.status == "pass" and len(ordered) > 1:
        detail = "none"
    return clipped(detail), max(result.counted for result in ordered), worst.status


def _leaves(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_leaves, value))
    return 1
