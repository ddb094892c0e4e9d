"""A scripted population of trials: an executor that answers from a known curve and runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from msgspec import structs

from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.tests.trials import evidence, identity
from nameplate.verdict.trial import TrialStatus, TrialVerdict

Answer = TrialStatus | BaseException
IDENTITY = identity(engine="vllm", model="m", process_start_time_s=1.0)


@cache
def _template() -> TrialResult:
    return evaluate(evidence(concurrency=1, requests=10))


def result_of(
    plan: TrialPlan,
    status: TrialStatus = "pass",
    *,
    interrupted: bool = False,
    elapsed_s: float = 1.0,
    before: Identity = IDENTITY,
) -> TrialResult:
    """Return a result of this plan and status; its numbers are those of one template trial."""
    verdict = TrialVerdict(status, (f"scripted {status}",), _template().verdict.slos)
    return structs.replace(
        _template(),
        plan=plan,
        verdict=verdict,
        interrupted=interrupted,
        started_ns=0,
        ended_ns=round(elapsed_s * 1e9),
        identity_before=before,
        identity_after=before,
    )


class Population:
    """Execute plans by a script; `ran` keeps every plan that was executed, in order."""

    def __init__(self, answer: Callable[[TrialPlan], Answer]) -> None:
        self._answer = answer
        self.ran: list[TrialPlan] = []

    def __call__(self, plan: TrialPlan) -> TrialResult:
        self.ran.append(plan)
        answer = self._answer(plan)
        if isinstance(answer, BaseException):
            raise answer
        return result_of(plan, answer)

    def of_role(self, role: str) -> list[TrialPlan]:
        return [plan for plan in self.ran if plan.role == role]

    @property
    def requests(self) -> int:
        return sum(plan.requests + plan.warmup for plan in self.ran)


def up_to(limit: int) -> Callable[[TrialPlan], TrialStatus]:
    """Pass up to a level and fail above it."""
    return lambda plan: "pass" if plan.concurrency <= limit else "fail"
