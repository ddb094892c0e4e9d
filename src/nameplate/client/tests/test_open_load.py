"""An open loop in invented time: arrivals that wait for nothing, and a limit that ends the load."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.client.agenda import AHEAD_NS, LEAST_AHEAD, MOST_AHEAD
from nameplate.client.counter import Counter, LocalCounter, SharedCounter
from nameplate.client.order import LoadOrder
from nameplate.client.tests.orders import MS, UNAVAILABLE, Reply, Script, order_of, plan_of, streamed
from nameplate.contract.arrivals import ArrivalKind, ArrivalPlan
from nameplate.contract.soak import Soak
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.stage import process_of
from nameplate.wire.outcome import Ending

KINDS: list[ArrivalKind] = ["constant", "poisson", "gamma"]
NEVER: Reply = []


def arrivals_of(
    rate: float = 100.0, kind: ArrivalKind = "poisson", seed: int = 42, burstiness: float = 0.5
) -> ArrivalPlan:
    return ArrivalPlan(kind=kind, rate=rate, seed=seed, burstiness=burstiness)


def open_order(
    arrivals: ArrivalPlan,
    requests: int,
    warmup: int = 0,
    *,
    limit: int | None = None,
    worker: int = 0,
    workers: int = 1,
) -> LoadOrder:
    """Order an open loop in invented time."""
    plan = structs.replace(plan_of(1, requests, warmup), arrivals=arrivals)
    order = order_of(plan, workers=workers)
    return structs.replace(order, outstanding_limit=limit, worker=worker)


def planned(arrivals: ArrivalPlan, requests: int) -> list[int]:
    """Return the due times of the plan, from the stage's begin."""
    loop = OpenLoop(process=process_of(arrivals), seed=arrivals.seed, requests=requests)
    return [due for _offset, due in loop.arrivals()]


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    rate=st.floats(0.01, 5000.0),
    requests=st.integers(1, 60),
    warmup=st.integers(0, 3),
    seed=st.integers(0, 2**32),
    answer_ms=st.sampled_from([0, 1, 900, 10**6]),
)
def test_arrivals_start_when_due_whatever_is_outstanding(
    kind: ArrivalKind, rate: float, requests: int, warmup: int, seed: int, answer_ms: int
) -> None:
    """Each request of the plan is scheduled and sent at its due time to the nanosecond, after the warm-up, whether
    answers come at once or a thousand seconds later."""
    arrivals = arrivals_of(rate, kind, seed)
    script = Script(open_order(arrivals, requests, warmup), lambda _: streamed(answer_ms * MS, MS))
    rows = sorted(script.run(), key=lambda row: row.index)
    assert [row.index for row in rows] == list(range(warmup + requests))
    warm, measured = rows[:warmup], rows[warmup:]
    assert {row.phase for row in measured} == {"steady"} and {row.slot for row in measured} == {None}
    assert all(row.phase == "warmup" and row.slot == 0 for row in warm)
    due = planned(arrivals, requests)
    began = measured[0].scheduled_ns - due[0]
    assert [row.scheduled_ns - began for row in measured] == due
    assert all(row.sent_ns == row.scheduled_ns for row in measured)
    assert began >= max((row.end_ns or 0 for row in warm), default=0)
    assert script.load.finished and not script.load.overrun and not script.load.cancelled
    assert (script.load.agenda.started, script.load.agenda.ended) == (requests, requests)


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    requests=st.integers(1, 50),
    workers=st.integers(2, 5),
    seed=st.integers(0, 99),
)
def test_workers_send_the_union_of_the_plan(
    kind: ArrivalKind, requests: int, workers: int, seed: int
) -> None:
    """Several workers together send each index of the plan once, each at the plan's own time."""
    arrivals = arrivals_of(kind=kind, seed=seed)
    due = planned(arrivals, requests)
    seen: dict[int, int] = {}
    for worker in range(workers):
        script = Script(open_order(arrivals, requests, worker=worker, workers=workers), lambda _: NEVER)
        script.load.agenda.begin(script.now_ns)
        began = script.load.agenda.began_ns or 0
        while script.load.agenda.next_ns() is not None:
            script.step()
        for at, index in script.starts:
            assert index not in seen
            seen[index] = at - began
    assert [seen[index] for index in range(requests)] == due


@pytest.mark.parametrize("counter", ["local", "shared"])
def test_workers_begin_at_one_moment(tmp_path: Path, counter: str) -> None:
    """However far apart they see that all are ready, their arrivals are counted from the same time."""
    counters: list[Counter] = (
        [LocalCounter()] * 3 if counter == "local" else [SharedCounter(tmp_path / "count") for _ in range(3)]
    )
    begins = []
    for worker, count in enumerate(counters):
        script = Script(
            open_order(arrivals_of(), 30, worker=worker, workers=3), lambda _: NEVER, counter=count
        )
        script.load.agenda.begin(script.now_ns + worker * 700_000)
        begins.append(script.load.agenda.began_ns)
    assert len(set(begins)) == 1 and (begins[0] or 0) > script.now_ns


def test_a_worker_without_a_share_is_over_at_once() -> None:
    """With more workers than requests, the last have nothing to start and nothing to await."""
    script = Script(open_order(arrivals_of(), 1, worker=1, workers=2), lambda _: NEVER)
    assert script.run() == []
    assert script.load.finished and not script.load.overrun


def test_failures_and_late_answers_neither_delay_nor_repeat_an_arrival() -> None:
    """A server that refuses, resets or never answers changes nothing in what is sent."""
    arrivals = arrivals_of(rate=50.0)
    fates: list[Reply] = [[(MS, UNAVAILABLE)], [(MS, Ending.reset)], [(0, Ending.connect_failed)], NEVER]
    script = Script(open_order(arrivals, 40), lambda index: fates[index % 4])
    began = script.now_ns
    script.run(until=lambda: len(script.starts) == 40)
    assert [(at - began, index) for at, index in script.starts] == [
        (due, index) for index, due in enumerate(planned(arrivals, 40))
    ]


