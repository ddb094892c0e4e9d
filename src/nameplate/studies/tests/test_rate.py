"""The rate study on queues of known capacity: the answer within its resolution, and every way in which it can end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, Interrupted
from nameplate.contract.levels import levels_of
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rates import RateRules
from nameplate.contract.rules import Rules
from nameplate.measure.result import TrialResult
from nameplate.measure.tests.trials import SHAPE, contract
from nameplate.schedule.stage import stages_of
from nameplate.studies.capacity import capacity
from nameplate.studies.resume import NotRun, leftover, replay
from nameplate.studies.runner import run
from nameplate.studies.tests.queues import QueueServer, Serve, fixed
from nameplate.studies.tests.scripted import Population
from nameplate.verdict.boundary import Status
from nameplate.verdict.gate import Gate
from nameplate.verdict.shape import ShapeVerdict

COARSE = RateRules(resolution=0.2)
RATES = levels_of(structs.replace(contract(), rate=COARSE))


def study_of(*slos: str, rate: RateRules = COARSE, **rules: Any) -> Contract:
    return structs.replace(contract(*slos, rules=Rules(quiet_s=0, **rules)), rate=rate)


def sustained(limit: float) -> Callable[[TrialPlan], str]:
    """Pass up to a rate and fail above it."""
    return lambda plan: "pass" if plan.arrivals is None or plan.arrivals.rate <= limit else "fail"


def go(answer: Callable[[TrialPlan], object], **rules: Any) -> tuple[ShapeVerdict, Population]:
    population = Population(answer)  # type: ignore[arg-type]
    return run(capacity(study_of(**rules), SHAPE), population), population


def on_queue(serve: Serve, *slos: str, seed: int = 1, **rules: Any) -> tuple[ShapeVerdict, QueueServer]:
    wanted = study_of(*slos, **rules)
    server = QueueServer(wanted, serve, 0.1, seed)
    return run(capacity(wanted, SHAPE), server), server


def rates_of(population: Population, role: str) -> list[float]:
    return [plan.arrivals.rate for plan in population.of_role(role) if plan.arrivals is not None]


def test_neighbouring_rates_are_confirmed_on_both_sides() -> None:
    """The locator doubles, then bisects; the highest rate that passes and the next one have three trials each."""
    verdict, population = go(sustained(10))
    found = verdict.boundary
    assert (found.status, found.exit_code) == (Status.confirmed, 0)
    assert found.pass_level is not None and found.fail_level == found.pass_level + 1
    assert RATES.value(found.pass_level) == 10 and RATES.value(found.fail_level) <= 12
    assert rates_of(population, "confirmation") == [10, 11.8] * 3
    low, high = rates_of(population, "locator")[:2]
    assert high == pytest.approx(2 * low, rel=0.05)
    assert verdict.operate_at == found.pass_level - 1


def test_every_trial_has_arrivals_and_prompts_of_its_own() -> None:
    """No two plans share a seed or a name; a confirmation must prove its queue, a locator may stop."""
    _, population = go(sustained(10))
    opened = [plan for plan in population.ran if plan.arrivals is not None]
    assert len({plan.arrivals.seed for plan in opened if plan.arrivals}) == len(opened)
    assert len({plan.key for plan in opened}) == len(opened)
    for plan in opened:
        assert plan.rate_level is not None
        assert plan.rate_level.proves == (plan.role == "confirmation") != plan.stop_when_failed
        assert plan.concurrency == COARSE.outstanding_limit


def test_as_many_arrive_as_the_rate_says() -> None:
    """The last of N is due just before N / rate, another attempt at other times."""
    _, population = go(sustained(10))
    plan = population.of_role("confirmation")[0]
    assert plan.arrivals is not None
    again = structs.replace(plan, attempt=1)
    ends = [stages_of(one)[-1].schedule.due_ns(plan.requests - 1) for one in (plan, again)]
    lasts_ns = plan.requests / plan.arrivals.rate * 1e9
    assert all(end is not None and 0.97 * lasts_ns < end < lasts_ns for end in ends)
    assert ends[0] != ends[1]


@pytest.mark.parametrize(
    ("answer", "rules", "status", "rated", "code"),
    [
        (sustained(1e9), {"rate": RateRules(resolution=0.2, max_per_s=20)}, Status.open_above, 19.3, 3),
        (sustained(0.5), {"rate": RateRules(resolution=0.2, min_per_s=2)}, Status.open_below, None, 3),
        (sustained(10), {"max_trials": 9}, Status.budget, None, 3),
        (lambda plan: Interrupted("stopped") if plan.role == "confirmation" else "pass",
         {"rate": RateRules(resolution=0.2, max_per_s=20)}, Status.interrupted, None, 130),
    ],
)  # fmt: skip
def test_every_end_has_its_status(
    answer: Callable[[TrialPlan], object],
    rules: dict[str, object],
    status: Status,
    rated: float | None,
    code: int,
) -> None:
    """As in a capacity study; but no rate is the least, so the lowest that fails leaves the answer open."""
    verdict, _ = go(answer, **rules)
    found = verdict.boundary
    assert (found.status, found.exit_code) == (status, code)
    assert (None if found.rated is None else RATES.value(found.rated)) == rated


def test_one_request_a_second_is_no_zero() -> None:
    """Level 0 is a rate like any other: rated there is an answer with exit code 0."""
    verdict, _ = go(sustained(1))
    assert (verdict.boundary.rated, verdict.boundary.exit_code) == (0, 0)
    assert verdict.operate_at == -1


def test_trials_that_disagree_lower_the_answer() -> None:
    """A rate at which one of three fails is noisy, and the pass below it is the number."""

    def answer(plan: TrialPlan) -> str:
        if plan.role == "confirmation" and plan.arrivals and plan.arrivals.rate == 10:
            return "fail" if plan.name.endswith("t2") else "pass"
        return sustained(10)(plan)

    verdict, _ = go(answer)
    assert (verdict.boundary.status, verdict.boundary.exit_code) == (Status.noisy, 3)
    assert verdict.boundary.rated is not None and RATES.value(verdict.boundary.rated) == 8.48


def test_a_trial_that_would_outlast_the_time_left_is_not_begun() -> None:
    """What arrives at a rate takes its time: a budget that it would exceed ends the study before."""
    verdict, population = go(sustained(10), max_s=30.0)
    assert verdict.boundary.status is Status.budget
    assert "would take" in verdict.reason
    assert all(plan.requests / plan.arrivals.rate < 30 for plan in population.ran if plan.arrivals)


def test_a_killed_study_goes_on_where_it_was() -> None:
    """Sealed trials are replayed; the one that was cut short runs again with new prompts and new arrivals."""
    wanted = study_of()
    whole = Population(sustained(10))  # type: ignore[arg-type]
    results: list[TrialResult] = []
    run(capacity(wanted, SHAPE), whole, on_trial=lambda _plan, result, _replayed: results.append(result))
    left = leftover(results[:-3], [results[-3].plan.key])
    with pytest.raises(NotRun) as stop:
        replay(capacity(wanted, SHAPE), left)
    assert stop.value.plan.key == f"{results[-3].plan.name}.retry1"
    rest = Population(sustained(10))  # type: ignore[arg-type]
    verdict = run(capacity(wanted, SHAPE), rest, sealed=left.sealed, spoiled=left.spoiled)
    assert verdict.boundary.status is Status.confirmed and len(rest.ran) == 3


def test_rules_without_a_rate_are_refused_before_anything_runs() -> None:
    """A grid that is too fine is the caller's mistake."""
    with pytest.raises(CallerError, match="resolution"):
        go(sustained(10), rate=RateRules(resolution=0.001))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_server_of_known_capacity_is_rated_within_two_steps(seed: int) -> None:
    """One server of 0.1 s a request: a p95 wait of five services is reached at 7.4 requests a second."""
    verdict, _ = on_queue(fixed(1, 0.1), "ttft p95 < 500ms", seed=seed)
    assert verdict.boundary.rated is not None
    assert 7.4 / 1.2**2 <= RATES.value(verdict.boundary.rated) <= 7.4 * 1.2


