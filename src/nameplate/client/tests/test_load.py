"""The load's core in invented time: what starts, what is awaited, and what each row says."""

from __future__ import annotations

import random
from collections import Counter as Tally

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.client import load as load_module
from nameplate.client.tests.orders import (
    HEAD,
    OUTCOMES,
    UNAVAILABLE,
    Reply,
    Script,
    answer,
    chunk,
    event,
    order_of,
    plan_of,
    streamed,
)
from nameplate.contract.deadlines import SECOND_NS, Deadlines
from nameplate.contract.rules import StartPolicy
from nameplate.evidence import layout, records, timeline
from nameplate.evidence.header import Keeping
from nameplate.evidence.records import Kind
from nameplate.wire.outcome import Ending

MS = 1_000_000
POLICIES: list[StartPolicy] = ["burst", "staggered", "handover"]


@settings(max_examples=40, deadline=None)
@given(
    concurrency=st.integers(1, 7),
    requests=st.integers(1, 40),
    warmup=st.integers(0, 3),
    start=st.sampled_from(POLICIES),
    stagger_ms=st.integers(0, 400),
    seed=st.integers(0, 2**32),
)
def test_exactly_n_start_and_all_are_awaited(
    concurrency: int, requests: int, warmup: int, start: StartPolicy, stagger_ms: int, seed: int
) -> None:
    """Whatever the order and time of answers, failures included, each measured request starts once, has one row, and
    no more than C are ever in flight."""
    source = random.Random(seed)

    def reply(_index: int) -> Reply:
        fate = source.random()
        after = source.choice([0, 1, 7 * MS, 90 * MS])
        if fate < 0.1:
            return [(after, source.choice([Ending.reset, Ending.eof, Ending.connect_failed]))]
        if fate < 0.2:
            return [(after, UNAVAILABLE)]
        if fate < 0.3:
            return [*streamed(after, 5)[:2], (after + 50, source.choice([Ending.eof, Ending.reset]))]
        return streamed(after, source.choice([0, 1, MS]))

    script = Script(order_of(plan_of(concurrency, requests, warmup, start, stagger_ms * MS)), reply)
    rows = script.run()
    assert script.load.finished and not script.load.flights
    measured = sorted(row.index for row in rows if row.measured)
    assert measured == list(range(warmup, warmup + requests))
    assert len({row.index for row in rows}) == len(rows) == len(script.starts)
    assert script.in_flight_at_most <= concurrency
    phases = Tally(row.phase for row in rows)
    assert phases["warmup"] == warmup
    assert phases["opening"] == (0 if start == "handover" else min(concurrency, requests))
    assert sum(Tally(row.outcome for row in rows).values()) == len(rows)
    for row in rows:
        assert row.sent_ns is not None and row.end_ns is not None
        assert row.scheduled_ns <= row.sent_ns <= row.end_ns


def test_a_burst_starts_all_slots_at_once_and_then_one_for_one() -> None:
    """C requests start at the same moment; each later one when a slot came free, with that moment as its schedule."""
    script = Script(order_of(plan_of(3, 9)), lambda index: streamed(10 * MS * (index + 1), 0))
    rows = {row.index: row for row in script.run()}
    assert [index for _, index in script.starts] == list(range(9))
    opening = [rows[index] for index in range(3)]
    assert {row.sent_ns for row in opening} == {script.starts[0][0]}
    assert [row.slot for row in opening] == [0, 1, 2]
    assert all(row.phase == "steady" for index, row in rows.items() if index > 2)
    ends = {row.end_ns for row in rows.values()}
    assert all(row.scheduled_ns in ends for index, row in rows.items() if index > 2)


def test_a_staggered_start_places_each_slot_in_its_turn() -> None:
    """Slot i opens i staggers after the first, whatever the others do."""
    script = Script(
        order_of(plan_of(4, 12, start="staggered", stagger_ns=25 * MS)), lambda _: streamed(60 * MS, 0)
    )
    rows = {row.index: row for row in script.run()}
    began = rows[0].scheduled_ns
    assert [rows[index].scheduled_ns - began for index in range(4)] == [0, 25 * MS, 50 * MS, 75 * MS]


