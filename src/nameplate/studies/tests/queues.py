"""Servers of known capacity for rate studies: queues that need no bytes, whose trials are judged as real ones are."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.evidence.rows import RequestRow
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.tests.trials import S, closed_loop, evidence, ok_row
from nameplate.schedule.stage import stages_of

# (first output, end) of each arrival, in seconds; arrivals ascend.
Served = list[tuple[float, float]]
Serve = Callable[[Sequence[float], random.Random], Served]


def fixed(servers: int, service_s: float = 1.0, *, slower: float = 0.0, spread: float = 0.0) -> Serve:
    """Serve first come first served by so many servers, each `service_s` a request; `slower` a share at the end.

    With `spread` the times are log-normal with that shape and the same mean. Output begins with service.
    """

    def serve(arrivals: Sequence[float], draws: random.Random) -> Served:
        free, found = [0.0] * servers, []
        for at, arrival in enumerate(arrivals):
            begin = max(arrival, heapq.heappop(free))
            lasts = service_s * (1 + slower * at / len(arrivals))
            if spread:
                lasts *= draws.lognormvariate(-spread * spread / 2, spread)
            heapq.heappush(free, begin + lasts)
            found.append((begin, begin + lasts))
        return found

    return serve


class Batching(Struct, frozen=True):
    """Serve in steps as an engine with continuous batching does: each decodes all, and may prefill one prompt."""

    prefill_s: float = 0.0346
    step_s: float = 0.0025
    sequence_s: float = 0.0001
    tokens: int = 64
    limit: int = 32

    @property
    def capacity(self) -> float:
        """Return the requests a second that it completes with its batch always full."""
        return 1 / (self.prefill_s + self.tokens * (self.step_s / self.limit + self.sequence_s))

    def __call__(self, arrivals: Sequence[float], draws: random.Random) -> Served:
        del draws
        firsts, ends = [0.0] * len(arrivals), [0.0] * len(arrivals)
        waiting: deque[int] = deque()
        running: dict[int, int] = {}
        now, coming = 0.0, 0
        while coming < len(arrivals) or waiting or running:
            while coming < len(arrivals) and arrivals[coming] <= now:
                waiting.append(coming)
                coming += 1
            if not waiting and not running:
                now = arrivals[coming]
                continue
            taken = waiting.popleft() if waiting and len(running) < self.limit else None
            now += self.step_s + self.sequence_s * len(running) + (self.prefill_s if taken is not None else 0)
            for index in list(running):
                running[index] -= 1
                if not running[index]:
                    ends[index] = now
                    del running[index]
            if taken is not None:
                firsts[taken] = now
                running[taken] = self.tokens - 1
        return list(zip(firsts, ends, strict=True))


class QueueServer:
    """Execute the plans of a rate study on a queue; `ran` keeps every plan, in order.

    `alone_s` is what a request alone takes, which the baseline shows.
    """

    def __init__(self, contract: Contract, serve: Serve, alone_s: float = 1.0, seed: int = 1) -> None:
        self._contract = contract
        self._serve = serve
        self._alone_s = alone_s
        self._draws = random.Random(seed)
        self.ran: list[TrialPlan] = []

    def __call__(self, plan: TrialPlan) -> TrialResult:
        self.ran.append(plan)
        if plan.arrivals is None:
            itl_ns = round(self._alone_s * 1e9 / Shape(1000, 11).output_tokens)
            rows = closed_loop(1, plan.requests, warmup=plan.warmup, ttft=lambda _: itl_ns, itl_ns=itl_ns)
            return self._judged(plan, rows)
        return self._judged(plan, self._open(plan))

    def _judged(self, plan: TrialPlan, rows: Sequence[RequestRow]) -> TrialResult:
        return evaluate(evidence(rows, contract=self._contract, plan=plan, timelines=[], clock="virtual"))

    def _open(self, plan: TrialPlan) -> list[RequestRow]:
        stage = stages_of(plan)[-1]
        due_ns = [stage.schedule.due_ns(offset) or 0 for offset in range(plan.requests)]
        served = self._serve([at / 1e9 for at in due_ns], self._draws)
        rows = []
        for offset, (first_s, end_s) in enumerate(served):
            sent = 10 * S + due_ns[offset]
            first = max(sent + 1, 10 * S + round(first_s * 1e9))
            last = max(first, 10 * S + round(end_s * 1e9))
            row = ok_row(stage.first_index + offset, sent, ttft_ns=first - sent, itl_ns=(last - first) // 10)
            rows.append(structs.replace(row, slot=None))
        return rows

    @property
    def requests(self) -> int:
        return sum(plan.requests + plan.warmup for plan in self.ran)
