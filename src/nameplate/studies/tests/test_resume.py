"""Resuming: decisions are made again from sealed trials, identically."""

from __future__ import annotations

import pytest

from nameplate.contract.errors import CallerError, EvidenceError, Interrupted
from nameplate.contract.plan import TrialPlan
from nameplate.measure.result import TrialResult
from nameplate.measure.tests.trials import SHAPE, contract
from nameplate.studies.capacity import capacity
from nameplate.studies.resume import NotRun, leftover, replay
from nameplate.studies.runner import run
from nameplate.studies.single import single, single_plan
from nameplate.studies.tests.scripted import Answer, Population, result_of
from nameplate.verdict.shape import Decision


def noisy(plan: TrialPlan) -> Answer:
    """A population with noise at 7 and an invalid trial, so that every kind of decision occurs."""
    if plan.role == "confirmation" and plan.concurrency == 7 and plan.name.endswith("t2"):
        return "invalid" if plan.attempt == 0 else "fail"
    return "pass" if plan.concurrency <= 7 else "fail"


def complete() -> tuple[list[TrialResult], list[Decision], object]:
    decisions: list[Decision] = []
    results: list[TrialResult] = []
    verdict = run(
        capacity(contract(), SHAPE, decisions=decisions),
        Population(noisy),
        on_trial=lambda _plan, result, _replayed: results.append(result),
    )
    return results, decisions, verdict


def test_a_study_resumed_at_any_prefix_ends_the_same() -> None:
    """Whatever part was sealed, the rest is run and verdict and decisions are identical."""
    results, decisions, verdict = complete()
    for cut in range(len(results) + 1):
        again: list[Decision] = []
        population = Population(noisy)
        left = leftover(results[:cut], [])
        resumed = run(
            capacity(contract(), SHAPE, decisions=again), population, sealed=left.sealed, spoiled=left.spoiled
        )
        assert resumed == verdict and again == decisions
        assert len(population.ran) == len(results) - cut


def test_a_spoiled_trial_runs_again_with_new_prompts() -> None:
    """An unsealed directory's prompts were used: its trial runs as the next attempt, and again after that."""
    results, _, _ = complete()
    cut = next(i for i, result in enumerate(results) if result.plan.role == "confirmation")
    left = leftover(results[:cut], [results[cut].plan.key])
    population = Population(noisy)
    run(capacity(contract(), SHAPE), population, sealed=left.sealed, spoiled=left.spoiled)
    assert population.ran[0].key == f"{results[cut].plan.name}.retry1"


def test_an_interrupted_trial_does_not_count_when_resumed() -> None:
    """A sealed trial that was cut short is spoiled, not sealed."""
    plan = single_plan(contract(), SHAPE, 3)
    left = leftover([result_of(plan, "inconclusive", interrupted=True)], [])
    assert left.sealed == {} and left.spoiled == {plan.key}


def test_two_trials_of_one_name_are_refused() -> None:
    """A study's directory with two results of one key contradicts itself."""
    result = result_of(single_plan(contract(), SHAPE, 3))
    with pytest.raises(EvidenceError):
        leftover([result, result], [])


def test_a_replay_names_the_first_missing_trial() -> None:
    """Replaying a whole study needs no executor; a missing trial is named."""
    results, _, verdict = complete()
    assert replay(capacity(contract(), SHAPE), leftover(results, [])) == verdict
    with pytest.raises(NotRun) as caught:
        replay(capacity(contract(), SHAPE), leftover(results[:3], []))
    assert caught.value.plan.key == results[3].plan.key


def test_a_single_trial_is_run_once() -> None:
    """`single` returns its result whatever it shows."""
    population = Population(lambda _: "invalid")
    plan = single_plan(contract(), SHAPE, 3, requests=5)
    assert run(single(plan), population).verdict.status == "invalid"
    assert population.ran == [plan]


def test_the_runner_raises_what_no_study_handles() -> None:
    """The caller's mistakes, and faults that a study has no status for, reach the caller."""
    plan = single_plan(contract(), SHAPE, 3)
    with pytest.raises(CallerError):
        run(capacity(contract(), SHAPE), Population(lambda _: CallerError("no")))
    with pytest.raises(Interrupted):
        run(single(plan), Population(lambda _: Interrupted("stop")))
