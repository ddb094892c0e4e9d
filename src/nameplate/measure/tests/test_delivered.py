"""Whether a plan of arrivals was delivered: honest plans are, and what was thinned, bunched or doubled is not."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.arrivals import ArrivalKind, ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.evidence.rows import RequestRow
from nameplate.measure.delivered import Delivered, measure_delivered
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.tests.trials import MS, SHAPE, S, evidence, late, open_loop
from nameplate.verdict.gate import Gate

KINDS: list[ArrivalKind] = ["constant", "poisson", "gamma"]
WARMUP = 2


def plan_of(
    requests: int, rate: float = 20.0, kind: ArrivalKind = "poisson", seed: int = 42, burstiness: float = 0.5
) -> TrialPlan:
    arrivals = ArrivalPlan(kind=kind, rate=rate, seed=seed, burstiness=burstiness)
    return TrialPlan("t", "single", SHAPE, 4096, requests, WARMUP, arrivals=arrivals)


def delivered(plan: TrialPlan, rows: list[RequestRow], *, overrun: bool = False) -> Delivered:
    found = measure_delivered(plan, rows, overrun=overrun)
    assert found is not None
    return found


def judged(plan: TrialPlan, rows: list[RequestRow], **more: object) -> TrialResult:
    return evaluate(evidence(rows, plan=plan, concurrency=4096, requests=plan.requests, **more))


@settings(max_examples=150, deadline=None)
@example(kind="constant", rate=1e-3, requests=101, burstiness=0.05, seed=0)
@given(
    kind=st.sampled_from(KINDS),
    rate=st.sampled_from([1e-3, 0.3, 7.0, 150.0, 3000.0]),
    requests=st.one_of(st.integers(0, 40), st.integers(100, 800)),
    burstiness=st.sampled_from([0.05, 0.2, 0.5, 1.0, 3.0, 40.0]),
    seed=st.integers(0, 2**63),
)
def test_an_honest_plan_is_delivered(
    kind: ArrivalKind, rate: float, requests: int, burstiness: float, seed: int
) -> None:
    """What was sent as planned, up to a millisecond or a fifth of a gap late, has no fault, whatever its process, rate,
    length and seed."""
    plan = plan_of(requests, rate, kind, seed, burstiness)
    source = random.Random(seed)
    rows = [
        late(row, row.scheduled_ns + source.randrange(min(MS, round(0.2 * S / rate))))
        for row in open_loop(plan)
    ]
    found = delivered(plan, rows)
    assert found.fault == "", found
    assert (found.planned, found.sent, found.planned_rate) == (requests, requests, rate)
    assert (found.rate is None) == (found.tests is None) == (requests < 2)


def test_an_honest_trial_passes() -> None:
    """The gate holds, and no limit of concurrency is asked of an open loop."""
    plan = plan_of(200)
    result = judged(plan, open_loop(plan))
    assert result.gate(Gate.arrivals).status == "pass"
    assert result.gate(Gate.concurrency).status == "pass"
    assert result.verdict.status == "pass"


def test_a_closed_loop_has_no_arrivals() -> None:
    """Of a closed loop nothing is told, and the gate says so."""
    result = evaluate(evidence())
    assert result.measurement.delivered is None
    assert "closed loop" in result.gate(Gate.arrivals).detail


@pytest.mark.parametrize("missing", [1, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_missing_sends_are_not_the_plan(kind: ArrivalKind, missing: int) -> None:
    """One request that was never started is a plan that was not delivered, and the trial is invalid."""
    plan = plan_of(120, kind=kind)
    rows = open_loop(plan)[: 120 - missing]
    result = judged(plan, rows)
    assert result.gate(Gate.arrivals).status == "invalid"
    assert f"{120 - missing} of 120" in result.gate(Gate.arrivals).detail
    assert result.verdict.status == "invalid"


def test_a_load_that_ended_at_its_limit_is_no_fault_of_the_client() -> None:
    """Where the outstanding limit ended the load, what was sent is the plan's beginning, and the trial fails."""
    plan = plan_of(120)
    rows = open_loop(plan)[:70]
    assert delivered(plan, rows, overrun=True).fault == ""
    result = judged(plan, rows, overrun=True)
    assert result.gate(Gate.arrivals).status == "pass"
    assert result.gate(Gate.outstanding).status == "fail"
    assert result.verdict.status == "fail"


