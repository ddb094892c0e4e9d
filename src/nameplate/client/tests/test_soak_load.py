"""A load that time ends: what starts when, how slots rest, and what a missing prompt does."""

from __future__ import annotations

from collections import Counter as Tally

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.client.load import Load
from nameplate.client.order import Ask, LoadOrder
from nameplate.client.tests.orders import (
    HEAD,
    UNAVAILABLE,
    Reply,
    Script,
    chunk,
    event,
    order_of,
    plan_of,
    streamed,
)
from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.contract.soak import SOAK_REQUESTS, Soak
from nameplate.schedule.stage import stages_of
from nameplate.wire.outcome import Ending

MS = 1_000_000
S = 10**9
ASK = Ask("8/4", 4, "ab" * 32, "cd" * 32)
REFUSED: Reply = [(0, Ending.connect_failed)]


def soak_plan(seconds: float, concurrency: int = 4, rate: float | None = None, **plan: object) -> TrialPlan:
    soak = Soak(duration_ns=round(seconds * S))
    arrivals = None if rate is None else ArrivalPlan(kind="constant", rate=rate)
    whole = plan_of(concurrency, SOAK_REQUESTS)
    return structs.replace(whole, soak=soak, arrivals=arrivals, role="soak", **plan)


class Fed(Script):
    """Drive a soak whose prompts are all there, up to a number."""

    def __init__(self, plan: TrialPlan, reply: Reply, written: int = 1 << 40) -> None:
        order = structs.replace(order_of(plan_of(1, 1)), stages=stages_of(plan), asks=(), soak=plan.soak)
        super().__init__(order, lambda _: reply)
        self.load = Load(order, self.recorder, ask=self.ask)
        self.written = written

    def ask(self, index: int) -> Ask:
        """Describe a prompt that was written."""
        if index >= self.written:
            raise KeyError(index)
        return ASK


def test_nothing_starts_after_its_time_and_all_is_awaited() -> None:
    """A closed loop goes on to its last nanosecond and no further; what is in flight ends, and the moment is told."""
    script = Fed(soak_plan(10), streamed(700 * MS, 10 * MS))
    began = script.now_ns
    rows = script.run()
    assert max(ns for ns, _ in script.starts) < began + 10 * S
    assert len(rows) == 4 * 14 and all(row.outcome == "ok" for row in rows)
    progress = script.load.take_progress(script.now_ns)
    assert (progress.began_ns, progress.submitted_ns) == (began, began + 10 * S)
    assert script.load.finished and not script.load.cancelled


def test_the_time_is_over_where_nothing_is_free() -> None:
    """With every slot busy far beyond the end, the end is still told when it comes."""
    script = Fed(soak_plan(2), streamed(60 * S, MS))
    script.run(until=lambda: script.load.agenda.submitted_ns is not None)
    assert script.load.agenda.submitted_ns == 3 * S
    assert len(script.starts) == 4 and not script.load.finished


@settings(max_examples=20, deadline=None)
@given(rate=st.floats(0.5, 50), seconds=st.floats(0.1, 8), answer_ms=st.integers(1, 3000))
def test_every_arrival_of_the_time_is_delivered(rate: float, seconds: float, answer_ms: int) -> None:
    """An open loop sends what is due before its end, whatever is in flight, and stays until the end."""
    plan = soak_plan(seconds, rate=rate)
    script = Fed(plan, streamed(answer_ms * MS, MS))
    began = script.now_ns
    rows = script.run()
    (stage,) = stages_of(plan)
    assert len(rows) == stage.schedule.prompts
    assert all(row.sent_ns == row.scheduled_ns < began + seconds * S for row in rows)
    assert script.load.agenda.submitted_ns == began + round(seconds * S)


@pytest.mark.parametrize(
    "reply",
    [
        REFUSED,
        [(MS, Ending.reset)],
        [(MS, UNAVAILABLE)],
        [(MS, HEAD + chunk(b'data: {"error":{"message":"boom"}}\n\ndata: [DONE]\n\n') + b"0\r\n\r\n")],
        [(MS, HEAD + chunk(event("", "stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n")],
    ],
    ids=["refused", "reset", "503", "error in the answer", "empty answer"],
)
def test_a_slot_whose_request_failed_rests(reply: Reply) -> None:
    """A server that is away, refuses, or answers with nothing is asked once or twice a second by each slot."""
    script = Fed(soak_plan(20), reply)
    rows = script.run()
    per_slot = Tally(row.slot for row in rows)
    assert len(per_slot) == 4 and all(19 <= count <= 42 for count in per_slot.values())
    assert all(row.sent_ns == row.scheduled_ns for row in rows)


def test_an_open_loop_goes_on_while_the_server_is_away() -> None:
    """Arrivals are sent as planned, every one a named failure."""
    script = Fed(soak_plan(5, rate=100), REFUSED)
    rows = script.run()
    assert Tally(row.outcome for row in rows) == {"connect_failed": 500}


def test_a_prompt_that_was_not_written_in_time_ends_the_load_by_name() -> None:
    """The load is not thinned: it starts nothing more, and says whose fault that is."""
    script = Fed(soak_plan(20), streamed(100 * MS, MS), written=30)
    rows = script.run()
    assert len(rows) == 30 and script.load.stopping
    assert script.load.failure is not None and "request 30" in script.load.failure
    assert script.load.agenda.submitted_ns is not None


def test_a_handover_counts_its_time_from_the_measured_part() -> None:
    """The ramp is not part of the duration; slots are taken over as they come free, and the time begins then."""
    script = Fed(soak_plan(5, start="handover"), streamed(200 * MS, MS))
    rows = script.run()
    measured = [row for row in rows if row.measured]
    assert rows[0].phase == "ramp" and {row.phase for row in measured} == {"steady"}
    began = script.load.agenda.began_ns
    assert began is not None and began <= min(row.scheduled_ns for row in measured) <= began + 210 * MS
    assert script.load.agenda.submitted_ns == began + 5 * S > max(row.scheduled_ns for row in measured)


def test_a_stop_before_the_time_is_told_as_the_end() -> None:
    """A person's stop ends the submissions when it comes."""
    script = Fed(soak_plan(100), streamed(100 * MS, MS))
    script.run(until=lambda: len(script.starts) >= 40)
    script.load.stop(script.now_ns)
    stopped = script.now_ns
    script.run()
    assert script.load.agenda.submitted_ns == stopped and script.load.finished


def test_nothing_is_left_of_requests_that_ended() -> None:
    """After a thousand requests the load holds what it held after a hundred."""

    def held(script: Fed) -> list[int]:
        agenda = script.load.agenda
        parts = (script.load.flights, agenda._due, agenda._slot_starts, agenda._rests, script.load._rows)
        return [len(part) for part in parts]

    script = Fed(soak_plan(10_000), streamed(100 * MS, MS))
    sizes = []
    for until in (100, 1_000):
        script.run(until=lambda until=until: len(script.starts) >= until)  # type: ignore[misc]
        sizes.append(held(script))
    assert sizes[0] == sizes[1]


def test_an_order_of_a_soak_is_small() -> None:
    """What the load process is told does not grow with the requests that it may start."""
    order: LoadOrder = Fed(soak_plan(3600), REFUSED).load._order
    assert order.asks == () and order.soak is not None
