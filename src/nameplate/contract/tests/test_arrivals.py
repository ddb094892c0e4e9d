"""What arrivals are asked for: rates, ramps and steps as they are written, and plans of earlier versions."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.arrivals import ArrivalPlan, RatePart
from nameplate.contract.errors import CallerError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.trace import TracePlan, TraceRow, TraceRows

S = 10**9


def test_a_ramp_is_read() -> None:
    """FROM:TO:DURATION; its rate is the mean one, and it has no steady state."""
    plan = ArrivalPlan.parse_ramp("1:20:5m", "gamma:0.5", 7, 99)
    assert plan.ramp == RatePart(1.0, 20.0, 300 * S) and plan.rate == 10.5
    assert (plan.kind, plan.burstiness, plan.seed, plan.outstanding_limit) == ("gamma", 0.5, 7, 99)
    assert not plan.steady and plan.parts == (plan.ramp,)
    assert str(plan) == "gamma arrivals of shape 0.5 from 1 to 20 requests/s in 5 min"


def test_steps_are_read() -> None:
    """RATExDURATION after RATExDURATION; 0 is a pause, and the rate is the mean over all time."""
    plan = ArrivalPlan.parse_steps("2x60s, 10x30s,0x10s", "constant", 42, 99)
    assert plan.steps == (RatePart(2, 2, 60 * S), RatePart(10, 10, 30 * S), RatePart(0, 0, 10 * S))
    assert plan.rate == pytest.approx(4.2) and not plan.steady
    assert str(plan) == "constant arrivals in steps: 2 for 60 s, 10 for 30 s, 0 for 10 s requests/s"


@pytest.mark.parametrize(
    ("ramp", "words"),
    [
        ("1:20", "FROM:TO:DURATION"),
        ("1:20:5m:9", "FROM:TO:DURATION"),
        ("", "FROM:TO:DURATION"),
        ("a:20:5m", "'a' in --ramp is not a rate"),
        ("1:-2:5m", "'-2' in --ramp is not a rate"),
        ("1:nan:5m", "not a rate"),
        ("1:20:5", "not a duration"),
        ("0:0:5m", "Nothing would arrive"),
        ("1:2:0s", "Nothing would arrive"),
    ],
)
def test_what_is_no_ramp_is_refused(ramp: str, words: str) -> None:
    """Each mistake is named."""
    with pytest.raises(CallerError, match=words):
        ArrivalPlan.parse_ramp(ramp, "poisson", 42, 99)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("2", "RATExDURATION"),
        ("2x60s,,", "RATExDURATION"),
        ("2x60", "not a duration"),
        ("2x0s", "no duration"),
        ("xx60s", "'' in --steps is not a rate"),
        ("-1x60s", "not a rate"),
        ("0x60s,0x1s", "Nothing would arrive"),
    ],
)
def test_what_are_no_steps_is_refused(steps: str, words: str) -> None:
    """Each mistake is named."""
    with pytest.raises(CallerError, match=words):
        ArrivalPlan.parse_steps(steps, "poisson", 42, 99)


@pytest.mark.parametrize("kind", ["ramp:1:2:5m", "steps:2x60s", "trace"])
def test_who_asks_arrivals_for_a_rate_is_told_where_it_goes(kind: str) -> None:
    """`--arrivals` says how requests are spread; how fast they come has options of its own."""
    with pytest.raises(CallerError) as refused:
        ArrivalPlan.parse(1.0, kind, 42, 99)
    assert f"--{kind.partition(':')[0]} says how the rate runs" in refused.value.hint


def test_a_plan_of_an_earlier_version_is_read() -> None:
    """What knew neither ramps nor traces decodes to the same plan as today's."""
    old = b'{"kind":"gamma","rate":5.0,"burstiness":0.5,"seed":42,"outstanding_limit":4096}'
    plan = msgspec.json.decode(old, type=ArrivalPlan)
    assert plan == ArrivalPlan(kind="gamma", rate=5.0, burstiness=0.5) and plan.steady


ROWS = st.lists(
    st.builds(
        TraceRow,
        st.integers(0, 1 << 62),
        st.integers(1, (1 << 31) - 1),
        st.integers(1, (1 << 31) - 1),
        st.sampled_from(["", "a", "\x1b[2J", "ü"]),
        st.lists(st.integers(0, (1 << 64) - 1), max_size=4).map(tuple),
    ),
    max_size=9,
)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_rows_of_a_trace_are_kept_whole(rows: list[TraceRow]) -> None:
    """Packed and unpacked, and through JSON, every request is the same."""
    packed = TraceRows.of(rows, 16)
    assert list(packed) == rows and len(packed) == len(rows)
    again = msgspec.json.decode(msgspec.json.encode(packed), type=TraceRows)
    assert list(again) == rows and again.sha256 == packed.sha256


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_what_can_be_shared_is_at_least_what_is(rows: list[TraceRow]) -> None:
    """With any other request a request shares at least as much as with earlier ones, and never more than it has."""
    packed = TraceRows.of(rows, 16)
    for row, shared, shareable in zip(rows, packed.shared_tokens, packed.shareable_tokens, strict=True):
        assert shared <= shareable <= row.input_tokens
        others = [other for other in rows if other is not row]
        most = max(
            (
                sum(1 for n in range(1, len(row.blocks) + 1) if other.blocks[:n] == row.blocks[:n])
                for other in others
            ),
            default=0,
        )
        assert shareable == min(16 * most, row.input_tokens)


def test_a_plan_is_written_without_its_rows() -> None:
    """Files hold the digest of a trace's requests; with the rows again the plan is what it was."""
    rows = TraceRows.of([TraceRow(0, 5, 6)], None)
    trace = TracePlan(
        name="t", sha256="", format="jsonl", limit=9, read=1, requests=1, duration_ns=0,
        rows_sha256=rows.sha256, rows=rows,
    )  # fmt: skip
    arrivals = ArrivalPlan(kind="trace", rate=0.0, trace=trace)
    plan = TrialPlan("t", "single", Shape(5, 6), 4096, 1, 0, arrivals=arrivals)
    written = plan.as_written
    assert written.arrivals is not None and written.arrivals.trace is not None
    assert written.arrivals.trace.rows is None and written.with_rows(rows) == plan
    assert written.as_written is written