def test_an_interrupted_load_is_no_fault_of_the_client() -> None:
    """What a person ended is inconclusive: what was sent until then is the plan's beginning."""
    plan = plan_of(120)
    rows = open_loop(plan)[:70]
    result = judged(plan, rows, interrupted=True)
    assert result.gate(Gate.arrivals).status == "pass"
    assert result.gate(Gate.all_ended).status == result.verdict.status == "inconclusive"


@pytest.mark.parametrize("kind", KINDS)
def test_bunched_sends_are_not_the_plan(kind: ArrivalKind) -> None:
    """Sends that wait and then leave together are another load than was asked for."""
    plan = plan_of(200, kind=kind, burstiness=2.0)
    rows = [late(row, -(-row.scheduled_ns // S) * S + row.index) for row in open_loop(plan)]
    assert "of the arrivals" in delivered(plan, rows).fault
    assert judged(plan, rows).verdict.status == "invalid"


@pytest.mark.parametrize("requests", [2, 3, 50])
def test_all_sent_at_one_moment_is_not_the_plan(requests: int) -> None:
    """Even to the same nanosecond."""
    plan = plan_of(requests)
    rows = [late(row, 99 * S) for row in open_loop(plan)]
    assert delivered(plan, rows).fault


@pytest.mark.parametrize("kind", KINDS)
def test_two_workers_with_one_seed_are_not_the_plan(kind: ArrivalKind) -> None:
    """The same gaps sent twice, half as often each, keep the rate and are still not the plan."""
    plan = plan_of(300, kind=kind)
    half = open_loop(plan_of(150, rate=10.0, kind=kind))
    rows = [structs.replace(row, index=WARMUP + 2 * n + k) for n, row in enumerate(half) for k in (0, 1)]
    assert delivered(plan, rows).fault
    result = judged(plan, rows)
    assert result.gate(Gate.arrivals).status == "invalid"


@pytest.mark.parametrize(("kind", "factor"), [(kind, f) for kind in KINDS for f in (0.5, 1.5)])
def test_another_rate_is_not_the_plan(kind: ArrivalKind, factor: float) -> None:
    """A load of half or one and a half times the rate is found by its count."""
    plan = plan_of(400, kind=kind)
    rates = open_loop(plan_of(400, rate=20.0 * factor, kind=kind))
    rows = [late(row, other.scheduled_ns) for row, other in zip(open_loop(plan), rates, strict=True)]
    assert "count" in delivered(plan, rows).fault


def test_a_closed_loop_in_disguise_is_not_the_plan() -> None:
    """Requests that are sent as soon as another one ends are evenly spread, and Poisson arrivals are not."""
    plan = plan_of(300)
    rows = [late(row, 10 * S + n * 50 * MS) for n, row in enumerate(open_loop(plan))]
    fault = delivered(plan, rows).fault
    assert "gaps" in fault and "dispersion" in fault


@pytest.mark.parametrize("requests", [0, 1])
def test_below_two_requests_nothing_is_tested(requests: int) -> None:
    """A single request has no gap and no rate: both are null, and there is no fault."""
    plan = plan_of(requests)
    found = delivered(plan, open_loop(plan))
    assert found.rate is None and found.tests is None and found.fault == ""


def test_the_times_are_those_of_the_plan_itself() -> None:
    """Arrivals of the right kind and rate that are not this plan's, by another seed or order, are found."""
    plan = plan_of(100)
    other = open_loop(plan_of(100, seed=43))
    assert "when the plan" in delivered(plan, other).fault
    rows = open_loop(plan)
    rows[50] = structs.replace(rows[50], scheduled_ns=rows[50].scheduled_ns + 1)
    assert "1 of 100" in delivered(plan, rows).fault


def test_each_worker_has_its_own_beginning() -> None:
    """Workers begin a moment apart; each one's share keeps its own distances to the nanosecond."""
    plan = plan_of(200)
    rows = [
        structs.replace(
            row,
            worker=n % 2,
            scheduled_ns=row.scheduled_ns + (n % 2) * 700_000,
            sent_ns=row.scheduled_ns + (n % 2) * 700_000,
        )
        for n, row in enumerate(open_loop(plan))
    ]
    assert delivered(plan, rows).fault == ""