def test_a_loose_promise_leaves_the_capacity_itself() -> None:
    """Where the SLO never binds within the sample, the queue tells: capacity is 10, and nothing above passes."""
    verdict, server = on_queue(fixed(1, 0.1), "ttft p95 < 60s")
    assert verdict.boundary.rated is not None
    assert 10 / 1.2**2 <= RATES.value(verdict.boundary.rated) <= 10
    above = [
        plan
        for plan in server.ran
        if plan.role == "confirmation" and plan.arrivals and plan.arrivals.rate > 11
    ]
    assert above
    result = server(above[0])
    assert result.verdict.slos[0].status == "pass" and result.gate(Gate.bounded_queue).status == "fail"


def test_a_server_that_slows_down_is_not_steady() -> None:
    """Four times slower at the end than at the beginning: what the sample's percentile allows is not sustained."""
    wanted = study_of("ttft p95 < 60s")
    rate = RATES.rates  # type: ignore[union-attr]
    server = QueueServer(wanted, fixed(1, 0.1, slower=3.0), 0.1)
    plan = go(sustained(10))[1].of_role("confirmation")[0]
    assert plan.rate_level is not None
    slow = structs.replace(
        plan,
        arrivals=rate.arrivals(rate.grid.at_most(5.0), 7),
        requests=1000,
        rate_level=structs.replace(plan.rate_level, resolution=0.05),
    )
    result = server(slow)
    assert result.verdict.slos[0].status == "pass" and result.verdict.status == "fail"
    assert {result.gate(Gate.bounded_queue).status, result.gate(Gate.steady_latency).status} & {"fail"}
