"""The capacity protocol, driven by scripted populations through every row of its status table."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from nameplate.contract.errors import CallerError, ClientError, Interrupted, ServerError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.measure.result import TrialResult
from nameplate.measure.tests.trials import SHAPE, contract, identity
from nameplate.studies.capacity import capacity
from nameplate.studies.runner import run
from nameplate.studies.tests.scripted import Answer, Population, result_of, up_to
from nameplate.verdict.boundary import Status
from nameplate.verdict.expectation import Expectation
from nameplate.verdict.facts import LoopCount
from nameplate.verdict.shape import ShapeVerdict


def go(population: Population, **rules: object) -> ShapeVerdict:
    given = contract(rules=Rules(**rules))  # type: ignore[arg-type]
    return run(capacity(given, SHAPE), population)


def levels_of(population: Population, role: str) -> list[int]:
    return [plan.concurrency for plan in population.of_role(role)]


def test_a_clean_boundary_is_confirmed_on_both_sides() -> None:
    """A pass and a fail stand adjacent: confirmed, exit 0, operating one step below."""
    population = Population(up_to(7))
    verdict = go(population)
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.exit_code) == (
        "confirmed",
        7,
        0,
    )
    assert (verdict.boundary.pass_level, verdict.boundary.fail_level) == (7, 8)
    assert verdict.operate_at == 6


def test_the_search_doubles_then_bisects_then_alternates() -> None:
    """The locator goes 2, 4, 8, 6, 7; confirmations of C and C+1 take turns."""
    population = Population(up_to(7))
    go(population)
    assert levels_of(population, "locator") == [2, 4, 8, 6, 7]
    assert levels_of(population, "confirmation") == [7, 8, 7, 8, 7, 8]
    assert len(levels_of(population, "baseline")) == 1


def test_plans_follow_the_protocol() -> None:
    """Roles have the protocol's warm-ups, counts and quiet intervals, and every name is unique."""
    population = Population(up_to(7))
    go(population)
    baseline, locator = population.of_role("baseline")[0], population.of_role("locator")[0]
    confirmation = population.of_role("confirmation")[0]
    assert (baseline.concurrency, baseline.warmup, baseline.requests) == (1, 2, 10)
    assert (locator.warmup, locator.requests, locator.stop_when_failed) == (2, 64, True)
    assert (confirmation.warmup, confirmation.requests, confirmation.stop_when_failed) == (8, 64, False)
    assert (locator.quiet_s, confirmation.quiet_s) == (0.0, 15.0)
    assert max(Counter(plan.key for plan in population.ran).values()) == 1


def test_requests_grow_with_the_level() -> None:
    """N is max(64, 4C, ceil(3/(1-p))) at that level's own C."""
    population = Population(up_to(40))
    go(population, max_trials=100)
    assert {plan.requests for plan in population.of_role("confirmation")} == {160, 164}


def test_a_boundary_near_ten_costs_few_requests() -> None:
    """Everything together stays within 1,500 requests for each boundary near ten."""
    for limit in (8, 9, 10, 11, 12):
        population = Population(up_to(limit))
        assert go(population).boundary.rated == limit
        assert population.requests <= 1500


def test_nothing_passing_is_rated_zero() -> None:
    """C=1 fails in all confirmations: confirmed, rated 0, exit 1."""
    population = Population(up_to(0))
    verdict = go(population)
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.exit_code) == (
        "confirmed",
        0,
        1,
    )
    assert (verdict.boundary.fail_level, verdict.operate_at) == (1, 0)
    assert levels_of(population, "locator") == [2, 1]


def test_everything_passing_is_open_above() -> None:
    """--max passes in all confirmations: rated is at least --max, exit 3."""
    verdict = go(Population(lambda _: "pass"), max_concurrency=12)
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.exit_code) == (
        "open_above",
        12,
        3,
    )


