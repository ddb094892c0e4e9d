"""Several workers share one load through one counter."""

from __future__ import annotations

from collections import Counter as Tally
from pathlib import Path

import msgspec
import pytest

from nameplate.client.counter import Count, LocalCounter, SharedCounter
from nameplate.client.tests.orders import (
    Script,
    order_of,
    plan_of,
    streamed,
)
from nameplate.contract.rules import StartPolicy

MS = 1_000_000
POLICIES: list[StartPolicy] = ["burst", "staggered", "handover"]


@pytest.mark.parametrize("start", POLICIES)
def test_two_workers_share_one_load(tmp_path: Path, start: StartPolicy) -> None:
    """Two workers with one counter start every index once, each on its own slots, through all stages together."""

    plan = plan_of(5, 40, 4, start, 3 * MS)
    orders = [msgspec.structs.replace(order_of(plan), worker=worker, workers=2) for worker in (0, 1)]
    workers = [
        Script(one, lambda index: streamed((1 + index % 7) * MS, MS), SharedCounter(tmp_path / "counter"))
        for one in orders
    ]
    begun = [False, False]
    gates = [False, False]
    for _ in range(100_000):
        for number, script in enumerate(workers):
            load = script.load
            if load.finished:
                continue
            if load.stage_over and not load.unparsed:
                if not gates[number]:
                    load.agenda.arrive(Count.LEFT)
                    gates[number] = True
                if not load.agenda.passed(Count.LEFT):
                    script.now_ns = max(script.now_ns, min(each.now_ns for each in workers))
                    continue
                if not begun[number]:
                    load.agenda.arrive(Count.READY)
                    begun[number] = True
                if not load.agenda.passed(Count.READY):
                    continue
                script.now_ns = max(each.now_ns for each in workers)
                load.agenda.begin(script.now_ns)
                gates[number] = begun[number] = False
            script.step()
        if all(script.load.finished for script in workers):
            break
    rows = [row for script in workers for row in script.collect()]
    assert sorted(row.index for row in rows if row.measured) == list(range(4, 44))
    assert len({row.index for row in rows}) == len(rows)
    assert all(row.slot is not None and row.slot % 2 == row.worker for row in rows)
    warmed = max(row.end_ns or 0 for row in rows if row.phase == "warmup")
    assert all((row.sent_ns or 0) >= warmed for row in rows if row.phase != "warmup")
    if start == "handover":
        per_slot = Tally(row.slot for row in rows if row.phase == "ramp")
        assert len(per_slot) == 5 and min(per_slot.values()) >= 2


def test_counters_hand_out_each_number_once(tmp_path: Path) -> None:
    """The counter of one process and the one that several map count alike, stage by stage."""
    one, two = SharedCounter(tmp_path / "c"), SharedCounter(tmp_path / "c")
    alone = LocalCounter()
    assert [one.take(0, 3), two.take(0, 3), one.take(0, 3), two.take(0, 3), one.take(1, 1)] == [
        0,
        1,
        2,
        None,
        0,
    ]
    assert [alone.take(0, 2), alone.take(0, 2), alone.take(0, 2), alone.take(1, 1)] == [0, 1, None, 0]
    for counter in (one, alone):
        counter.add(Count.READY, -1)
        counter.add(Count.READY, -1)
        assert counter.value(Count.READY, -1) == 2 and counter.value(Count.LEFT, -1) == 0
    assert two.value(Count.READY, -1) == 2
    one.close()
    two.close()
