"""One shape's search as it stands: what was run, what was decided, what is left of the budget."""

from __future__ import annotations

from collections.abc import Generator

from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import ClientError, EvidenceError, Interrupted, ServerError
from nameplate.contract.identity import Identity, compare
from nameplate.contract.levels import levels_of, told_rated
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.result import TrialResult
from nameplate.studies.outlook import arriving_s
from nameplate.studies.plans import Planner
from nameplate.verdict.boundary import Boundary, Status, boundary
from nameplate.verdict.certainty import steps_down
from nameplate.verdict.gate import Gate
from nameplate.verdict.level import LevelStatus, LevelVerdict, judge_level, too_many_invalid
from nameplate.verdict.shape import Decision, ShapeVerdict, Step
from nameplate.verdict.trial import SloResult, TrialStatus

Trials = Generator[TrialPlan, TrialResult, TrialResult]


class Ended(Exception):  # noqa: N818 - it is an outcome, not a fault
    """The search ends before its boundary is settled; it never leaves this room."""

    def __init__(self, status: Status, reason: str, exit_code: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.exit_code = exit_code


class Search:
    """Keep the books of one shape: it asks for trials, replaces invalid ones, and watches budget and identity.

    `decisions` is appended to as decisions fall; `spent_s` is what earlier shapes of the study have used.
    """

    def __init__(
        self, contract: Contract, shape: Shape, decisions: list[Decision], spent_s: float = 0.0
    ) -> None:
        self.contract = contract
        self.rules = contract.rules
        self.levels = levels_of(contract)
        self.planner = Planner(contract, shape)
        self.decisions = decisions
        self.confirmations: dict[int, list[TrialStatus]] = {}
        self._slos: dict[int, list[tuple[SloResult, ...]]] = {}
        self._shape = shape
        self._spent_before_s = spent_s
        self._spent_s = 0.0
        self._trials: list[tuple[str, TrialStatus]] = []
        self._identity: Identity | None = None

    def note(
        self, step: Step, what: str, reason: str, level: int | None = None, trial: str | None = None
    ) -> None:
        self.decisions.append(Decision(self._shape, step, what, reason, level, trial))

    def valid_trial(self, plan: TrialPlan, history: list[TrialStatus], step: Step, reason: str) -> Trials:
        """Run a plan until a trial of it is valid; `history` collects the level's statuses, invalid ones too."""
        while True:
            self._hold_budget(plan)
            self.note(step, f"run {plan.key}", reason, plan.level, plan.key)
            result = yield from self._one(plan)
            status = result.verdict.status
            history.append(status)
            if plan.role == "confirmation" and status != "invalid":
                self._slos.setdefault(plan.level, []).append(result.verdict.slos)
            said = "; ".join(result.verdict.reasons)
            self.note("judge", f"{result.plan.key}: {status}", said, plan.level, result.plan.key)
            if status != "invalid":
                return result
            if result.gate(Gate.identity).status == "invalid":
                raise Ended(Status.invalid, f"the identity changed in {result.plan.key}: {said}")
            if too_many_invalid(history, self.rules):
                times = f"replaced {self.rules.replacements} times and was invalid again"
                raise Ended(Status.invalid, f"{self._name(plan)} was {times}: {said}")
            plan = structs.replace(plan, attempt=result.plan.attempt + 1)
            step, reason = "replace", "an invalid trial is replaced with new prompts, and both are kept"

    def level(self, level: int) -> LevelVerdict:
        """Judge a level by its confirmations so far."""
        begun = self.confirmations
        steps = steps_down(level, begun, next(iter(begun), level))
        return judge_level(level, begun.get(level, ()), self.rules, self._slos.get(level, ()), steps)

    @property
    def settled(self) -> dict[int, LevelStatus]:
        """Return the levels whose confirmations have settled them."""
        levels = {level: self.level(level).status for level in self.confirmations}
        return {level: status for level, status in levels.items() if status in ("pass", "fail", "noisy")}

    def verdict(self, found: Boundary, reason: str) -> ShapeVerdict:
        """Close the books with this boundary."""
        rated = found.rated
        self.note("settle", f"{found.status}, rated {told_rated(self.levels, rated)}", reason)
        return ShapeVerdict(
            shape=self._shape,
            boundary=found,
            levels=tuple(self.level(level) for level in sorted(self.confirmations)),
            operate_at=None if rated is None else self.levels.lower(rated, self.rules.operate_below),
            reason=reason,
            trials=tuple(self._trials),
            spent_s=self._spent_s,
        )

    def ended(self, end: Ended) -> ShapeVerdict:
        """Close the books of a search that ended early."""
        found = boundary(end.status, self.settled, exit_code=end.exit_code)
        return self.verdict(found, end.reason)

    def _name(self, plan: TrialPlan) -> str:
        return "the baseline" if plan.role == "baseline" else self.levels.name(plan.level)

    def _one(self, plan: TrialPlan) -> Trials:
        try:
            result = yield plan
        except (KeyboardInterrupt, Interrupted) as error:
            raise Ended(Status.interrupted, str(error) or "interrupted by a person", 130) from None
        except ServerError as error:
            raise Ended(Status.interrupted, f"the server was lost: {error}", error.exit_code) from None
        except (ClientError, EvidenceError) as error:
            raise Ended(Status.invalid, f"a trial could not be carried out: {error}", 4) from None
        self._trials.append((result.plan.key, result.verdict.status))
        self._spent_s += plan.quiet_s + result.elapsed_s
        if result.interrupted:
            raise Ended(Status.interrupted, f"{result.plan.key} was interrupted by a person", 130)
        self._hold_identity(result)
        return result

    def _hold_identity(self, result: TrialResult) -> None:
        if self._identity is None:
            self._identity = result.identity_before
        changes = compare(self._identity, result.identity_before)
        changed = [str(change) for change in changes if change.kind == "changed"]
        if changed:
            said = "; ".join(changed)
            raise Ended(Status.invalid, f"the server is not the one of the first trial: {said}")

    def _hold_budget(self, plan: TrialPlan) -> None:
        if len(self._trials) >= self.rules.max_trials:
            raise Ended(Status.budget, f"all {self.rules.max_trials} trials of the shape are used up")
        spent_s = self._spent_before_s + self._spent_s
        if self.rules.max_s is not None and spent_s >= self.rules.max_s:
            raise Ended(Status.budget, f"the time budget of {self.rules.max_s:g} s is used up")
        takes_s = arriving_s(plan)
        if self.rules.max_s is not None and takes_s is not None and spent_s + takes_s > self.rules.max_s:
            left_s = self.rules.max_s - spent_s
            raise Ended(
                Status.budget,
                f"{plan.requests} requests at {self._name(plan)} would take {takes_s:.0f} s, and of the time budget of "
                f"{self.rules.max_s:g} s {left_s:.0f} s are left",
            )