def test_a_failing_lowest_level_above_one_is_open_below() -> None:
    """--min above 1 fails: rated is null, exit 3."""
    verdict = go(Population(up_to(2)), min_concurrency=4)
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.exit_code) == (
        "open_below",
        None,
        3,
    )
    assert verdict.operate_at is None


def test_noise_is_confirmed_outward_and_never_rounded_upwards() -> None:
    """A level whose trials disagree is noisy; the pass below it is rated, and a fail above it stands."""

    def answer(plan: TrialPlan) -> Answer:
        if plan.role == "confirmation" and plan.concurrency == 7:
            return "fail" if plan.name.endswith("t2") else "pass"
        return "pass" if plan.concurrency <= 7 else "fail"

    verdict = go(Population(answer))
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.exit_code) == ("noisy", 6, 3)
    assert (verdict.boundary.noisy, verdict.boundary.pass_level, verdict.boundary.fail_level) == ((7,), 6, 8)


def test_a_noisy_level_above_the_candidate_is_searched_upwards() -> None:
    """C passes and C+1 is noisy: C+2 is confirmed until a fail stands."""

    def answer(plan: TrialPlan) -> Answer:
        if plan.role == "confirmation" and plan.concurrency == 8:
            return "pass" if plan.name.endswith("t2") else "fail"
        return "pass" if plan.concurrency <= 7 else "fail"

    verdict = go(Population(answer))
    assert (verdict.boundary.status, verdict.boundary.rated) == ("noisy", 7)
    assert (verdict.boundary.noisy, verdict.boundary.fail_level) == ((8,), 9)


def test_all_k_trials_always_run() -> None:
    """A first failing confirmation does not spare the others: each level has k valid trials."""
    population = Population(lambda p: "fail" if p.role == "confirmation" and p.concurrency > 5 else "pass")
    verdict = go(population, max_concurrency=8, max_trials=99)
    assert {level.level: level.valid for level in verdict.levels} == {8: 3, 7: 3, 6: 3, 5: 3}
    assert verdict.boundary.rated == 5


def test_a_lucky_locator_is_corrected_downwards() -> None:
    """The locator's results never count: C fails, so C is the fail side and C-1 is confirmed."""
    population = Population(
        lambda p: "pass" if p.concurrency <= (9 if p.role == "locator" else 7) else "fail"
    )
    verdict = go(population)
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.fail_level) == (
        "confirmed",
        7,
        8,
    )


def test_an_unlucky_locator_is_corrected_upwards() -> None:
    """C+1 passes: go up until a fail stands."""
    population = Population(
        lambda p: "pass" if p.concurrency <= (5 if p.role == "locator" else 7) else "fail"
    )
    verdict = go(population)
    assert (verdict.boundary.rated, verdict.boundary.fail_level) == (7, 8)
    assert levels_of(population, "confirmation") == [5, 6, 5, 6, 5, 6, 7, 7, 7, 8, 8, 8]


def test_a_pass_above_a_fail_is_not_rated() -> None:
    """Rated is the highest passing level below every failing one."""

    def answer(plan: TrialPlan) -> Answer:
        if plan.role == "confirmation":
            return "fail" if plan.concurrency == 7 else "pass"
        return "pass" if plan.concurrency <= 7 else "fail"

    verdict = go(Population(answer))
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.fail_level) == (
        "confirmed",
        6,
        7,
    )


def test_trials_used_up_is_a_budget() -> None:
    """The budget counts all trials of the shape, and what passes below is a lower bound: exit 3."""
    population = Population(up_to(7))
    verdict = go(population, max_trials=8)
    assert (verdict.boundary.status, verdict.boundary.exit_code) == ("budget", 3)
    assert len(population.ran) == 8 and verdict.boundary.rated is None


def test_time_used_up_is_a_budget() -> None:
    """Quiet intervals and trials count against the time budget."""
    verdict = go(Population(up_to(7)), max_s=30.0)
    assert verdict.boundary.status == "budget"
    assert verdict.spent_s >= 30.0


