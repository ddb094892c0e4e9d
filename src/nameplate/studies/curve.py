"""The curve study: one level after the other, each as often as asked; a level that fails is a result. It never does."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.curve import border_width, say_load
from nameplate.contract.errors import ClientError, EvidenceError, Interrupted, PromptRefused, ServerError
from nameplate.contract.limits import ServerLimits
from nameplate.contract.plan import TrialPlan
from nameplate.measure.curve_builder import verdict_of, verdict_of_probe
from nameplate.measure.result import TrialResult
from nameplate.studies.curve_plans import CurveForecast, CurvePlanner, alone
from nameplate.studies.speed import Left, Telling
from nameplate.verdict.curve_level import (
    LevelStatus,
    LevelVerdict,
    curve_exit_code,
    ending,
    judge_level_of,
)

Study = Generator[TrialPlan, TrialResult, "Outcome"]
Steps = Generator[TrialPlan, TrialResult, None]

# Where a climb begins that was given no length, and how long it may become: longer than any context there is.
FIRST_INPUT, LONGEST_INPUT = 8_192, 1 << 24
# Doublings and bisections together: from 8K to 16M there are eleven of the one, and seven of the other at each.
MOST_SEARCHES = 24
_NOT_TAKEN = (LevelStatus.refused, LevelStatus.capped)


class Outcome(Struct, frozen=True):
    """Hold what became of levels that their trials do not tell of, and how the study ended."""

    unrun: Mapping[float, LevelVerdict]
    exit_code: int
    reason: str


class Beside(Struct):
    """Collect what a study finds beside its trials, as it falls: levels not run, probes refused before a trial."""

    unrun: dict[float, LevelVerdict] = {}
    refused_probes: dict[int, str] = {}


def curve(
    contract: Contract,
    limits: ServerLimits,
    telling: Telling,
    beside: Beside,
    max_s: float | None = None,
) -> Study:
    """Measure every level of the contract's curve; yield each trial's plan, take its result, return the outcome.

    Levels for which `max_s` seconds leave no room are skipped. A trial that is invalid is replaced, at most as often as
    the rules say. What ended a trial is thrown in: a refused prompt is its level's status; a person or a lost server
    ends the study, and the levels that are left say so.
    """
    study = _Study(contract, limits, telling, beside, max_s)
    try:
        yield from study.run()
    except _Ended as end:
        study.abandon(end)
        return Outcome(beside.unrun, end.exit_code, str(end))
    statuses = [study.statuses[load] for load in sorted(study.statuses)]
    return Outcome(beside.unrun, curve_exit_code(statuses), ending(statuses))


class _Ended(Exception):  # noqa: N818 - it is an outcome, not a fault
    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


class _Study:
    def __init__(
        self,
        contract: Contract,
        limits: ServerLimits,
        telling: Telling,
        beside: Beside,
        max_s: float | None,
    ) -> None:
        assert contract.curve is not None
        self._rules = contract.rules
        self._plan = contract.curve
        self._limits = limits
        self._telling = telling
        self._beside = beside
        self._max_s = max_s
        self._planner = CurvePlanner(contract, contract.curve)
        self._forecast = CurveForecast(self._planner)
        self._loads = contract.curve.loads(limits.context_tokens)
        self._running: float | None = None
        self._began = False
        self._spent_s = 0.0
        self.statuses: dict[float, LevelStatus] = {}

    def run(self) -> Steps:
        self._say_left()
        for load in self._loads:
            yield from self.level(load)
        if self._plan.kind == "input" and self._plan.to_limit and self._limits.context_tokens is None:
            yield from self._search_limit()

    def level(self, load: float) -> Steps:
        """Measure one level until it has its status."""
        foregone = self._foregone(load)
        if foregone is not None:
            self._end(load, foregone)
            return
        self._running = load
        said: list[LevelVerdict] = []
        try:
            for number in range(1, self._plan.repeat + 1):
                yield from self._valid(load, number, said)
                if said[-1].status is not LevelStatus.valid:
                    break
        except PromptRefused as error:
            self._end(load, LevelVerdict(LevelStatus.refused, error.what))
        else:
            judged = judge_level_of(said, self._plan.repeat)
            assert judged is not None
            self.statuses[load] = judged.status
            if judged.status is not LevelStatus.valid:
                self._tell(load, judged)
        self._running = None
        self._say_left()

    def abandon(self, end: _Ended) -> None:
        """Give every level that has no status the one that the end of the study leaves it."""
        for load in self._loads if self._running is None else sorted({*self._loads, self._running}):
            if load in self.statuses:
                continue
            if load == self._running and end.exit_code == ServerError.exit_code:
                self._beside.unrun[load] = LevelVerdict(LevelStatus.lost, str(end))
                continue
            how = f"not finished: {end}" if load == self._running else "not run: the study ended before"
            self._beside.unrun[load] = LevelVerdict(LevelStatus.interrupted, how)

    def _foregone(self, load: float) -> LevelVerdict | None:
        """Return the status of a level that is not run, or None."""
        context = self._limits.context_tokens
        if self._plan.kind == "input" and context is not None and load + self._plan.output_tokens > context:
            shape = self._plan.shape_at(load)
            total = shape.input_tokens + shape.output_tokens
            return LevelVerdict(
                LevelStatus.over_limit,
                f"{shape} needs {total:,} tokens, and the server's context holds {context:,}",
            )
        budget_s = self._max_s
        if budget_s is None:
            return None
        needed_s = self._forecast.level_s(load) if self._forecast.knows else 0.0
        left_s = budget_s - self._spent_s
        if left_s > 0 and needed_s <= left_s:
            return None
        return LevelVerdict(
            LevelStatus.skipped,
            f"some {needed_s:.0f} s are needed, and {max(0.0, left_s):.0f} s of the {budget_s:g} s allowed are left",
        )

    def _valid(self, load: float, number: int, said: list[LevelVerdict]) -> Steps:
        """Run one trial of a level, and replace it while it is invalid and may be."""
        plan = self._planner.trial(load, number, first=not self._began)
        for _ in range(self._rules.replacements + 1):
            result = yield from self._trial(plan)
            judged = verdict_of(self._plan, result)
            said.append(judged)
            if judged.status is LevelStatus.lost:
                raise _Ended(judged.reason, ServerError.exit_code)
            if judged.status is LevelStatus.valid:
                self._forecast.learn(load, result)
                if alone(self._plan, load):
                    ttft = result.measurement.latencies.whole.ttft
                    self._planner = structs.replace(self._planner, alone_ttft_ns=ttft.low_median_high)
            if judged.status is not LevelStatus.invalid:
                return
            plan = structs.replace(plan, attempt=result.plan.attempt + 1)

    def _trial(self, plan: TrialPlan) -> Generator[TrialPlan, TrialResult, TrialResult]:
        try:
            result = yield plan
        except (KeyboardInterrupt, Interrupted) as error:
            raise _Ended(str(error) or "interrupted by a person", 130) from None
        except PromptRefused:
            raise
        except ServerError as error:
            raise _Ended(f"the server was lost: {error.what}", error.exit_code) from None
        except (ClientError, EvidenceError) as error:
            raise _Ended(f"a trial could not be carried out: {error}", 4) from None
        self._began = True
        self._spent_s += result.plan.quiet_s + result.elapsed_s
        if result.interrupted:
            raise _Ended(f"{result.plan.key} was interrupted by a person", 130)
        return result

    def _search_limit(self) -> Steps:
        """Climb by doubling until a prompt is refused, bisect to the border, and measure the longest that is taken."""
        searches = 0
        while self._refused is None and searches < MOST_SEARCHES:
            longest = max(self.statuses, default=0.0)
            load = 2 * longest if longest else float(FIRST_INPUT)
            if load > LONGEST_INPUT:
                return
            searches += 1
            yield from self.level(load)
            if self.statuses[load] is not LevelStatus.valid and self.statuses[load] not in _NOT_TAKEN:
                return
        low, high = self._accepted, self._refused
        if not low or high is None:
            return
        while high - low > border_width(low) and searches < MOST_SEARCHES:
            searches += 1
            middle = (low + high) // 2
            taken = yield from self._taken(middle)
            if taken is None:
                return
            low, high = (middle, high) if taken else (low, middle)
        if float(low) not in self.statuses:
            yield from self.level(float(low))

    def _taken(self, tokens: int) -> Generator[TrialPlan, TrialResult, bool | None]:
        """Ask once whether a prompt of this length is taken; None where the answer tells nothing of its length."""
        self._telling.tell(f"looking for the context limit: {tokens:,} tokens")
        try:
            result = yield from self._trial(self._planner.probe(tokens))
        except PromptRefused as error:
            self._beside.refused_probes[tokens] = error.what
            return False
        judged = verdict_of_probe(result)
        if judged.status is LevelStatus.valid:
            return True
        return False if judged.status in _NOT_TAKEN else None

    @property
    def _accepted(self) -> int:
        return int(max((load for load, s in self.statuses.items() if s is LevelStatus.valid), default=0))

    @property
    def _refused(self) -> int | None:
        refused = [load for load, s in self.statuses.items() if s in _NOT_TAKEN and load > self._accepted]
        return int(min(refused)) if refused else None

    def _end(self, load: float, judged: LevelVerdict) -> None:
        self.statuses[load] = judged.status
        self._beside.unrun[load] = judged
        self._tell(load, judged)

    def _tell(self, load: float, judged: LevelVerdict) -> None:
        word = judged.status.value.replace("_", " ")
        self._telling.tell(f"{say_load(self._plan.kind, load)} is {word}: {judged.reason}")

    def _say_left(self) -> None:
        left = [load for load in self._loads if load not in self.statuses]
        left_s = sum(self._forecast.level_s(load) for load in left)
        if self._max_s is not None:
            left_s = min(left_s, max(0.0, self._max_s - self._spent_s))
        done = len(self._loads) - len(left)
        self._telling.left(Left(done, len(self._loads), left_s, not self._forecast.knows))