@pytest.mark.parametrize("how", ["stop", "cancel"])
def test_nothing_starts_after_a_stop(how: str) -> None:
    """A stop lets what is in flight end, a cancel ends it; neither lets another request begin."""
    script = Script(open_order(arrivals_of(), 50), lambda _: streamed(200 * MS, MS))
    load = script.load
    script.run(until=lambda: len(script.starts) == 10)
    in_flight = len(load.flights)
    assert in_flight > 1
    if how == "stop":
        load.stop(script.now_ns)
        assert len(load.flights) == in_flight and not load.finished
    else:
        assert len(load.cancel(script.now_ns)) == in_flight
    assert load.agenda.next_ns() is None and load.pop_due(2**62) is None
    rows = script.run()
    assert len(script.starts) == len(rows) == 10
    ends = {row.outcome for row in rows if row.end_ns is not None and row.end_ns >= script.now_ns}
    assert load.finished and load.cancelled == (how == "cancel") and not load.overrun
    assert ends == ({"ok"} if how == "stop" else {"cancelled"})


def test_a_stop_before_the_first_arrival_sends_nothing() -> None:
    """A load that is stopped while it waits for its first arrival is over."""
    script = Script(open_order(arrivals_of(rate=0.001), 5), lambda _: NEVER)
    script.load.agenda.begin(script.now_ns)
    assert not script.load.stage_over
    script.load.stop(script.now_ns)
    assert script.load.finished and script.run() == []


@settings(max_examples=30, deadline=None)
@given(limit=st.integers(1, 30), requests=st.integers(1, 60), kind=st.sampled_from(KINDS))
def test_the_outstanding_limit_ends_the_load(limit: int, requests: int, kind: ArrivalKind) -> None:
    """With so many unanswered, the next arrival ends the load with a name; all before it were sent, at their own time,
    and none after it."""
    arrivals = arrivals_of(kind=kind)
    script = Script(open_order(arrivals, requests, limit=limit), lambda _: NEVER)
    began = script.now_ns
    script.run(until=lambda: script.load.overrun or len(script.starts) == requests)
    sent = min(limit, requests)
    assert [at - began for at, _ in script.starts] == planned(arrivals, requests)[:sent]
    assert [index for _, index in script.starts] == list(range(sent))
    assert script.load.overrun == script.load.stopping == (requests > limit)
    assert script.in_flight_at_most == sent
    if script.load.overrun:
        assert script.load.pop_due(2**62) is None
        assert len(script.load.cancel(script.now_ns)) == limit
        assert [row.outcome for row in script.collect()] == ["cancelled"] * limit
        assert script.load.finished and script.load.cancelled


@pytest.mark.parametrize("soaks", [False, True])
def test_at_its_limit_a_soak_drains_and_any_other_load_breaks_off(soaks: bool) -> None:
    """Reports say that it overran; only of a soak does what is in flight go on."""
    order = open_order(arrivals_of(), 9, limit=3)
    soak = Soak(duration_ns=10**12) if soaks else None
    script = Script(structs.replace(order, soak=soak), lambda _: NEVER)
    script.run(until=lambda: script.load.overrun)
    assert script.load.broke_off is not soaks
    assert script.load.take_progress(script.now_ns).overrun and len(script.load.flights) == 3


def test_just_below_the_limit_nothing_ends() -> None:
    """As many unanswered as the limit are allowed: only one more would end the load."""
    # Ten a second for 350 ms each: four at most at once.
    for limit, overruns in ((4, False), (3, True)):
        script = Script(
            open_order(arrivals_of(10.0, "constant"), 30, limit=limit), lambda _: streamed(350 * MS, 0)
        )
        script.run()
        assert script.load.overrun is overruns
        assert script.in_flight_at_most == limit


def test_connections_are_opened_ahead() -> None:
    """Before and within an open loop, connections are wanted for what is in flight and for the second that comes."""
    busy = Script(open_order(arrivals_of(200.0, "constant"), 1000), lambda _: NEVER)
    assert busy.load.agenda.slots_to_open == 200
    busy.load.agenda.begin(busy.now_ns)
    assert busy.load.busy_slots == 200
    busy.run(until=lambda: len(busy.starts) == 30)
    assert busy.load.busy_slots == 230
    shared = Script(open_order(arrivals_of(200.0), 1000, workers=4), lambda _: NEVER)
    assert shared.load.agenda.slots_to_open == 50
    slow = Script(open_order(arrivals_of(0.1), 1000), lambda _: NEVER)
    assert slow.load.agenda.slots_to_open == LEAST_AHEAD
    fast = Script(open_order(arrivals_of(1e5), 10_000), lambda _: NEVER)
    assert fast.load.agenda.slots_to_open == MOST_AHEAD
    assert AHEAD_NS == 10**9


def test_no_more_connections_are_opened_than_may_be_outstanding() -> None:
    """The limit of outstanding requests bounds what is opened ahead, so that descriptors for it suffice."""
    load = Script(open_order(arrivals_of(200.0), 1000, limit=50), lambda _: NEVER)
    assert load.load.agenda.slots_to_open == 50
    load.load.agenda.begin(load.now_ns)
    load.run(until=lambda: len(load.starts) == 30)
    assert load.load.busy_slots == 50
    assert Script(open_order(arrivals_of(), 9, limit=1), lambda _: NEVER).load.agenda.slots_to_open == 1
