"""Sampling cold prefills: enough is when the spread is small or a bound is reached, and a failure ends it."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.client.order import Progress
from nameplate.client.process import Command
from nameplate.contract.matrix import PrefillRule
from nameplate.contract.plan import TrialPlan
from nameplate.measure.tests.trials import SHAPE, S, ok_row
from nameplate.trial.interruption import Interruption
from nameplate.trial.prefilling import PrefillSteering

RULE = PrefillRule(least=3, most=5, spread=0.03, budget_ns=60 * S)


class Course:
    """Drive a steering by one report a sample."""

    def __init__(self, rule: PrefillRule = RULE) -> None:
        self.interruption = Interruption()
        plan = TrialPlan("t", "prefill", SHAPE, 1, rule.most + 1, 0, until=rule)
        self.steering = PrefillSteering(plan, self.interruption, lambda _progress, _ttfts: None)
        self.count = 0

    def report(self, t_ns: int, *ttfts_ns: int, **change: object) -> Command | None:
        """Report the rows of requests with these TTFTs."""
        rows = []
        for ttft_ns in ttfts_ns:
            row = ok_row(self.count, S, phase="opening" if not self.count else "steady", ttft_ns=ttft_ns)
            rows.append(structs.replace(row, **change))
            self.count += 1
        return self.steering(
            Progress(t_ns=t_ns, stage="measured", started=1, ended=0, in_flight=1, rows=tuple(rows))
        )


def test_three_samples_alike_are_enough() -> None:
    """With a spread below 3% the least number ends it; the request that has begun meanwhile may end."""
    course = Course()
    assert course.report(S, S) is None and course.report(2 * S, S) is None
    assert course.report(3 * S, round(1.01 * S)) == "stop"
    assert course.report(4 * S, S) is None


def test_a_wide_spread_goes_on_to_the_bound() -> None:
    """Unlike samples are taken until there are as many as allowed."""
    course = Course()
    commands = [course.report(at * S, S * (1 + at % 2)) for at in range(5)]
    assert commands == [None] * 4 + ["stop"]


def test_the_budget_ends_it_after_one_sample() -> None:
    """Used-up time ends it, but never without any sample."""
    course = Course()
    assert course.report(S) is None and course.report(200 * S) is None
    assert course.report(201 * S, 100 * S) == "cancel"


def test_a_long_request_is_cut_and_a_short_one_may_end() -> None:
    """What has begun is cut where a sample takes longer than two seconds."""
    course = Course()
    assert [course.report(at * S, 3 * S) for at in range(3)] == [None, None, "cancel"]


@pytest.mark.parametrize("outcome", ["http_error", "reset", "timed_out_first_output"])
def test_a_failure_ends_it(outcome: str) -> None:
    """A failed request voids the cell."""
    course = Course()
    assert course.report(S, S) is None
    assert course.report(2 * S, S, outcome=outcome) == "cancel" and course.report(3 * S) is None


def test_prompts_that_came_from_the_cache_have_no_spread() -> None:
    """A server that claims to have computed nothing gives rates of zero, which agree about nothing."""
    course = Course()
    commands = [course.report(at * S, S, cached_tokens=SHAPE.input_tokens) for at in range(5)]
    assert commands == [None] * 4 + ["stop"]


def test_a_person_ends_it() -> None:
    """The first interrupt stops, the second cancels."""
    course = Course()
    with course.interruption.loading():
        course.interruption.interrupt()
        assert course.report(S) == "stop"
        course.interruption.interrupt()
        assert course.report(2 * S) == "cancel"
