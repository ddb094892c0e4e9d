"""Held streams in the load's core: each starts again with its own prompt until the cut, and an arrival comes once."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.client.order import Progress
from nameplate.client.process import Command, Steer, carry
from nameplate.client.tests.orders import (
    HEAD,
    UNAVAILABLE,
    Reply,
    Script,
    chunk,
    event,
    order_of,
    streamed,
)
from nameplate.client.tests.servers import keep_alive, serving
from nameplate.contract.deadlines import SECOND_NS
from nameplate.contract.plan import Arrival, Hold, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.evidence.merge import merge_workers
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.schedule.stage import Requests
from nameplate.wire.outcome import Ending

MS = 1_000_000
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":4,"stream":true}'


def hold_plan(streams: int, *, arrival: bool = False, warm: bool = False) -> TrialPlan:
    """Plan held streams of which only the load matters."""
    beside = Arrival(Shape(99, 2), SECOND_NS, SECOND_NS, SECOND_NS) if arrival else None
    hold = Hold(
        window_ns=SECOND_NS, stable_ns=SECOND_NS, ready_ns=SECOND_NS, warm_streams=warm, arrival=beside
    )
    warmup = streams if warm else 0
    return TrialPlan("t", "decode", Shape(8, 4), streams, streams, warmup, hold=hold)


def script(plan: TrialPlan, reply: object, *, worker: int = 0, workers: int = 1) -> Script:
    """Script one worker of an order."""
    order = structs.replace(order_of(plan), worker=worker, workers=workers)
    return Script(order, reply)  # type: ignore[arg-type]


def cut(run: Script, at_ns: int) -> list[RequestRow]:
    """Run for so long, cancel, and return the rows."""
    pass_time(run, at_ns)
    run.load.cancel(run.now_ns)
    return run.run()


def pass_time(run: Script, length_ns: int) -> None:
    """Run for so long, to that very moment."""
    end = run.now_ns + length_ns

    def over() -> bool:
        due = run.load.agenda.next_ns()
        idle = not run.load.unparsed and (due is None or due > end) and not run.load.stage_over
        return idle and (not run._events or run._events[0][0] > end)

    run.run(until=over)
    run.now_ns = end


@settings(max_examples=30, deadline=None)
@given(
    streams=st.integers(1, 9),
    workers=st.integers(1, 11),
    arrival=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_streams_keep_their_prompts_over_any_workers(
    streams: int, workers: int, arrival: bool, seed: int
) -> None:
    """Whatever the workers and times of answers: indices never collide, a stream's requests follow one another in
    one slot with its own prompt, as many are in flight as there are streams, and the arrival comes once."""
    plan = hold_plan(streams, arrival=arrival)
    requests, rows = Requests(plan), []
    for worker in range(workers):
        source = random.Random(f"{seed}.{worker}")
        run = script(
            plan,
            lambda _, source=source: streamed(source.choice([MS, 5 * MS, 40 * MS]), source.choice([0, MS])),
            worker=worker,
            workers=workers,
        )
        pass_time(run, 60 * MS)
        own = len(range(worker, streams, workers))
        for _ in range(3):
            run.load.agenda.release(run.now_ns)
        rows += cut(run, 60 * MS)
        assert run.in_flight_at_most == own + (arrival and worker == 0)
        assert run.load.finished and not run.load.flights
    assert len({row.index for row in rows}) == len(rows)
    by_slot: defaultdict[int, list[RequestRow]] = defaultdict(list)
    for row in rows:
        by_slot[-1 if row.slot is None else row.slot].append(row)
        assert row.phase == requests.phase(row.index)
        assert row.prompt_sha256 == f"p{requests.prompt(row.index)}"
    assert sorted(by_slot) == list(range(streams + arrival))
    assert [row.index for row in rows if row.phase == "arrival"] == [streams] * arrival
    for slot in range(streams):
        own_rows = sorted(by_slot[slot], key=lambda row: row.index)
        assert [row.phase for row in own_rows] == ["opening"] + ["steady"] * (len(own_rows) - 1)
        for before, after in itertools.pairwise(own_rows):
            assert before.end_ns == after.scheduled_ns and before.outcome == "ok"


def test_a_stream_starts_again_when_its_request_ends() -> None:
    """The next request of a stream is due at the moment at which its last one ended, with the same prompt."""
    run = script(hold_plan(2), lambda index: streamed(10 * MS * (1 + index % 2), 0))
    rows = sorted(cut(run, 35 * MS), key=lambda row: row.index)
    assert [(row.index, row.slot, row.prompt_sha256) for row in rows] == [
        (0, 0, "p0"),
        (1, 1, "p1"),
        (2, 0, "p0"),
        (3, 1, "p1"),
        (4, 0, "p0"),
        (6, 0, "p0"),
    ]
    assert [row.outcome for row in rows] == ["ok", "ok", "ok", "cancelled", "ok", "cancelled"]


def test_nothing_starts_after_the_cut() -> None:
    """Once cancelled, no stream starts again, no arrival is released, and every request has its row."""
    run = script(hold_plan(3, arrival=True), lambda _: streamed(10 * MS, 100 * MS))
    rows = cut(run, 55 * MS)
    started = len(run.starts)
    run.load.agenda.release(run.now_ns)
    assert run.load.pop_due(2**62) is None and run.load.agenda.next_ns() is None
    assert len(rows) == started == 3 and {row.outcome for row in rows} == {"cancelled"}
    assert run.load.cancelled and run.load.finished
    assert all(row.output_events == 1 for row in rows)


def test_stop_lets_streams_end_and_restarts_none() -> None:
    """After `stop` each stream's request goes on to its end, and is its last."""
    run = script(hold_plan(3), lambda _: streamed(10 * MS, MS))
    run.run(until=lambda: len(run.starts) >= 5)
    run.load.stop(run.now_ns)
    rows = run.run()
    assert len(rows) == len(run.starts) and {row.outcome for row in rows} == {"ok"}


