"""The agenda of a load: which of its stages runs, and what of it starts when.

A stage's slots wait in a heap by due time, an open loop's arrivals come from their process; `pop` takes what is due.
How much is in flight, and what became of it, is the load's business: it says which slot came free.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

from nameplate.client.counter import Count, Counter
from nameplate.client.order import LoadOrder
from nameplate.schedule.closed_loop import ClosedLoop
from nameplate.schedule.open_loop import OpenLoop
from nameplate.schedule.stage import Stage
from nameplate.schedule.streams import Streams

# Connections are opened ahead of an open loop's arrivals: for what is expected within this time, and a few at least.
AHEAD_NS = 1_000_000_000
LEAST_AHEAD, MOST_AHEAD = 4, 512


class Start(NamedTuple):
    """Name a request that is due: its slot (None in an open loop), since when, and its offset in its stage."""

    stage: Stage
    slot: int | None
    scheduled_ns: int
    offset: int


# Workers see within a poll or two that all are ready; a stage begins when the last of them has.
TOGETHER_NS = 5_000_000


class Agenda:
    """Go through the stages of one order, this worker's share of them; times are monotonic nanoseconds.

    `began_ns` is the beginning of the running stage, `submitted_ns` the moment from which on it starts nothing more,
    once that has come: its time is over, or the load was stopped. `started` and `ended` count the stage's requests.
    """

    def __init__(self, order: LoadOrder, counter: Counter) -> None:
        self._stages = order.stages
        self._worker, self._workers = order.worker, order.workers
        self._outstanding_limit = order.outstanding_limit
        self._counter = counter
        self._number = -1
        self._due: list[tuple[int, int]] = []
        self._slot_starts: dict[int, int] = {}
        self._rests: dict[int, int] = {}
        self._exhausted = False
        self._released = False
        self._until_ns: int | None = None
        self._arrivals: Iterator[tuple[int, int]] = iter(())
        self._arrival: tuple[int, int] | None = None
        self.began_ns: int | None = None
        self.submitted_ns: int | None = None
        self.stopping = False
        self.overrun = False
        self.started = 0
        self.ended = 0

    # -- stages ---------------------------------------------------------------------------------------------------

    @property
    def stage(self) -> Stage | None:
        return self._stages[self._number] if self._number >= 0 else None

    @property
    def stage_name(self) -> str:
        return self._stages[self._number].name if self._number >= 0 else ""

    @property
    def more(self) -> bool:
        """Say whether another stage follows."""
        return not self.stopping and self._number + 1 < len(self._stages)

    @property
    def waits(self) -> bool:
        """Say whether the running stage has something left to start, now or later."""
        waiting = self._due or self._arrival is not None or self._until_ns is not None
        return self._number >= 0 and not self.stopping and bool(waiting)

    @property
    def slots_to_open(self) -> int:
        """Count the connections that the next stage needs at once on this worker."""
        following = self._number + 1
        if following >= len(self._stages):
            return 0
        schedule = self._stages[following].schedule
        if isinstance(schedule, OpenLoop):
            return self._expected(schedule, 0)
        own = len(range(self._worker, schedule.slots, self._workers))
        return own + (isinstance(schedule, Streams) and schedule.arrival and self._worker == 0)

    @property
    def next_first_index(self) -> int:
        """Return the index of the first request of the next stage."""
        following = min(self._number + 1, len(self._stages) - 1)
        return self._stages[following].first_index

    def begin(self, now_ns: int) -> None:
        """Start the next stage; its first requests become due. Several workers begin it at one moment."""
        self._due.clear()
        if self._workers > 1:
            now_ns = self._counter.agree(Count.BEGAN, self._number + 1, now_ns + TOGETHER_NS)
        self._enter(now_ns)
        schedule = self._stages[self._number].schedule
        if isinstance(schedule, OpenLoop):
            self._arrivals = schedule.arrivals(self._worker, self._workers)
            self._arrival = next(self._arrivals, None)
            return
        for slot in range(self._worker, schedule.slots, self._workers):
            if schedule.has(slot):
                heapq.heappush(self._due, (now_ns + (schedule.due_ns(slot) or 0), slot))

    def _enter(self, now_ns: int) -> None:
        self._number += 1
        self.started = self.ended = 0
        self._exhausted = False
        self._slot_starts.clear()
        self._rests.clear()
        self.began_ns, self.submitted_ns = now_ns, None
        schedule = self._stages[self._number].schedule
        duration_ns = None if isinstance(schedule, Streams) else schedule.duration_ns
        self._until_ns = None if duration_ns is None else now_ns + duration_ns

    def release(self, now_ns: int) -> None:
        """Let the arrival beside the streams start now, if it is this worker's and has not yet come."""
        if self._number < 0 or self.stopping or self._released:
            return
        schedule = self._stages[self._number].schedule
        # The first worker's, since each of the others may be without a stream, and so at its end already.
        if isinstance(schedule, Streams) and schedule.arrival and self._worker == 0:
            self._released = True
            heapq.heappush(self._due, (now_ns, schedule.slots))

    def stop(self, now_ns: int) -> None:
        """Start nothing more."""
        self.stopping = True
        self._close(now_ns)

    def _close(self, at_ns: int) -> None:
        if self.submitted_ns is None:
            self.submitted_ns = at_ns
        self._exhausted = True
        self._until_ns = self._arrival = None
        self._due.clear()

    # -- several workers ------------------------------------------------------------------------------------------

    def arrive(self, gate: Count) -> None:
        """Say to the other workers that this one has left its stage, or is ready for the next."""
        self._counter.add(gate, self._number)

    def passed(self, gate: Count) -> bool:
        """Say whether all workers have arrived."""
        return self._counter.value(gate, self._number) >= self._workers

    # -- what is due ----------------------------------------------------------------------------------------------

    def connections(self, in_flight: int) -> int:
        """Count the slots that have a request in flight or will start one: as many connections are needed.

        Of an open loop, what is in flight and what is expected to arrive within the second that comes.
        """
        schedule = self._stages[self._number].schedule if self._number >= 0 else None
        if isinstance(schedule, OpenLoop) and self._arrival is not None:
            needed = in_flight + self._expected(schedule, self._arrival[1])
            return min(needed, self._outstanding_limit or needed)
        return in_flight + len(self._due)

    def _expected(self, schedule: OpenLoop, from_ns: int) -> int:
        """Return how many arrivals a worker should have connections for, from a moment of the stage on."""
        begin, end = schedule.expected(from_ns), schedule.expected(from_ns + AHEAD_NS)
        arriving = math.ceil(end - begin) if begin is not None and end is not None else 1
        most = min(MOST_AHEAD, self._outstanding_limit or MOST_AHEAD)
        return min(max(LEAST_AHEAD, -(-arriving // self._workers)), most)

    def next_ns(self) -> int | None:
        """Return when something is next to be started, or the stage's time is over; None where neither is known."""
        due_ns = self._due[0][0] if self._due else None
        if self._arrival is not None and self.began_ns is not None:
            due_ns = self.began_ns + self._arrival[1]
        if self._until_ns is None:
            return due_ns
        return self._until_ns if due_ns is None else min(due_ns, self._until_ns)

    def pop(self, now_ns: int, in_flight: int) -> Start | None:
        """Take the next request that is due, or None."""
        if self.stage_name == "ramp":
            self._end_ramp_when_all_restarted(now_ns)
        if self._arrival is not None:
            return self._pop_arrival(now_ns, in_flight)
        if self._until_ns is not None and now_ns >= self._until_ns:
            self._close(self._until_ns)
        while self._due and self._due[0][0] <= now_ns:
            scheduled_ns, slot = heapq.heappop(self._due)
            offset = self._offset(slot)
            if offset is not None:
                start = Start(self._stages[self._number], slot, scheduled_ns, offset)
                self._count(slot, now_ns)
                return start
            # This slot is done; others may still have an opening request whose time has not come.
            self._exhausted = True
        return None

    def _count(self, slot: int, now_ns: int) -> None:
        self.started += 1
        starts = self._slot_starts[slot] = self._slot_starts.get(slot, 0) + 1
        if starts == 2 and self.stage_name == "ramp":
            self._counter.add(Count.RESTARTED, self._number)
            self._end_ramp_when_all_restarted(now_ns)

    def _offset(self, slot: int) -> int | None:
        """Return the offset of a slot's next request; None where all are taken."""
        schedule = self._stages[self._number].schedule
        if isinstance(schedule, Streams):
            return schedule.offset(slot, self._slot_starts.get(slot, 0))
        assert isinstance(schedule, ClosedLoop)
        # The opening request of slot s has index s; later ones are taken in order from what is left.
        if slot not in self._slot_starts and not schedule.continues:
            return slot
        opening = 0 if schedule.continues else min(schedule.slots, schedule.requests)
        taken = self._counter.take(self._number, schedule.requests - opening)
        return None if taken is None else opening + taken

    def _pop_arrival(self, now_ns: int, in_flight: int) -> Start | None:
        """Take the arrival that is due, whatever is outstanding, up to the limit at which the load ends."""
        assert self._arrival is not None and self.began_ns is not None
        offset, due_ns = self._arrival
        if self.began_ns + due_ns > now_ns:
            return None
        limit = self._outstanding_limit
        if limit is not None and in_flight >= limit:
            self.overrun = True
            self.stop(now_ns)
            return None
        self._arrival = next(self._arrivals, None)
        self.started += 1
        return Start(self._stages[self._number], None, self.began_ns + due_ns, offset)

    def freed(self, slot: int, t_ns: int) -> None:
        """Let a slot whose request has ended start its next one, after the rest that it may have to take."""
        if not self._exhausted:
            heapq.heappush(self._due, (max(t_ns, self._rests.get(slot, 0)), slot))

    def rest(self, slot: int, t_ns: int) -> None:
        """Let a slot, whose request failed at `t_ns`, start no other before the stage's pause is over."""
        schedule = self._stages[self._number].schedule
        if isinstance(schedule, ClosedLoop) and schedule.fault_pause_ns:
            self._rests[slot] = t_ns + schedule.fault_pause_ns

    def _end_ramp_when_all_restarted(self, now_ns: int) -> None:
        slots = self._stages[self._number].schedule.slots or 0
        if self._counter.value(Count.RESTARTED, self._number) < slots:
            return
        # A worker without slots of its own waits at both gates for those that go on without a pause.
        self.arrive(Count.LEFT)
        self.arrive(Count.READY)
        # What waits in the heap goes on: these slots are handed over.
        self._enter(now_ns)