def test_an_invalid_trial_is_replaced_with_new_prompts() -> None:
    """Two replacements a level are allowed, each as the next attempt; both are kept."""

    def answer(plan: TrialPlan) -> Answer:
        if plan.role == "confirmation" and plan.concurrency == 7 and plan.attempt < 2 and "t1" in plan.name:
            return "invalid"
        return "pass" if plan.concurrency <= 7 else "fail"

    population = Population(answer)
    verdict = go(population)
    assert verdict.boundary.rated == 7
    keys = [key for key, _ in verdict.trials]
    assert "1000-11.confirm.c7.t1.retry2" in keys and "1000-11.confirm.c7.t1" in keys
    assert next(level for level in verdict.levels if level.level == 7).trials.count("invalid") == 2


def test_invalid_a_third_time_ends_the_study() -> None:
    """Replaced twice and invalid again, over all trials of the level: invalid, exit 4, no number."""

    def answer(plan: TrialPlan) -> Answer:
        if plan.role == "confirmation" and plan.concurrency == 7 and plan.attempt == 0:
            return "invalid"
        return "pass" if plan.concurrency <= 7 else "fail"

    verdict = go(Population(answer))
    assert (verdict.boundary.status, verdict.boundary.rated, verdict.boundary.exit_code) == (
        "invalid",
        None,
        4,
    )


@pytest.mark.parametrize("role", ["baseline", "locator"])
def test_invalid_before_the_confirmations_ends_the_study_too(role: str) -> None:
    """The baseline and the locator replace twice as well, and then end the study."""
    population = Population(lambda plan: "invalid" if plan.role == role else "pass")
    verdict = go(population)
    assert verdict.boundary.status is Status.invalid
    assert [plan.attempt for plan in population.of_role(role)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (KeyboardInterrupt(), "interrupted", 130),
        (Interrupted("stopped"), "interrupted", 130),
        (ServerError("the server is gone"), "interrupted", 5),
        (ClientError("the disk is full"), "invalid", 4),
    ],
)
@pytest.mark.parametrize("at", [0, 3, 8])
def test_faults_end_with_their_own_status(fault: BaseException, status: str, code: int, at: int) -> None:
    """A person, a lost server and a broken client end the study at any trial, and nothing is rated."""
    count = iter(range(99))
    population = Population(lambda p: fault if next(count) == at else up_to(7)(p))
    verdict = go(population)
    assert (verdict.boundary.status, verdict.boundary.exit_code) == (status, code)
    assert verdict.boundary.rated is None
    assert len(verdict.trials) == at


def test_an_interrupted_result_ends_the_study() -> None:
    """A trial that was drained early and sealed says so, and no further trial begins."""
    ran: list[TrialPlan] = []

    def execute(plan: TrialPlan) -> TrialResult:
        ran.append(plan)
        return result_of(plan, "inconclusive", interrupted=len(ran) == 3)

    verdict = run(capacity(contract(), SHAPE), execute)
    assert verdict.boundary.status is Status.interrupted and len(ran) == 3


def test_a_server_that_changed_between_trials_is_invalid() -> None:
    """Identity is held against the study's first trial, not only within each trial."""

    def execute(plan: TrialPlan) -> TrialResult:
        start = 1.0 if plan.role != "confirmation" else 2.0
        return result_of(plan, up_to(3)(plan), before=identity(engine="vllm", process_start_time_s=start))

    verdict = run(capacity(contract(), SHAPE), execute)
    assert verdict.boundary.exit_code == 4
    assert "process_start_time_s changed" in verdict.reason


