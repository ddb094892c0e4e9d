"""What became of one level of a curve, from what its trials say; status beats number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from nameplate.contract.curve import CurveKind
from nameplate.verdict.facts import TrialFacts
from nameplate.verdict.gate import TOO_LONG, Gate, GateResult
from nameplate.verdict.trial import TrialVerdict

# What a server that caps silently breaks: the lengths, and with them its own counters against ours.
_OF_LENGTH = {Gate.output_length, Gate.input_length, Gate.server_counters}


class LevelStatus(StrEnum):
    """Name what became of a level."""

    valid = "valid"
    failed = "failed"
    refused = "refused"
    capped = "capped"
    over_limit = "over_limit"
    invalid = "invalid"
    inconclusive = "inconclusive"
    lost = "lost"
    skipped = "skipped"
    interrupted = "interrupted"


# Levels without an answer; the others are answered, a failure and a refusal included.
MISSING = (LevelStatus.inconclusive, LevelStatus.skipped, LevelStatus.interrupted)
# Statuses that need no trial of the level.
WITHOUT_TRIAL = (
    LevelStatus.over_limit,
    LevelStatus.refused,
    LevelStatus.lost,
    LevelStatus.skipped,
    LevelStatus.interrupted,
)


class LevelVerdict(Struct, frozen=True):
    """Hold a level's status with its reason in words."""

    status: LevelStatus
    reason: str


def judge_trial_of(
    kind: CurveKind, facts: TrialFacts, gates: Iterable[GateResult], verdict: TrialVerdict
) -> LevelVerdict:
    """Say what one trial says of its level.

    In a climb a server that refuses a prompt for its length has answered, and so has one that caps lengths silently.
    """
    said = "; ".join(verdict.reasons)
    if kind == "input":
        if refused_for_length(facts):
            return LevelVerdict(LevelStatus.refused, said)
        broken = {result.gate for result in gates if result.status == "invalid"}
        if broken and broken <= _OF_LENGTH and not broken <= {Gate.server_counters}:
            return LevelVerdict(LevelStatus.capped, said)
    status = {
        "pass": LevelStatus.valid,
        "fail": LevelStatus.failed,
        "inconclusive": LevelStatus.inconclusive,
        "invalid": LevelStatus.invalid,
    }[verdict.status]
    return LevelVerdict(status, "measured" if status is LevelStatus.valid else said)


def refused_for_length(facts: TrialFacts) -> bool:
    """Tell whether no request was answered, and every answer was what servers say to a prompt that is too long."""
    told = {int(code) for code, count in facts.http_statuses.items() if count}
    return facts.sent > 0 and not facts.ok and bool(told) and told <= set(TOO_LONG)


def restarted(facts: TrialFacts) -> bool:
    """Tell whether the server's process was lost during a trial and came back: it restarted, and requests broke off."""
    fell = bool(facts.counters_fell) or any(
        change.name == "process_start_time_s" and change.kind == "changed"
        for change in facts.identity_changes
    )
    return fell and (facts.broken_by_load > 0 or facts.warmup_failed > 0)


def judge_level_of(trials: Sequence[LevelVerdict], repeat: int) -> LevelVerdict | None:
    """Judge a level by what its trials say, in order, replaced ones included; None where trials are missing.

    The first trial that says no number decides, unless it is an invalid one that was replaced.
    """
    for at, trial in enumerate(trials):
        last = at == len(trials) - 1
        if trial.status is not LevelStatus.valid and (trial.status is not LevelStatus.invalid or last):
            valid = sum(other.status is LevelStatus.valid for other in trials)
            beside = f" ({valid} other {'trial' if valid == 1 else 'trials'} measured)" if valid else ""
            return LevelVerdict(trial.status, trial.reason + beside)
    valid = sum(trial.status is LevelStatus.valid for trial in trials)
    return LevelVerdict(LevelStatus.valid, "measured") if valid >= repeat else None


def ending(statuses: Sequence[LevelStatus]) -> str:
    """Say how a study ended that ran through all of its levels."""
    rest = Counter(status.value.replace("_", " ") for status in statuses if status is not LevelStatus.valid)
    if not rest:
        return "every level was measured"
    said = ", ".join(f"{count} {word}" for word, count in rest.items())
    return f"{len(statuses) - rest.total()} of {len(statuses)} levels have numbers: {said}"


def curve_exit_code(statuses: Sequence[LevelStatus], cut: int | None = None) -> int:
    """Return the exit code of a study: how it was cut, else 4 for an invalid level, 3 for a missing one, 0.

    Where no level has a number there is no curve, which is 3; where the server refused every one, 5.
    """
    if cut is not None:
        return cut
    if LevelStatus.invalid in statuses:
        return 4
    if statuses and all(s in (LevelStatus.refused, LevelStatus.over_limit) for s in statuses):
        return 5
    if LevelStatus.valid not in statuses or any(status in MISSING for status in statuses):
        return 3
    return 0
