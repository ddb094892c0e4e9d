"""The trial summary: golden, what is absent, what is hostile."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.plan import TrialPlan
from nameplate.engines.state import ServerSample
from nameplate.measure.result import evaluate
from nameplate.measure.tests.trials import (
    MS,
    SHAPE,
    S,
    closed_loop,
    contract,
    evidence,
    late,
    ok_row,
    open_loop,
)
from nameplate.report.tests.rendering import hold_golden, run_trial, text_of
from nameplate.report.trial import trial_summary

DIRECTORY = "runs/trial-1/trials/confirmation.c8.t1"


@pytest.mark.parametrize("width", [80, 120])
def test_the_summary_reads_as_agreed(width: int) -> None:
    """The whole summary is as a person once found it good."""
    samples = [ServerSample(t, running=6, waiting=2, kv_usage_mean=0.25) for t in range(5 * S, 10 * S, S)]
    rows = closed_loop(8, 64, ttft=lambda n: (n + 1) * 2400 * MS if n < 8 else 200 * MS)
    plan = TrialPlan("confirmation.c8.t1", "confirmation", SHAPE, 8, 64, 2)
    result = evaluate(
        evidence(rows, concurrency=8, plan=plan, contract=contract("ttft p95 < 12s"), samples=samples)
    )
    hold_golden(f"trial_{width}", text_of(trial_summary(result, DIRECTORY), width))


@pytest.mark.parametrize("width", [80, 120])
def test_the_summary_of_an_open_loop_reads_as_agreed(width: int) -> None:
    """Its arrivals, what was in flight, and latency from schedule first."""
    plan = TrialPlan("64.r20", "single", SHAPE, 4096, 200, 2, arrivals=ArrivalPlan(rate=20.0))
    rows = [late(row, row.scheduled_ns + (row.index % 7) * 50_000) for row in open_loop(plan)]
    result = evaluate(evidence(rows, plan=plan, contract=contract("ttft p95 < 1s")))
    hold_golden(f"trial_open_{width}", text_of(trial_summary(result, DIRECTORY), width))


def test_an_open_loop_that_was_ended_or_not_delivered_says_so() -> None:
    """The limit that ended a load, and a test that its arrivals failed, stand in the line of arrivals."""
    plan = TrialPlan("64.r20", "single", SHAPE, 4096, 200, 2, arrivals=ArrivalPlan(rate=20.0))
    ended = evaluate(evidence(open_loop(plan)[:90], plan=plan, overrun=True))
    text = " ".join(text_of(trial_summary(ended, DIRECTORY), 120).split())
    assert text.startswith("fail: ")
    assert "90 of 200 sent" in text and "ended by the limit of outstanding requests" in text
    bunched = [late(row, -(-row.scheduled_ns // S) * S + row.index) for row in open_loop(plan)]
    text = text_of(trial_summary(evaluate(evidence(bunched, plan=plan)), DIRECTORY), 120)
    assert text.startswith("invalid: ") and "gaps NOT HELD" in " ".join(text.split())


def test_a_trial_without_an_slo_says_that_the_gates_decide() -> None:
    """The first line names what decided."""
    result = evaluate(evidence(contract=structs.replace(contract(), slos=())))
    assert "no SLO was given, so the gates alone decide" in " ".join(
        text_of(trial_summary(result, DIRECTORY)).splitlines()[:3]
    )


def test_a_single_user_has_its_own_rates() -> None:
    """Concurrency one shows prefill and decode with their definitions."""
    text = text_of(trial_summary(run_trial("baseline", 1, 1), DIRECTORY), 120)
    assert "prefill, counted" in text and "asked length / median TTFT" in text and "decode, one user" in text


def test_nothing_at_all_is_shown_as_nothing() -> None:
    """A trial of which nothing was recorded has dashes and reasons, and no zero rate."""
    result = evaluate(evidence([], timelines=[], since_empty_ns=[], arrival_doubt_ns=[], ended_ns=S))
    text = text_of(trial_summary(result, DIRECTORY))
    assert "its window is empty" in text and "Gates that do not pass" in text
    assert " 0 tok/s" not in text


def test_failures_are_counted_and_their_words_are_harmless() -> None:
    """Outcomes, gates and finish reasons of a hostile server are text, and bounded."""
    rows = [
        ok_row(n, S + n * MS, phase="opening", slot=n, finish_reason=f"\x1b[2J[red]{n}\n") for n in range(40)
    ]
    rows[3] = structs.replace(rows[3], outcome="stream_error", error="\x1b]0;x\x07", last_output_ns=None)
    result = evaluate(evidence(rows, concurrency=40, requests=40))
    text = text_of(trial_summary(result, DIRECTORY), 120)
    assert "\x1b" not in text and "\x07" not in text
    assert "[red]" in text and "more kinds" in text
    assert "stream_error" in text


def test_an_interrupted_trial_says_so() -> None:
    """What an interrupt left is marked."""
    result = structs.replace(run_trial("single", 4, 1), interrupted=True)
    assert "The trial was interrupted" in text_of(trial_summary(result, DIRECTORY))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Nothing wraps by itself."""
    text = text_of(trial_summary(run_trial("confirmation", 9, 1), DIRECTORY), width)
    assert max(map(len, text.splitlines())) <= width
