"""Whether ramps, steps and recorded traces were delivered: judged by their own times, whatever their rate does."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.contract.trace import TracePlan, TraceRow, TraceRows
from nameplate.evidence.rows import RequestRow
from nameplate.measure.delivered import Delivered, measure_delivered
from nameplate.measure.result import evaluate
from nameplate.measure.tests.trials import MS, SHAPE, S, evidence, late, open_loop
from nameplate.schedule.stage import arrivals_planned
from nameplate.verdict.gate import Gate

SPREADS = ["constant", "poisson", "gamma:0.5", "gamma:4"]


def planned(arrivals: ArrivalPlan) -> TrialPlan:
    return TrialPlan("t", "single", SHAPE, 4096, arrivals_planned(arrivals), 2, arrivals=arrivals)


def ramp(text: str = "2:60:20s", spread: str = "poisson", seed: int = 42) -> TrialPlan:
    return planned(ArrivalPlan.parse_ramp(text, spread, seed, 4096))


def steps(text: str = "5x10s,60x5s,0x2s,10x5s", spread: str = "poisson", seed: int = 42) -> TrialPlan:
    return planned(ArrivalPlan.parse_steps(text, spread, seed, 4096))


def trace(times_ns: list[int]) -> TrialPlan:
    rows = TraceRows.of([TraceRow(at, SHAPE.input_tokens, SHAPE.output_tokens) for at in times_ns], None)
    named = TracePlan(
        name="t", sha256="", format="jsonl", limit=9, read=len(rows), requests=len(rows),
        duration_ns=rows.duration_ns, rows_sha256=rows.sha256, rows=rows,
    )  # fmt: skip
    return planned(ArrivalPlan(kind="trace", rate=len(rows) * 1e9 / max(1, rows.duration_ns), trace=named))


def delivered(plan: TrialPlan, rows: list[RequestRow]) -> Delivered:
    found = measure_delivered(plan, rows, overrun=False)
    assert found is not None
    return found


def a_trace(seed: int = 0, count: int = 300) -> TrialPlan:
    source = random.Random(seed)
    times, at = [], 0
    for _ in range(count):
        at += round(source.expovariate(1.0) * (20 if source.random() < 0.3 else 200) * MS)
        times.append(at)
    return trace(times)


PLANS: list[Callable[[], TrialPlan]] = [
    ramp,
    steps,
    a_trace,
    lambda: ramp(spread="constant"),
    lambda: steps(spread="constant"),
]


@settings(max_examples=12, deadline=None)
@given(
    text=st.sampled_from(
        ["2:60:20s", "60:2:20s", "0:300:4s", "300:0:4s", "0.01:0.03:10m", "400:900:1s", "5:5:9s"]
    ),
    spread=st.sampled_from(SPREADS),
    seed=st.integers(0, 2**63),
    workers=st.sampled_from([1, 3]),
)
def test_an_honest_ramp_is_delivered(text: str, spread: str, seed: int, workers: int) -> None:
    """Whatever its rates, its spread and its seed; by one worker, or by several that begin a moment apart."""
    arrivals = ArrivalPlan.parse_ramp(text, spread, seed, 4096)
    try:
        plan = planned(arrivals)
    except Exception:
        return
    source = random.Random(seed)
    rows = []
    for number, row in enumerate(open_loop(plan)):
        due = row.scheduled_ns + number % workers * 300_000
        moved = structs.replace(row, worker=number % workers, scheduled_ns=due)
        rows.append(late(moved, due + source.randrange(MS // 2)))
    found = delivered(plan, rows)
    assert found.fault == "", found


@settings(max_examples=25, deadline=None)
@given(times=st.lists(st.integers(0, 10**12), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_an_honest_trace_is_delivered(times: list[int], seed: int) -> None:
    """Any recorded times, also many at one moment, are a plan that can be delivered."""
    plan = trace(sorted(times))
    source = random.Random(seed)
    rows = [late(row, row.scheduled_ns + source.randrange(MS)) for row in open_loop(plan)]
    found = delivered(plan, rows)
    assert found.fault == "" and found.misplaced == 0
    assert (found.tests is None) == (len(times) < 2)


def test_an_honest_ramp_passes_and_its_queue_is_not_judged() -> None:
    """The gate holds; that more is outstanding at the end than at the beginning is what was asked for."""
    plan = ramp()
    result = evaluate(evidence(open_loop(plan), plan=plan, concurrency=4096, requests=plan.requests))
    assert result.gate(Gate.arrivals).status == "pass" and result.verdict.status == "pass"
    assert result.measurement.queueing is None
    assert not {warned.code for warned in result.warnings} & {"queue_rises", "latency_drifts"}
    assert result.measurement.delivered is not None
    assert result.measurement.delivered.planned_rate == pytest.approx(31, rel=0.05)


@pytest.mark.parametrize("plan_of", PLANS)
def test_missing_sends_are_not_the_plan(plan_of: Callable[[], TrialPlan]) -> None:
    """One request that was never started."""
    plan = plan_of()
    assert f"{plan.requests - 1} of {plan.requests}" in delivered(plan, open_loop(plan)[:-1]).fault


@pytest.mark.parametrize("plan_of", PLANS)
def test_bunched_sends_are_not_the_plan(plan_of: Callable[[], TrialPlan]) -> None:
    """Sends that wait for the next second and then leave together."""
    plan = plan_of()
    rows = [late(row, -(-row.scheduled_ns // S) * S + row.index) for row in open_loop(plan)]
    assert "of the arrivals" in delivered(plan, rows).fault


@pytest.mark.parametrize("plan_of", PLANS)
def test_an_even_rate_is_not_the_plan(plan_of: Callable[[], TrialPlan]) -> None:
    """As many requests over the same time, at one rate throughout."""
    plan = plan_of()
    rows = open_loop(plan)
    begin, end = rows[0].scheduled_ns, rows[-1].scheduled_ns
    even = [late(row, begin + (end - begin) * n // (len(rows) - 1)) for n, row in enumerate(rows)]
    assert "of the arrivals" in delivered(plan, even).fault


@pytest.mark.parametrize("plan_of", PLANS)
def test_a_load_that_slows_down_is_not_the_plan(plan_of: Callable[[], TrialPlan]) -> None:
    """Half as fast, in the plan's own proportions."""
    plan = plan_of()
    rows = open_loop(plan)
    begin = rows[0].scheduled_ns
    slow = [late(row, begin + 2 * (row.scheduled_ns - begin)) for row in rows]
    assert "count" in delivered(plan, slow).fault


def test_one_late_send_of_a_trace_is_let_pass_and_a_due_time_that_is_wrong_is_not() -> None:
    """Lateness has a gate of its own; the plan's times are held to the nanosecond."""
    plan = a_trace()
    rows = open_loop(plan)
    rows[100] = late(rows[100], rows[100].scheduled_ns + 30 * MS)
    assert delivered(plan, rows).fault == ""
    rows[50] = structs.replace(rows[50], scheduled_ns=rows[50].scheduled_ns + 1)
    assert "1 of 300 requests were not due when the plan" in delivered(plan, rows).fault