def test_slots_that_wait_for_their_turn_start_although_all_else_is_taken() -> None:
    """Where answers are faster than the stagger, the first slots use up the later requests, and the last slots still
    open with theirs."""
    script = Script(
        order_of(plan_of(4, 8, start="staggered", stagger_ns=SECOND_NS)), lambda _: [(MS, UNAVAILABLE)]
    )
    rows = script.run()
    assert sorted(row.index for row in rows) == list(range(8))
    assert [row.index for row in rows if row.phase == "opening"] == [0, 1, 2, 3]


def test_a_handover_measures_once_each_slot_has_restarted() -> None:
    """The measured part begins with the first slot that comes free after all slots started a second request; it has
    no opening, and load never stops between."""
    script = Script(
        order_of(plan_of(3, 12, 2, "handover")), lambda index: streamed((5 + 7 * (index % 3)) * MS, MS)
    )
    rows = script.run()
    ramp = [row for row in rows if row.phase == "ramp"]
    measured = [row for row in rows if row.measured]
    assert {row.phase for row in measured} == {"steady"} and len(measured) == 12
    per_slot = Tally(row.slot for row in ramp)
    assert set(per_slot) == {0, 1, 2} and min(per_slot.values()) == 2
    first = min(row.sent_ns or 0 for row in measured)
    assert max(row.sent_ns or 0 for row in ramp) <= first
    restarts = [sorted(row.sent_ns or 0 for row in ramp if row.slot == slot)[1] for slot in range(3)]
    assert first >= max(restarts)
    # In flight over the whole handover: every free slot is refilled at that same moment.
    ends = sorted(row.end_ns or 0 for row in rows if row.phase != "warmup")
    last_start = max(row.sent_ns or 0 for row in measured)
    for row in measured:
        assert row.scheduled_ns in ends
    for moment in [end for end in ends if first <= end < last_start]:
        assert sum((r.sent_ns or 0) <= moment < (r.end_ns or 0) for r in rows if r.phase != "warmup") == 3


def test_a_ramp_that_never_restarts_every_slot_still_ends() -> None:
    """One slot that hangs through the whole ramp keeps nothing waiting for ever: the ramp's requests run out."""
    slow = 14  # the ramp's third request, the opening one of slot 2
    script = Script(
        order_of(plan_of(3, 12, 0, "handover")),
        lambda index: streamed(SECOND_NS if index == slow else MS, 0),
    )
    rows = script.run()
    assert sorted(row.index for row in rows if row.measured) == list(range(12))
    assert max(Tally(row.slot for row in rows if row.phase == "ramp").values()) > 2


def test_stop_starts_nothing_more_and_awaits_what_runs() -> None:
    """After `stop` no request starts, and those in flight end by themselves."""
    script = Script(order_of(plan_of(4, 64)), lambda _: streamed(20 * MS, MS))
    script.run(until=lambda: len(script.starts) >= 10)
    started = len(script.starts)
    script.load.stop(script.now_ns)
    rows = script.run()
    assert len(script.starts) == started == len(rows)
    assert {row.outcome for row in rows} == {"ok"} and script.load.finished and not script.load.cancelled


def test_stop_between_stages_begins_no_stage() -> None:
    """A stop during the warm-up leaves the measured part unbegun."""
    script = Script(order_of(plan_of(4, 64, warmup=3)), lambda _: streamed(20 * MS, MS))
    script.run(until=lambda: len(script.starts) == 2)
    script.load.stop(script.now_ns)
    assert [row.phase for row in script.run()] == ["warmup"] * 2
    assert script.load.agenda.next_ns() is None and script.load.pop_due(2**62) is None


def test_cancel_ends_everything_with_rows() -> None:
    """A cancelled request has a row with what it had so far; nothing stays in flight."""
    script = Script(order_of(plan_of(4, 64)), lambda _: streamed(20 * MS, 500 * MS))
    script.run(until=lambda: script.now_ns >= 1_020 * MS and not script.load.unparsed)
    flights = script.load.cancel(script.now_ns)
    rows = script.run()
    assert len(flights) == len(rows) == 4 and script.load.cancelled and script.load.finished
    assert {(row.outcome, row.output_events) for row in rows} == {("cancelled", 1)}


