"""Held streams: each request's index, prompt, phase and lengths follow from the plan alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.contract.plan import Arrival, Hold, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.schedule.stage import Requests, prompts_needed, stages_of
from nameplate.schedule.streams import Streams

S = 10**9
LONG = Shape(5000, 16)
slots = st.integers(1, 40)
rounds = st.integers(1, 30)


def plan(streams: int, *, arrival: bool = False, warm: bool = False) -> TrialPlan:
    """Plan held streams, each warmed before where `warm` is set."""
    return TrialPlan(
        "t",
        "decode",
        Shape(100, 10),
        streams,
        streams,
        streams if warm else 0,
        hold=Hold(
            window_ns=30 * S,
            stable_ns=3 * S,
            ready_ns=60 * S,
            warm_streams=warm,
            arrival=Arrival(LONG, S, S, S) if arrival else None,
        ),
    )


@given(slots=slots, rounds=rounds, arrival=st.booleans())
def test_indices_of_streams_never_collide(slots: int, rounds: int, arrival: bool) -> None:
    """No two requests of any streams, nor the arrival, share an offset, however often each has started again."""
    streams = Streams(slots, arrival)
    offsets = [streams.offset(stream, k) for stream in range(slots) for k in range(rounds)]
    if arrival:
        offsets.append(slots)
    assert len(set(offsets)) == len(offsets)
    assert all(streams.has(offset) for offset in offsets)
    if not arrival:
        assert sorted(offsets) == list(range(slots * rounds))


@given(slots=slots, workers=st.integers(1, 50), rounds=rounds, arrival=st.booleans())
def test_workers_need_no_counter(slots: int, workers: int, rounds: int, arrival: bool) -> None:
    """Streams dealt to any number of workers give the very indices that one worker gives."""
    streams = Streams(slots, arrival)
    dealt = [
        streams.offset(stream, k)
        for worker in range(workers)
        for stream in range(worker, slots, workers)
        for k in range(rounds)
    ]
    assert sorted(dealt) == sorted(
        streams.offset(stream, k) for k in range(rounds) for stream in range(slots)
    )


@given(slots=slots, k=st.integers(0, 1000), arrival=st.booleans())
def test_every_request_of_a_stream_has_its_prompt(slots: int, k: int, arrival: bool) -> None:
    """The k-th request of a stream sends the prompt of its first, opens at 0 only if it is the first, and is no
    arrival."""
    streams = Streams(slots, arrival)
    for stream in range(slots):
        offset = streams.offset(stream, k)
        assert streams.prompt(offset) == stream
        assert streams.part(offset) == ("opening" if k == 0 else "steady")
        assert streams.due_ns(offset) == (0 if k == 0 else None)


@given(slots=slots, offset=st.integers(-100, 5000))
def test_the_arrival_is_one(slots: int, offset: int) -> None:
    """Of all offsets one is an arrival; later ones of its kind do not exist, nor does anything below 0."""
    streams = Streams(slots, arrival=True)
    if streams.has(offset) and streams.part(offset) == "arrival":
        assert offset == slots and streams.due_ns(offset) is None
    assert not streams.has(offset) or offset >= 0
    assert not streams.has(slots + (slots + 1) * abs(offset)) or offset == 0


@given(slots=slots, arrival=st.booleans(), warm=st.booleans(), index=st.integers(0, 500))
def test_a_request_is_of_one_stage(slots: int, arrival: bool, warm: bool, index: int) -> None:
    """Every index is of one stage at most, its prompt is in the store, and what has no stage is told by KeyError."""
    given_plan = plan(slots, arrival=arrival, warm=warm)
    requests = Requests(given_plan)
    owners = [stage for stage in stages_of(given_plan) if stage.has(index)]
    assert len(owners) <= 1
    if not owners:
        with pytest.raises(KeyError):
            requests.phase(index)
        assert not requests.measured(index) and not requests.repeats(index)
        return
    assert 0 <= requests.prompt(index) < prompts_needed(given_plan)
    assert requests.measured(index) == (requests.phase(index) in ("opening", "steady"))


@given(slots=slots, arrival=st.booleans(), k=st.integers(0, 50))
def test_warming_sends_each_streams_own_prompt_for_one_token(slots: int, arrival: bool, k: int) -> None:
    """The warm-up request i warms the opening request of stream i; it and every restart repeat, the opening does
    not, and only the warming asks for one token."""
    given_plan = plan(slots, arrival=arrival, warm=True)
    requests = Requests(given_plan)
    for stream in range(slots):
        opening = slots + stream
        assert requests.phase(stream) == "warmup" and requests.warms(stream) == opening
        assert requests.phase(opening) == "opening" and requests.warms(opening) is None
        assert requests.repeats(stream) and not requests.repeats(opening)
        assert requests.shape(stream) == Shape(100, 1) and requests.shape(opening) == Shape(100, 10)
        again = slots + Streams(slots, arrival).offset(stream, k + 1)
        assert requests.phase(again) == "steady" and requests.repeats(again)
        assert requests.prompt(again) == opening and requests.shape(again) == Shape(100, 10)


def test_without_warming_nothing_warms() -> None:
    """A plan that warms nothing has no request that does."""
    requests = Requests(plan(3))
    assert [requests.warms(index) for index in range(6)] == [None] * 6
    assert [requests.repeats(index) for index in range(6)] == [False] * 3 + [True] * 3


@given(slots=slots)
def test_the_arrival_has_its_own_shape_and_prompt(slots: int) -> None:
    """The arrival is no measured request, has a prompt that no stream has, and asks for its own lengths."""
    requests = Requests(plan(slots, arrival=True))
    assert requests.phase(slots) == "arrival" and requests.shape(slots) == LONG
    assert requests.prompt(slots) == slots and not requests.repeats(slots) and not requests.measured(slots)
    assert prompts_needed(plan(slots, arrival=True)) == slots + 1
    with pytest.raises(KeyError):
        requests.phase(slots + slots + 1)


def test_counted_loads_repeat_no_prompt() -> None:
    """Without a hold every request has a prompt of its own."""
    requests = Requests(TrialPlan("t", "burst", Shape(100, 10), 4, 20, 2))
    assert not any(requests.repeats(index) for index in range(22))
    assert requests.shape(0) == requests.shape(21) == Shape(100, 10)
