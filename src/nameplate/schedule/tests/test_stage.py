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
        indices = [i for s in stages for i in range(s.first_index, s.first_index + s.schedule.requests)]
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