DEADLINES = Deadlines(SECOND_NS, 5 * SECOND_NS, 2 * SECOND_NS, 10 * SECOND_NS)


@pytest.mark.parametrize(
    ("reply", "after_ns", "ending"),
    [
        ([], 5 * SECOND_NS, Ending.deadline_first_output),
        ([(MS, b"HTTP/1.1 200 OK\r\n")], 5 * SECOND_NS, Ending.deadline_first_output),
        (
            [(n * SECOND_NS, HEAD if not n else chunk(b": ping\n\n")) for n in range(9)],
            5 * SECOND_NS,
            Ending.deadline_first_output,
        ),
        ([(MS, HEAD + chunk(event("a")))], MS + 2 * SECOND_NS, Ending.deadline_silence),
        (
            [(SECOND_NS * n, (HEAD if not n else b"") + chunk(event("a"))) for n in range(12)],
            10 * SECOND_NS,
            Ending.deadline_total,
        ),
    ],
)
def test_each_deadline_has_its_own_ending(reply: Reply, after_ns: int, ending: Ending) -> None:
    """A request is overdue just after its deadline, not at it, with the right name; its row says so."""
    script = Script(order_of(plan_of(1, 1), deadlines=DEADLINES), lambda _: reply)
    load = script.load
    load.agenda.begin(script.now_ns)
    script.step()
    sent_ns = script.now_ns
    while script._events and script._events[0][0] <= sent_ns + after_ns:
        script.step()
    load.parse(2**62, lambda: 0)
    assert load.overdue(sent_ns + after_ns) == []
    ((flight, named),) = load.overdue(sent_ns + after_ns + 1)
    assert named is ending
    load.failed(flight, sent_ns + after_ns + 1, named)
    (row,) = script.collect()
    assert row.outcome == f"timed_out_{ending.value.removeprefix('deadline_')}" and row.error


def test_a_request_without_a_connection_has_a_deadline_too() -> None:
    """Waiting for a connection is bounded from the moment at which the request was due."""
    script = Script(order_of(plan_of(1, 1), deadlines=DEADLINES), lambda _: [])
    script.load.agenda.begin(0)
    assert script.load.pop_due(10) is not None
    assert script.load.overdue(SECOND_NS) == []
    assert [ending for _, ending in script.load.overdue(SECOND_NS + 1)] == [Ending.deadline_connect]


def test_output_that_is_not_parsed_yet_holds_the_first_output_deadline() -> None:
    """A request whose output has arrived but waits to be parsed is not late."""
    script = Script(order_of(plan_of(1, 1), deadlines=DEADLINES), lambda _: [])
    load = script.load
    load.agenda.begin(0)
    flight = load.pop_due(0)
    assert flight is not None
    load.sent(flight, 0)
    load.received(flight, 5 * SECOND_NS, 0, 0, HEAD + chunk(event("a")))
    assert load.overdue(5 * SECOND_NS + 1) == []
    load.parse(2**62, lambda: 0)
    assert load.overdue(5 * SECOND_NS + 1) == []


@pytest.mark.parametrize(("outcome", "reply"), OUTCOMES)
def test_every_outcome_has_a_row_and_frees_its_slot(outcome: str, reply: Reply) -> None:
    """Whatever becomes of a request, it has a row with that outcome, a timeline, and its slot goes on."""
    script = Script(order_of(plan_of(1, 3)), lambda index: reply if index == 1 else streamed(MS, MS))
    rows = script.run()
    assert [(row.index, row.outcome) for row in rows] == [(0, "ok"), (1, outcome), (2, "ok")]
    assert outcome == "ok" or rows[1].error
    script.recorder.flush()
    events = b"".join(block for name, block in script.blocks if name == layout.EVENTS)
    assert [each.index for each in timeline.unpack(events)] == [0, 1, 2]


def test_rows_are_written_in_the_order_of_ends() -> None:
    """Rows stand in the order in which requests ended, and carry what the order said of each prompt."""
    script = Script(order_of(plan_of(3, 3)), lambda index: streamed((30 - 10 * index) * MS, 0))
    rows = script.run()
    assert [row.index for row in rows] == [2, 1, 0]
    assert (rows[0].prompt_sha256, rows[0].prompt_head_sha256, rows[0].class_) == ("p2", "h2", "8/4")


