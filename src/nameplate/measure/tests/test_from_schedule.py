"""From when a request's wait counts: in an open loop from when it was due, in a closed one from when it was sent."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.samples import bounds_of, from_schedule
from nameplate.measure.tests.trials import MS, SHAPE, S, closed_loop, contract, evidence, late, open_loop

PLAN = TrialPlan("t", "single", SHAPE, 4096, 64, 2, arrivals=ArrivalPlan(rate=5.0))


def delayed(rows: list[RequestRow]) -> list[RequestRow]:
    """Let each be sent 80 ms after it was due, while its output comes when it came before."""
    return [late(row, row.scheduled_ns + 80 * MS) for row in rows]


def judged(rows: list[RequestRow], *slos: str, plan: TrialPlan | None) -> TrialResult:
    closed = TrialPlan("t", "single", SHAPE, 4, 64, 2)
    return evaluate(evidence(rows, contract=contract(*slos), plan=plan or closed))


@pytest.mark.parametrize(("metric", "from_due_ns"), [("ttft", 100 * MS), ("e2e", 200 * MS)])
def test_an_open_loop_is_judged_from_schedule(metric: str, from_due_ns: int) -> None:
    """TTFT and E2E count from when the plan wanted a request sent, however late it was."""
    result = judged(delayed(open_loop(PLAN)), f"{metric} p95 < 10s", plan=PLAN)
    assert result.verdict.slos[0].whole.best == result.verdict.slos[0].whole.worst == from_due_ns
    assert result.measurement.latencies.whole.ttft_from_schedule.p95 == 100 * MS
    assert result.measurement.latencies.whole.ttft.p95 == 20 * MS


def test_a_closed_loop_is_judged_from_sending() -> None:
    """There the client chooses when a request begins, and its own delay is no wait of anybody."""
    rows = delayed(closed_loop(4, 64))
    result = judged(rows, "ttft p95 < 10s", plan=None)
    assert result.verdict.slos[0].whole.worst == 20 * MS


def test_the_client_s_delay_can_fail_an_open_loop() -> None:
    """An SLO that holds from sending and not from schedule does not hold, and the client is named beside it."""
    result = judged(delayed(open_loop(PLAN)), "ttft p95 < 50ms", plan=PLAN)
    assert result.verdict.slos[0].status == "fail"
    assert result.verdict.status == "invalid"


@pytest.mark.parametrize("metric", ["ttft", "e2e"])
def test_what_was_due_and_never_sent_has_waited(metric: str) -> None:
    """A request that was cut before it could be sent waited from its schedule on, not for no time at all."""
    row = structs.replace(
        open_loop(PLAN)[0],
        sent_ns=None,
        body_sent_ns=None,
        first_output_ns=None,
        last_output_ns=None,
        outcome="cancelled",
    )
    row = structs.replace(row, end_ns=row.scheduled_ns + 3 * S)
    (open_row,) = from_schedule([row])
    bounds = bounds_of(open_row, metric, 0)  # type: ignore[arg-type]
    assert bounds is not None and bounds.best == 3 * S and bounds.worst == float("inf")
