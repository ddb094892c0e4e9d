"""The speed study: every planned cell of the matrix once, what tells most first. It decides and never does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import ClientError, EvidenceError, Interrupted, PromptRefused, ServerError
from nameplate.contract.identity import Identity, compare
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, planned_cells
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_builder import still_looped
from nameplate.studies.cell_plans import CellPlanner
from nameplate.studies.forecast import Forecast
from nameplate.verdict.cell import CellStatus, CellVerdict
from nameplate.verdict.cell_plan import foregone, preemption_warning

Study = Generator[TrialPlan, TrialResult, "Outcome"]

# A looped cell is tried once more with new prompts, and so is one that our own machine or a stranger spoiled.
RETRIES: Mapping[CellStatus, int] = {
    CellStatus.looped: 1,
    CellStatus.client_limited: 1,
    CellStatus.extra_traffic: 1,
}


class Left(Struct, frozen=True):
    """Say how far a study is: cells done of all, and roughly how many seconds are left.

    `at_least` says that no prefill is known yet, which comes on top.
    """

    done: int
    of: int
    left_s: float
    at_least: bool


class Outcome(Struct, frozen=True):
    """Hold what became of cells without a trial of their own, by cell, and how the study ended."""

    unrun: Mapping[CellPlan, CellVerdict]
    exit_code: int
    reason: str


class Telling(Struct, frozen=True):
    """Take what a study has to say while it runs: sentences, and how much is left."""

    tell: Callable[[str], None]
    left: Callable[[Left], None]


def speed(
    contract: Contract,
    limits: ServerLimits,
    telling: Telling,
    unrun: dict[CellPlan, CellVerdict] | None = None,
) -> Study:
    """Measure every cell of the contract's matrix; yield each trial's plan, take its result, return what was not run.

    A cell that cannot be run on this server is not; one that the time budget leaves no room for is `skipped`.
    `unrun` is filled as such verdicts fall. Throw what ended a trial into it instead of a result: an interrupt or a
    lost server ends the study, and the cells that are left are `interrupted`.
    """
    assert contract.speed is not None
    study = _Study(contract, contract.speed, limits, telling, {} if unrun is None else unrun)
    try:
        yield from study.warm_up()
        for cell in study.cells:
            yield from study.measure(cell)
    except _Ended as end:
        study.abandon(end.reason)
        return Outcome(study.unrun, end.exit_code, end.reason)
    return Outcome(study.unrun, study.exit_code, "every planned cell has its status")


class _Ended(Exception):  # noqa: N818 - it is an outcome, not a fault
    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code


class _Study:
    def __init__(
        self,
        contract: Contract,
        matrix: Matrix,
        limits: ServerLimits,
        telling: Telling,
        unrun: dict[CellPlan, CellVerdict],
    ) -> None:
        self._matrix = matrix
        self._limits = limits
        self._telling = telling
        self.unrun = unrun
        self.cells = planned_cells(matrix)
        self._planner = CellPlanner(contract, matrix, limits)
        self._forecast = Forecast(matrix, limits)
        self._identity: Identity | None = None
        self._spent_s = 0.0
        self._done: set[CellPlan] = set()
        self._running: CellPlan | None = None
        self._prefilled: set[int] = set()
        self._valid = 0
        for cell in self.cells:
            verdict = foregone(matrix, cell, limits)
            if verdict is not None:
                unrun[cell] = verdict
                self._done.add(cell)

    @property
    def exit_code(self) -> int:
        """Return 0 where any cell has a rate or none can be run, 3 where all were skipped, 4 where all are void."""
        if self._valid:
            return 0
        if any(cell not in self.unrun for cell in self.cells):
            return 4
        return 3 if any(verdict.status is CellStatus.skipped for verdict in self.unrun.values()) else 0

    def warm_up(self) -> Generator[TrialPlan, TrialResult, None]:
        """Run one discarded load at the largest context that can be run, before the first cell is measured.

        A server may refuse a context whose limit it does not tell: then it is the next shorter one.
        """
        self._say_left()
        runnable = [cell for cell in self.cells if cell not in self.unrun]
        decodes = [cell for cell in runnable if cell.kind == "decode"] or runnable
        for context_tokens in sorted({cell.context_tokens for cell in decodes}, reverse=True):
            try:
                result = yield from self._trial(self._planner.warmup(context_tokens))
                break
            except PromptRefused as error:
                self._telling.tell(f"no warm-up at {context_tokens:,} tokens: {error.what}")
        else:
            return
        ttft_ns = result.measurement.latencies.whole.ttft.p50
        prompt = result.measurement.correctness.prompt_tokens
        if ttft_ns is not None and prompt is not None:
            self._forecast.learn(prompt.high, ttft_ns)
        self._say_left()

    def measure(self, cell: CellPlan) -> Generator[TrialPlan, TrialResult, None]:
        """Run one cell until it has its status."""
        if cell in self.unrun:
            return
        if self._over_budget(cell):
            self._say_left()
            return
        self._warn(cell)
        self._running = cell
        try:
            yield from self._attempts(cell)
        except PromptRefused as error:
            self.unrun[cell] = CellVerdict(CellStatus.over_limit, error.what)
            self._telling.tell(f"{cell} is over the limit: {error.what}")
        self._running = None
        self._done.add(cell)
        self._say_left()

    def _attempts(self, cell: CellPlan) -> Generator[TrialPlan, TrialResult, None]:
        if cell.kind == "mixed":
            yield from self._alone(cell)
        attempt = tries = 0
        earlier: list[TrialResult] = []
        while True:
            plan = structs.replace(
                self._planner.plan(cell, self._forecast.prefill_ns(cell.context_tokens)), attempt=attempt
            )
            result = yield from self._trial(plan)
            assert result.speed is not None
            self._learn(cell, result)
            # An attempt that an interruption spoiled used its prompts up, and is no try.
            attempt, tries = result.plan.attempt + 1, tries + 1
            status = result.speed.verdict.status
            if tries > RETRIES.get(status, 0):
                break
            earlier.append(result)
            self._telling.tell(f"{cell} is {_words(status)}: {result.speed.verdict.reason}; tried once more")
        self._valid += result.speed.verdict.valid and not still_looped(earlier, result)

    def _alone(self, cell: CellPlan) -> Generator[TrialPlan, TrialResult, None]:
        """Measure the long prompt alone, where no valid prefill cell has, and once more where that was spoiled."""
        plan = self._planner.alone(cell.context_tokens)
        for _ in range(2):
            if cell.context_tokens in self._prefilled:
                return
            result = yield from self._trial(plan)
            self._learn(cell, result)
            plan = structs.replace(plan, attempt=result.plan.attempt + 1)

    def abandon(self, reason: str) -> None:
        """Give every cell that has no status the one that the end of the study leaves it."""
        for cell in self.cells:
            if cell not in self._done:
                how = "not finished" if cell == self._running else "not run"
                self.unrun[cell] = CellVerdict(CellStatus.interrupted, f"{how}: {reason}")

    def _over_budget(self, cell: CellPlan) -> bool:
        budget_s = self._matrix.time_budget_s
        if budget_s is None:
            return False
        needed_s = self._forecast.cell_s(cell)
        if self._spent_s + needed_s <= budget_s:
            return False
        left_s = max(0.0, budget_s - self._spent_s)
        self.unrun[cell] = CellVerdict(
            CellStatus.skipped,
            f"some {needed_s:.0f} s are needed, and {left_s:.0f} s of the time budget of {budget_s:.0f} s are left",
        )
        self._done.add(cell)
        self._telling.tell(f"{cell} is skipped: {self.unrun[cell].reason}")
        return True

    def _warn(self, cell: CellPlan) -> None:
        warned = preemption_warning(self._matrix, cell, self._limits)
        if warned is not None:
            self._telling.tell(f"{cell}: {warned}")
        counted = self._matrix.requests is not None
        if cell.kind != "decode" or counted or self._matrix.ready_timeout_ns is None:
            return
        expected_s = self._forecast.ready_s(cell)
        limit_s = self._matrix.ready_timeout_ns / 1e9
        if expected_s is not None and expected_s > limit_s:
            self._telling.tell(
                f"{cell} will hardly be ready: its prompts take some {expected_s:.0f} s, and --ready-timeout is "
                f"{limit_s:g} s"
            )

    def _learn(self, cell: CellPlan, result: TrialResult) -> None:
        speed = result.speed
        assert speed is not None
        prefill, held = speed.prefill, speed.cell
        if prefill is not None and prefill.ttft_median_ns is not None and prefill.samples:
            self._forecast.learn(prefill.samples[0].prompt_tokens, prefill.ttft_median_ns)
            if speed.verdict.valid:
                self._prefilled.add(result.plan.shape.input_tokens)
        elif cell.kind == "decode" and cell.concurrency == 1 and held is not None:
            ttft_ns = held.ttft.p50
            if ttft_ns is not None and held.warmth != "warm" and self._matrix.unique_percent == 100.0:
                self._forecast.learn(cell.context_tokens, ttft_ns)

    def _trial(self, plan: TrialPlan) -> Generator[TrialPlan, TrialResult, TrialResult]:
        try:
            result = yield plan
        except (KeyboardInterrupt, Interrupted) as error:
            raise _Ended(str(error) or "interrupted by a person", 130) from None
        except PromptRefused:
            raise
        except ServerError as error:
            raise _Ended(f"the server was lost: {error}", error.exit_code) from None
        except (ClientError, EvidenceError) as error:
            raise _Ended(f"a trial could not be carried out: {error}", 4) from None
        self._spent_s += result.elapsed_s
        if result.interrupted:
            raise _Ended(f"{result.plan.key} was interrupted by a person", 130)
        if self._identity is None:
            self._identity = result.identity_before
        changed = [str(c) for c in compare(self._identity, result.identity_before) if c.kind == "changed"]
        if changed:
            # Cells of different servers are no matrix.
            raise _Ended(f"the server is not the one of the first cell: {'; '.join(changed)}", 4)
        return result

    def _say_left(self) -> None:
        left = [cell for cell in self.cells if cell not in self._done]
        budget_s = self._matrix.time_budget_s
        left_s = sum(self._forecast.cell_s(cell) for cell in left)
        if budget_s is not None:
            left_s = min(left_s, max(0.0, budget_s - self._spent_s))
        self._telling.left(Left(len(self._done), len(self.cells), left_s, not self._forecast.knows_prefill))


def _words(status: CellStatus) -> str:
    return status.value.replace("_", " ")