@pytest.mark.parametrize(
    "failing",
    [
        [(0, Ending.connect_failed)],
        [(0, Ending.reset)],
        [(0, UNAVAILABLE)],
        [(0, HEAD + chunk(event("a"))), (0, Ending.eof)],
        [(0, b"SSH-2.0-OpenSSH\r\n")],
    ],
)
def test_a_stream_whose_request_fails_does_not_start_again(failing: Reply) -> None:
    """A server that refuses at once is not asked again and again; the other streams go on."""
    run = script(hold_plan(2), lambda index: failing if index == 1 else streamed(10 * MS, MS))
    rows = cut(run, 60 * MS)
    assert [row.index for row in rows if row.slot == 1] == [1]
    assert sum(row.slot == 0 for row in rows) > 2


def test_a_load_of_which_every_stream_failed_ends() -> None:
    """Where all streams were refused nothing is left to await, and the load ends by itself."""
    run = script(hold_plan(4), lambda _: [(0, UNAVAILABLE)])
    rows = run.run()
    assert len(rows) == 4 and {row.outcome for row in rows} == {"http_error"} and run.load.finished


def test_an_arrival_waits_for_its_release_and_comes_once() -> None:
    """Before the release there is no arrival; with several at once or later there is one, and it is not repeated when
    it ends."""
    run = script(hold_plan(2, arrival=True), lambda index: streamed(MS if index == 2 else 30 * MS, MS))
    pass_time(run, 40 * MS)
    assert all(index != 2 for _, index in run.starts)
    run.load.agenda.release(run.now_ns)
    run.load.agenda.release(run.now_ns)
    released = run.now_ns
    pass_time(run, 40 * MS)
    run.load.agenda.release(run.now_ns)
    rows = cut(run, 80 * MS)
    (arrival,) = [row for row in rows if row.phase == "arrival"]
    assert (arrival.index, arrival.slot, arrival.prompt_sha256) == (2, 2, "p2")
    assert arrival.scheduled_ns == released and arrival.outcome == "ok"


def test_a_release_before_the_streams_began_is_none() -> None:
    """A release before the stage, or during the warm-up, does nothing, and does not use the arrival up."""
    run = script(hold_plan(2, arrival=True, warm=True), lambda _: streamed(10 * MS, MS))
    run.load.agenda.release(run.now_ns)
    assert run.load.agenda.next_ns() is None
    run.run(until=lambda: len(run.starts) == 1)
    run.load.agenda.release(run.now_ns)
    run.run(until=lambda: len(run.starts) >= 6)
    run.load.agenda.release(run.now_ns)
    rows = cut(run, 50 * MS)
    assert [row.index for row in rows if row.phase == "arrival"] == [4]
    assert [row.prompt_sha256 for row in rows if row.phase == "warmup"] == ["p0", "p1"]


@pytest.mark.parametrize(("workers", "streams"), [(1, 4), (3, 4), (5, 4), (9, 4)])
def test_connections_are_opened_for_streams_and_arrival(workers: int, streams: int) -> None:
    """Over all workers a connection is opened for each stream and one for the arrival, on a worker that has a
    stream."""
    needs = []
    for worker in range(workers):
        run = script(
            hold_plan(streams, arrival=True), lambda _: streamed(MS, MS), worker=worker, workers=workers
        )
        needs.append(run.load.agenda.slots_to_open)
    assert sum(needs) == streams + 1 and needs[0] == len(range(0, streams, workers)) + 1


def test_progress_tells_of_restarts_and_of_the_arrival() -> None:
    """Reports carry the first output of every request of streams and arrival, and who waits for one."""
    run = script(hold_plan(1, arrival=True), lambda index: streamed(MS if index == 0 else SECOND_NS, MS))
    pass_time(run, 10 * MS)
    run.load.agenda.release(run.now_ns)
    pass_time(run, MS)
    told = run.load.take_progress(run.now_ns)
    assert [index for index, _ in told.waiting_since] == [2, 1] and told.stage == "measured"


@pytest.mark.live
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_load_processes_obey_release_and_cancel(tmp_path: Path, workers: int) -> None:
    """Over real sockets, with more workers than streams too: the arrival comes after its release, once, and nothing
    after the cut."""
    plan = hold_plan(2, arrival=True)
    told: list[Command] = []
    done = threading.Event()

    def steer(progress: Progress) -> Command | None:
        if len(told) < 2 and progress.stage == "measured" and progress.in_flight:
            told.append("release")
            return "release"
        if any(row.phase == "arrival" for row in progress.rows):
            done.set()
        if done.is_set() and "cancel" not in told:
            told.append("cancel")
            return "cancel"
        return None

    with serving(keep_alive) as server:
        order = order_of(plan, server.url, tmp_path, body=BODY, workers=workers)
        finished = carry(structs.replace(order, raise_scheduling=False), _bounded(steer))
    assert finished.failure is None and finished.cancelled
    merge_workers(tmp_path, workers)
    rows = TrialReader(tmp_path).rows()
    assert [row.index for row in rows if row.phase == "arrival"] == [2]
    assert len({row.index for row in rows}) == len(rows)
    assert {row.prompt_sha256 for row in rows if row.slot == 1} == {"p1"}


def _bounded(steer: Steer, reports: int = 200) -> Steer:
    """Cut a load that does not end within so many reports."""
    count = 0

    def bounded(progress: Progress) -> Command | None:
        nonlocal count
        count += 1
        return "cancel" if count > reports else steer(progress)

    return bounded
