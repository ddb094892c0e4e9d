"""What a request costs the load: no cycles, and no work that grows with the slots."""

from __future__ import annotations

import gc
import heapq
from collections import Counter as Tally

import pytest

from nameplate.client import agenda as agenda_module
from nameplate.client.counter import Count, LocalCounter
from nameplate.client.tests.orders import (
    OUTCOMES,
    UNAVAILABLE,
    Script,
    order_of,
    plan_of,
)
from nameplate.contract.rules import StartPolicy

MS = 1_000_000
POLICIES: list[StartPolicy] = ["burst", "staggered", "handover"]


def test_no_reference_cycles_after_ten_thousand_requests() -> None:
    """Garbage collection can stay off: 10,000 requests of all outcomes leave nothing for it to find."""
    replies = [reply for _, reply in OUTCOMES]
    script = Script(order_of(plan_of(50, 10_000)), lambda index: replies[index % len(replies)])
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        rows = script.run()
        found = gc.collect()
        kinds = Tally(type(each).__name__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert len(rows) == 10_000
    assert found == 0, kinds


def test_the_work_a_request_does_not_grow_with_the_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 10 to 1,000 slots the heap and queue operations a request stay the same, through a handover too."""
    counts: Tally[str] = Tally()

    class Heap:
        """Count heap operations."""

        @staticmethod
        def heappush(heap: list[tuple[int, int]], item: tuple[int, int]) -> None:
            counts["heap"] += 1
            heapq.heappush(heap, item)

        @staticmethod
        def heappop(heap: list[tuple[int, int]]) -> tuple[int, int]:
            counts["heap"] += 1
            return heapq.heappop(heap)

    class Counted(LocalCounter):
        """Count looks at the counter."""

        def value(self, count: Count, stage: int) -> int:
            counts["counter"] += 1
            return super().value(count, stage)

    class Starts(dict[int, int]):
        """Refuse to be walked over."""

        def values(self) -> object:  # type: ignore[override]
            raise AssertionError("every start looks at every slot")

    monkeypatch.setattr(agenda_module, "heapq", Heap)
    costs = []
    for slots in (10, 100, 1000):
        counts.clear()
        script = Script(
            order_of(plan_of(slots, 4 * slots, start="handover")), lambda _: [(MS, UNAVAILABLE)], Counted()
        )
        script.load.agenda._slot_starts = Starts()
        rows = script.run()
        costs.append({name: count / len(rows) for name, count in counts.items()})
    for name in costs[0]:
        assert costs[2][name] < 1.5 * costs[0][name] + 0.5, costs