def test_a_baseline_outside_the_expectation_stops_the_study() -> None:
    """The wrong thing is being measured: no load is sent beyond the baseline."""
    population = Population(up_to(7))
    wrong = capacity(contract(), SHAPE, expectation=Expectation(ttft_ns=5e9))
    verdict = run(wrong, population)
    assert verdict.boundary.status is Status.invalid and len(population.ran) == 1
    right = capacity(contract(), SHAPE, expectation=Expectation(ttft_ns=1.05e8, decode_per_s=101.0))
    assert run(right, Population(up_to(7))).boundary.rated == 7


def test_a_good_first_guess_skips_the_doubling() -> None:
    """A guess next to the boundary costs two probes; a bad one still finds it."""
    near, far = Population(up_to(11)), Population(up_to(40))
    assert go(near, first_guess=11).boundary.rated == 11
    assert levels_of(near, "locator") == [11, 12]
    assert go(far, first_guess=4).boundary.rated == 40


def test_a_tolerance_settles_a_noisy_level_only_after_the_extra_confirmations() -> None:
    """With a stated tolerance one disagreeing trial of five is forgiven, on either side."""

    def answer(plan: TrialPlan) -> Answer:
        if plan.role == "confirmation" and plan.concurrency == 7 and plan.name.endswith("t2"):
            return "fail"
        return "pass" if plan.concurrency <= 7 else "fail"

    verdict = go(Population(answer), extra_confirmations=2, tolerance=1)
    assert (verdict.boundary.status, verdict.boundary.rated) == ("confirmed", 7)
    assert [level.valid for level in verdict.levels] == [5, 3]
    assert go(Population(answer), extra_confirmations=2).boundary.status is Status.noisy


def test_outputs_must_differ_only_after_a_unique_baseline() -> None:
    """A baseline whose answers repeat (a greedy toy model) forgives repeats later."""

    repeating: list[TrialPlan] = []

    def execute(plan: TrialPlan) -> TrialResult:
        repeating.append(plan)
        result = result_of(plan, up_to(3)(plan))
        correctness = structs.replace(result.measurement.correctness, unique_outputs=1)
        return structs.replace(
            result, measurement=structs.replace(result.measurement, correctness=correctness)
        )

    unique = Population(up_to(3))
    go(unique)
    run(capacity(contract(), SHAPE), execute)
    assert all(plan.outputs_must_differ for plan in unique.ran[1:])
    assert not any(plan.outputs_must_differ for plan in repeating)


@pytest.mark.parametrize(
    ("loops", "must_not"),
    [(LoopCount(10, 0, 0), True), (LoopCount(10, 1, 0), False), (LoopCount(0, 0, 0), False), (None, False)],
)
def test_outputs_must_not_loop_only_after_a_baseline_without_loops(
    loops: LoopCount | None, must_not: bool
) -> None:
    """A baseline that loops, or whose answers are too short to tell, forgives loops later."""
    ran: list[TrialPlan] = []

    def execute(plan: TrialPlan) -> TrialResult:
        ran.append(plan)
        result = result_of(plan, up_to(3)(plan))
        correctness = structs.replace(result.measurement.correctness, loops=loops)
        return structs.replace(
            result, measurement=structs.replace(result.measurement, correctness=correctness)
        )

    run(capacity(contract(), SHAPE), execute)
    assert not ran[0].outputs_must_not_loop
    assert {plan.outputs_must_not_loop for plan in ran[1:]} == {must_not}


def test_a_staggered_start_is_spaced_by_the_baseline() -> None:
    """Slot i starts at i x baseline E2E / C."""
    population = Population(up_to(3))
    go(population, start="staggered")
    plan = population.of_role("confirmation")[0]
    assert plan.stagger_ns == round(200_000_000 / plan.concurrency)


def test_impossible_contracts_are_the_callers_fault() -> None:
    """No SLO, or no level between --min and --max, is refused before any trial."""
    with pytest.raises(CallerError):
        go(Population(up_to(7)), min_concurrency=9, max_concurrency=8)
    bare = structs.replace(contract(), slos=())
    with pytest.raises(CallerError):
        run(capacity(bare, SHAPE), Population(up_to(7)))