def test_times_are_those_of_arrival() -> None:
    """A read that the kernel stamped earlier counts from then, in TTFT, gaps and the slot's next schedule."""
    load = Script(order_of(plan_of(1, 2)), lambda _: []).load
    load.agenda.begin(0)
    flight = load.pop_due(0)
    assert flight is not None
    load.sent(flight, 100)
    pieces = answer(2)
    load.received(flight, 1000, 400, 900, pieces[0])
    load.received(flight, 2000, 0, 900, pieces[1])
    assert load.received(flight, 3000, 500, 900, pieces[2])
    load.parse(2**62, lambda: 0)
    (row,) = load.take_progress(0).rows
    assert (row.first_output_ns, row.last_output_ns, row.ttft_ns) == (600, 2000, 500)
    assert row.end_ns == 2500 == load.agenda.next_ns()


def test_meaning_waits_for_its_slice() -> None:
    """Parsing stops when its time is up, and loses and reorders nothing."""
    script = Script(order_of(plan_of(1, 1)), lambda _: [])
    load = script.load
    load.agenda.begin(0)
    flight = load.pop_due(0)
    assert flight is not None
    load.sent(flight, 0)
    load.received(flight, 10, 0, 0, HEAD + chunk(b"".join(event(f"{n} ") for n in range(3000))))
    load.received(flight, 20, 0, 0, answer(1)[-1])
    steps = 0
    while load.unparsed:
        load.parse(0, lambda: 1)
        steps += 1
    assert steps > 10
    (row,) = load.take_progress(0).rows
    assert row.outcome == "ok" and row.output_events == 3000


def test_a_flood_is_parsed_before_more_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends faster than we parse cannot make the queue longer than its limit."""
    script = Script(order_of(plan_of(1, 1)), lambda _: [])
    load = script.load
    load.agenda.begin(0)
    flight = load.pop_due(0)
    assert flight is not None
    load.sent(flight, 0)
    load.received(flight, 1, 0, 0, HEAD)
    flood = chunk(event("x") * 1000)
    monkeypatch.setattr(load_module, "BACKLOG_PIECES", 50)
    for t_ns in range(2, 30):
        load.received(flight, t_ns, 0, 0, flood)
        load.parse(0, lambda: 1)
        assert load.unparsed <= load_module.BACKLOG_PIECES


def test_reads_are_recorded_whole_or_bare() -> None:
    """Kept reads hold the very bytes; of those not kept, times and sizes remain."""
    for keeping, kinds in ((Keeping(), {Kind.READ}), (Keeping("none"), {Kind.BARE})):
        script = Script(order_of(plan_of(1, 1), keeping=keeping), lambda _: streamed(MS, MS))
        script.run()
        script.recorder.flush()
        found = list(records.unpack(b"".join(block for name, block in script.blocks if name == layout.READS)))
        reads = [record for record in found if record.kind in (Kind.READ, Kind.BARE)]
        assert {record.kind for record in reads} == kinds
        assert sum(record.size for record in reads) == sum(map(len, answer()))
        if keeping.reads == "all":
            assert b"".join(record.payload for record in reads) == b"".join(answer())
        assert [record.kind for record in found[:3]] == [Kind.SCHEDULED, Kind.SENT, Kind.BODY_SENT]


def test_progress_tells_what_happened_since() -> None:
    """Reports carry new rows and first outputs once, and who still waits for a first output."""
    script = Script(order_of(plan_of(2, 2)), lambda index: streamed((10 + 1000 * index) * MS, MS))
    load = script.load
    load.agenda.begin(script.now_ns)
    while not load.flights or load.unparsed or script.now_ns < 1_011 * MS:
        script.step()
    told = load.take_progress(script.now_ns)
    assert told.first_outputs == ((0, 10 * MS),) and told.stage == "measured" and told.started == 2
    assert [index for index, _ in told.waiting_since] == [1]
    assert load.take_progress(script.now_ns).first_outputs == ()
    script.run()
    assert [row.index for row in script.rows] == [0, 1]
