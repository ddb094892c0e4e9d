"""A trial's stages and when their requests are due: pure functions of the plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.schedule.closed_loop import ClosedLoop
from nameplate.schedule.stage import prompts_needed, stages_of


def plan(**changes: object) -> TrialPlan:
    values: dict[str, object] = {
        "name": "t", "role": "single", "shape": Shape(100, 10), "concurrency": 4, "requests": 64, "warmup": 8,
    }  # fmt: skip
    return TrialPlan(**{**values, **changes})  # type: ignore[arg-type]


def test_burst_starts_every_slot_at_once() -> None:
    """In a burst the first request of each slot is due at zero and every later one when a slot comes free."""
    loop = ClosedLoop(slots=3, requests=6)
    assert [loop.due_ns(i) for i in range(6)] == [0, 0, 0, None, None, None]


def test_staggered_spreads_first_starts() -> None:
    """A staggered start places slot i at i times the stagger."""
    loop = ClosedLoop(slots=3, requests=6, stagger_ns=5)
    assert [loop.due_ns(i) for i in range(4)] == [0, 5, 10, None]


def test_stages_have_disjoint_indices() -> None:
    """Warm-up, measured and ramp requests never share an index, and the store holds one prompt for each."""
    for start in ("burst", "staggered", "handover"):
        stages = stages_of(plan(start=start))
        indices = [i for s in stages for i in range(s.first_index, s.first_index + s.schedule.prompts)]
        assert len(indices) == len(set(indices)) == prompts_needed(plan(start=start))
        assert sorted(indices) == list(range(len(indices)))


def test_handover_has_no_opening() -> None:
    """After a handover no measured request has a start time of its own."""
    measured = stages_of(plan(start="handover"))[-1]
    assert measured.name == "measured" and measured.schedule.due_ns(0) is None


def test_no_warmup_leaves_one_stage() -> None:
    """A trial without warm-up begins with its measured part."""
    (only,) = stages_of(plan(warmup=0))
    assert only.name == "measured" and only.first_index == 0


plans = st.builds(
    plan,
    concurrency=st.integers(1, 40),
    requests=st.integers(1, 200),
    warmup=st.integers(0, 9),
    start=st.sampled_from(["burst", "staggered", "handover"]),
    stagger_ns=st.integers(0, 10**10),
)


@given(plans)
def test_a_plan_alone_decides_its_stages(given_plan: TrialPlan) -> None:
    """The same plan gives the same stages and due times, in any order of asking."""
    stages, again = stages_of(given_plan), stages_of(given_plan)
    assert stages == again
    for one, other in zip(stages, again, strict=True):
        indices = range(one.schedule.prompts)
        assert [one.schedule.due_ns(i) for i in indices] == [
            other.schedule.due_ns(i) for i in reversed(indices)
        ][::-1]


@given(plans)
def test_exactly_n_are_measured_on_c_slots(given_plan: TrialPlan) -> None:
    """The last stage is the measured one, with the plan's own numbers, after a serial warm-up of its own."""
    *before, measured = stages_of(given_plan)
    assert (measured.name, measured.schedule.prompts, measured.schedule.slots) == (
        "measured",
        given_plan.requests,
        given_plan.concurrency,
    )
    assert [stage.name for stage in before] == ["warmup"] * bool(given_plan.warmup) + ["ramp"] * (
        given_plan.start == "handover"
    )
    if given_plan.warmup:
        assert before[0].schedule == ClosedLoop(1, given_plan.warmup)
    indices = [
        i for s in stages_of(given_plan) for i in range(s.first_index, s.first_index + s.schedule.prompts)
    ]
    assert sorted(indices) == list(range(prompts_needed(given_plan)))


@given(plans)
def test_only_opening_requests_have_a_time_of_their_own(given_plan: TrialPlan) -> None:
    """Slot i opens at i staggers, where the policy staggers; every later request waits for a free slot."""
    schedule = stages_of(given_plan)[-1].schedule
    step = given_plan.stagger_ns if given_plan.start == "staggered" else 0
    for index in range(schedule.prompts):
        opens = index < given_plan.concurrency and given_plan.start != "handover"
        assert schedule.due_ns(index) == (index * step if opens else None)


def test_a_ramp_is_bounded() -> None:
    """A ramp that never restarts every slot runs out of requests, and prompts, instead of running for ever."""
    stages = stages_of(plan(start="handover"))
    assert [stage.schedule.prompts for stage in stages] == [8, 64, 64]
    with pytest.raises(AttributeError):
        stages[0].name = "ramp"  # type: ignore[misc]
