"""The capacity protocol over several shapes, and its invariants over any population."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.contract import Contract
from nameplate.contract.errors import Interrupted
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.measure.tests.trials import SHAPE, contract
from nameplate.studies.capacity import capacity, study
from nameplate.studies.runner import run
from nameplate.studies.tests.scripted import Answer, Population, up_to
from nameplate.verdict.boundary import Status, combined_exit_code
from nameplate.verdict.shape import Decision, ShapeVerdict


def go(population: Population, **rules: object) -> ShapeVerdict:
    return run(capacity(contract(rules=Rules(**rules)), SHAPE), population)  # type: ignore[arg-type]


def two_shapes() -> Contract:
    return contract(shapes=(Shape(100, 10), Shape(1000, 10)))


def test_several_shapes_each_get_a_verdict() -> None:
    """One boundary a shape, one list of decisions, and the first exit code of the order that occurs."""
    decisions: list[Decision] = []
    population = Population(lambda p: up_to(5 if p.shape.input_tokens == 100 else 0)(p))
    verdicts = run(study(two_shapes(), decisions=decisions), population)
    assert [verdict.boundary.rated for verdict in verdicts] == [5, 0]
    assert combined_exit_code(verdict.boundary.exit_code for verdict in verdicts) == 1
    assert {decision.shape for decision in decisions} == {Shape(100, 10), Shape(1000, 10)}
    assert max(Counter(plan.key for plan in population.ran).values()) == 1


def test_an_interruption_leaves_a_row_for_every_shape() -> None:
    """Shapes that were not begun say so."""
    population = Population(lambda _: Interrupted("stop"))
    verdicts = run(study(two_shapes()), population)
    assert [verdict.boundary.status for verdict in verdicts] == ["interrupted", "interrupted"]
    assert (
        "not begun" in verdicts[1].reason
        and combined_exit_code(verdict.boundary.exit_code for verdict in verdicts) == 130
    )


def test_every_trial_is_preceded_by_a_decision_with_its_reason() -> None:
    """study.json can hold each decision: every trial key is named by one, with a reason."""
    decisions: list[Decision] = []
    population = Population(up_to(7))
    run(capacity(contract(), SHAPE, decisions=decisions), population)
    asked = [d.trial for d in decisions if d.what.startswith("run ")]
    assert asked == [plan.key for plan in population.ran]
    assert all(decision.reason for decision in decisions)


@settings(max_examples=200, deadline=None)
@given(
    limit=st.integers(0, 200),
    lowest=st.integers(1, 12),
    highest=st.integers(1, 160),
    guess=st.none() | st.integers(1, 200),
)
def test_any_monotone_curve_is_rated_at_its_true_boundary(
    limit: int, lowest: int, highest: int, guess: int | None
) -> None:
    """For every pass/fail curve the rated number is the boundary, in a bounded number of trials."""
    highest = max(lowest, highest)
    population = Population(up_to(limit))
    verdict = go(
        population, min_concurrency=lowest, max_concurrency=highest, first_guess=guess, max_trials=10_000
    )
    found = verdict.boundary
    if limit >= highest:
        assert (found.status, found.rated) == ("open_above", highest)
    elif limit >= lowest or lowest == 1:
        assert (found.status, found.rated, found.fail_level) == ("confirmed", limit, limit + 1)
    else:
        assert (found.status, found.rated) == ("open_below", None)
    assert all(level.valid == 3 for level in verdict.levels)
    assert len(population.ran) <= 1 + 2 * 8 + 2 + 6


@settings(max_examples=200, deadline=None)
@given(data=st.data(), limit=st.integers(0, 12), width=st.integers(0, 3))
def test_noise_never_rounds_upwards(data: st.DataObject, limit: int, width: int) -> None:
    """Whatever the trials of a noisy zone answer, no level is rated that did not pass in all its trials."""
    answers: dict[str, bool] = {}

    def answer(plan: TrialPlan) -> Answer:
        if limit < plan.concurrency <= limit + width:
            passed = answers.setdefault(plan.key, data.draw(st.booleans()))
            return "pass" if passed else "fail"
        return "pass" if plan.concurrency <= limit else "fail"

    verdict = go(Population(answer), max_trials=10_000, max_concurrency=64)
    rated = verdict.boundary.rated
    assert rated is not None
    for level in verdict.levels:
        assert level.valid == 3
        if level.level <= rated:
            assert level.passes == 3
        if level.level == rated + 1:
            assert level.passes < 3
    if verdict.boundary.status is Status.confirmed:
        assert verdict.boundary.fail_level == rated + 1
