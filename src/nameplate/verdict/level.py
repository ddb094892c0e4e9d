"""The verdict of one level: k valid trials that agree, or noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from nameplate.contract.rules import Rules
from nameplate.verdict.certainty import Demand, Standing, demand, sizes_of, standing
from nameplate.verdict.trial import SloResult, TrialStatus

LevelStatus = Literal["open", "pass", "fail", "noisy", "invalid"]


class LevelVerdict(Struct, frozen=True):
    """Hold one level's status and the statuses of all its confirmation trials, in order.

    `open` needs more trials; `invalid` was replaced as often as is allowed and was invalid again. `demand` is what a
    pass had to show, where the rules ask for a confidence and a trial was valid.
    """

    level: int
    status: LevelStatus
    trials: tuple[TrialStatus, ...]
    demand: Demand | None = None

    @property
    def valid(self) -> int:
        return sum(status != "invalid" for status in self.trials)

    @property
    def passes(self) -> int:
        return self.trials.count("pass")

    @property
    def fails(self) -> int:
        return self.trials.count("fail")


def judge_level(
    level: int,
    trials: Sequence[TrialStatus],
    rules: Rules,
    slos: Sequence[Sequence[SloResult]] = (),
    steps: int = 0,
) -> LevelVerdict:
    """Judge a level by its trials so far; an inconclusive trial agrees with neither side.

    k valid trials always run. Where they disagree, extra confirmations are spent as long as the tolerance could
    still settle the level, and then all of them count; without a tolerance a disagreement can never be settled.

    Where the rules ask for a confidence, `slos` are the valid trials' SLO results, in order, and `steps` says how far
    the level lies below the first candidate: k trials that pass are then not enough, further ones run until the level
    is certified or cannot be any more, and a level that is not certified is noisy.
    """
    held = tuple(trials)
    if rules.confidence is None or not slos:
        return LevelVerdict(level, _status(held, rules), held)
    needs = demand(rules, sizes_of(slos[0]), steps)
    status = _status(held, rules)
    if status == "pass":
        status = _CERTAIN[standing(needs, slos)]
    return LevelVerdict(level, status, held, needs)


_CERTAIN: dict[Standing, LevelStatus] = {"open": "open", "certified": "pass", "refused": "noisy"}


def _status(trials: tuple[TrialStatus, ...], rules: Rules) -> LevelStatus:
    if too_many_invalid(trials, rules):
        return "invalid"
    valid = [status for status in trials if status != "invalid"]
    if len(valid) < rules.confirmations:
        return "open"
    passes, fails = valid.count("pass"), valid.count("fail")
    if passes == len(valid):
        return "pass"
    if fails == len(valid):
        return "fail"
    all_trials = rules.confirmations + rules.extra_confirmations
    disagreeing = len(valid) - max(passes, fails)
    if len(valid) < all_trials:
        return "open" if disagreeing <= rules.tolerance else "noisy"
    # A tolerance so wide that both sides fit within it settles nothing.
    if rules.extra_confirmations and disagreeing <= rules.tolerance < max(passes, fails):
        return "pass" if passes > fails else "fail"
    return "noisy"


def too_many_invalid(trials: Sequence[TrialStatus], rules: Rules) -> bool:
    """Tell whether a level was replaced as often as is allowed and was invalid again."""
    return list(trials).count("invalid") > rules.replacements
