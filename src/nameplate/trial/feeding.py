"""Feeding a load that goes on: prompts are written some way ahead of what was started, and no further."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

from nameplate.client.asks import pack_ask
from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, NameplateError
from nameplate.contract.plan import TrialPlan
from nameplate.evidence import manifest
from nameplate.prompts.store import PromptWriter
from nameplate.schedule.stage import stages_of
from nameplate.trial.corpus import PHASES, Bodies, Corpus

SECOND_NS = 10**9
# What is started within this time at the rate so far is written ahead: a machine that is busy elsewhere may keep the
# parent waiting for seconds.
AHEAD_NS = 20 * SECOND_NS
RATE_OVER_NS = 10 * SECOND_NS
# The stock before any rate is known: between two reports, 0.2 s apart, one load process starts a thousand requests at
# the most. Short prompts are cheap (80 us, 300 bytes each); long ones (60 ms, 0.75 MB for 131,072 tokens) come slowly.
STOCK, STOCK_BYTES = 4096, 64 << 20
MOST_BYTES = 512 << 20
# A closed loop that ends all at once starts all at once: that, and as many again.
ROUNDS = 2
# One report is answered within a fraction of the time to the next one, unless the stock runs low.
PORTION_NS, LONG_PORTION_NS = SECOND_NS // 8, SECOND_NS


# A request that was started this long ago has been sent, or its connection's deadline has long passed. What is used up
# is given back in pieces of some size.
USED_UP_NS = 60 * SECOND_NS
FORGET_BYTES = 16 << 20


class Feeder:
    """Write the prompts of one soak into the store that its load reads.

    `ahead` prompts are written and not yet started. Where prompts are not `kept`, what is used up is given back to the
    disk as the load goes on, where the system can. Raises ClientError where the disk does not take them, CallerError
    for a handover, whose ramp comes after all indices, and whatever the corpus raises when it has no more.
    """

    def __init__(
        self,
        path: Path,
        contract: Contract,
        plan: TrialPlan,
        corpus: Corpus,
        now_ns: Callable[[], int],
        *,
        kept: bool = True,
    ) -> None:
        if plan.start == "handover":
            raise CallerError(
                "A soak does not begin with a handover.",
                hint="Its windows show when the state is steady; start it as a burst, or staggered.",
            )
        self._path = path
        self._used = None if kept else _Used()
        self._bodies = Bodies(contract, plan, corpus)
        self._now_ns = now_ns
        self._least = ROUNDS * plan.concurrency if plan.arrivals is None else 1
        self._planned = 0.0 if plan.arrivals is None else plan.arrivals.rate / SECOND_NS
        *before, measured = stages_of(plan)
        self._measured = measured
        self._first = self._next = measured.first_index
        self._phase = PHASES.index(measured.name)
        self._bytes = 0
        self._started: deque[tuple[int, int]] = deque()
        self.ahead = 0
        self._writer = PromptWriter(path)
        for stage in before:
            for index in range(stage.first_index, stage.first_index + stage.schedule.prompts):
                self._write(index, PHASES.index(stage.name))
        self.feed(0)

    def feed(self, started: int, at_ns: int | None = None) -> None:
        """Write what is missing ahead of `started` measured requests, and hand it to the system.

        With `at_ns`, the time of the report that says so, only for as long as a report may take.
        """
        wanted = self._planned * AHEAD_NS
        until_ns = None
        if at_ns is not None:
            wanted = max(wanted, self._rate(started, at_ns) * AHEAD_NS)
            low = self._next - self._first - started < max(self._least, wanted / 2)
            until_ns = self._now_ns() + (LONG_PORTION_NS if low else PORTION_NS)
        try:
            while self._lacks(started, wanted) and (until_ns is None or self._now_ns() < until_ns):
                self._bytes += self._write(self._next, self._phase)
                self._next += 1
            self._writer.flush()
            if self._used is not None and at_ns is not None:
                forgotten = self._used.take(at_ns, started)
                if forgotten is not None:
                    self._writer.forget(forgotten)
        except OSError as error:
            raise manifest.disk_fault(self._path, error) from None
        self.ahead = self._next - self._first - started

    def _lacks(self, started: int, wanted: float) -> bool:
        if not self._measured.has(self._next):
            return False
        written = self._next - self._first
        ahead = written - started
        ahead_bytes = ahead * self._bytes / max(1, written)
        return (
            ahead < self._least
            or (ahead < STOCK and ahead_bytes < STOCK_BYTES)
            or (ahead < wanted and ahead_bytes < MOST_BYTES)
        )

    def _rate(self, started: int, at_ns: int) -> float:
        """Return how many requests a nanosecond were started lately."""
        seen = self._started
        seen.append((at_ns, started))
        while len(seen) > 2 and at_ns - seen[0][0] > RATE_OVER_NS:
            seen.popleft()
        (first_ns, first), (last_ns, last) = seen[0], seen[-1]
        return (last - first) / (last_ns - first_ns) if last_ns > first_ns else 0.0

    def _write(self, index: int, phase: int) -> int:
        body, ask = self._bodies.make(index)
        end = self._writer.append(index, body, phase, pack_ask(ask))
        if self._used is not None and index >= self._first:
            self._used.ends.append(end)
        return len(body)

    def close(self) -> None:
        """Close the store; what the system has not taken by now was never needed."""
        try:
            self._writer.close()
        except (OSError, NameplateError):
            pass


class _Used:
    """Know which part of a store is used up: `ends` are where the bodies end that are not yet given back."""

    def __init__(self) -> None:
        self.ends: deque[int] = deque()
        self._gone = 0
        self._end = self._given_back = 0
        self._reports: deque[tuple[int, int]] = deque()

    def take(self, at_ns: int, started: int) -> int | None:
        """Return up to which byte everything can go now; None where that is not worth the while."""
        self._reports.append((at_ns, started))
        long_ago = 0
        while self._reports and at_ns - self._reports[0][0] >= USED_UP_NS:
            long_ago = self._reports.popleft()[1]
        end = 0
        while self._gone < long_ago and self.ends:
            end = self.ends.popleft()
            self._gone += 1
        self._end = max(end, self._end)
        if self._end - self._given_back < FORGET_BYTES:
            return None
        self._given_back = self._end
        return self._end
