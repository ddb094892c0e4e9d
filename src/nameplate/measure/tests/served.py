"""Results of trials whose server says what it did with them."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from nameplate.contract.plan import Role, TrialPlan
from nameplate.engines.state import ServerSample
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.tests.trials import MS, SHAPE, S, closed_loop, contract, evidence


def trial(
    concurrency: int,
    ttft_ns: int,
    queue_ns: int | None,
    prefill_ns: int = 100 * MS,
    *,
    role: Role = "confirmation",
    slo: str = "ttft p95 < 150ms",
    waiting: int | None = None,
    itl_ns: int = 10 * MS,
    **more: Any,
) -> TrialResult:
    """Return a trial of requests that all take this long, with a server that says these times of each."""
    requests = 10 if role == "baseline" else 64
    rows = closed_loop(concurrency, requests, warmup=0, ttft=lambda _: ttft_ns, itl_ns=itl_ns)
    plan = TrialPlan(f"{role}.c{concurrency}", role, SHAPE, concurrency, requests, 0, alone_ttft_ns=None)
    values: dict[str, Any] = {"plan": plan, "contract": contract(slo)}
    if queue_ns is not None:
        values["idle_before"] = ServerSample(0, 0, 0, queue_s=(0.0, 0), prefill_s=(0.0, 0))
        times = [(value * requests / S, requests) for value in (queue_ns, prefill_ns)]
        values["idle_after"] = ServerSample(1000 * S, 0, 0, queue_s=times[0], prefill_s=times[1])
    if waiting is not None:
        held = [ServerSample(2 * S + at * 50 * MS, concurrency - waiting, waiting) for at in range(8)]
        values["samples"] = held
    return evaluate(
        structs.replace(evidence(rows, concurrency=concurrency, requests=requests), **values, **more)
    )
