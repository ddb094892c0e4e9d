"""Gates by mutation: from sound facts, each single change trips exactly its own gate."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from nameplate.contract.identity import IdentityChange
from nameplate.contract.slo import Slo
from nameplate.verdict.facts import CounterCheck, LoopCount, PromptRange, TrialFacts
from nameplate.verdict.gate import CONTRACT, LOAD, MEANING, SUSTAINED, Gate, gate_of_failure
from nameplate.verdict.gates import judge_gates
from nameplate.verdict.tolerances import cached_range, lateness_budget_ns, prompt_length

SOUND = TrialFacts(
    clock="live",
    planned=64,
    sent=64,
    ok=64,
    failed=0,
    cancelled=0,
    unfinished=0,
    prompt_asked=8192,
    prompt=PromptRange(8190, 8195, 64),
    cached=PromptRange(0, 16, 64),
    template_floor_tokens=16,
    block_size_tokens=16,
    extra_requests_seen=0,
    counters=(CounterCheck("requests", 72, 72), CounterCheck("output_tokens", 100, 100)),
    loops=LoopCount(judged=64, looped=0, unknown=0),
    preemptions=0,
    arrival_doubt_p99_ns=1_000_000,
    send_lag_p99_ns=1_000_000,
    lateness_budget_ns=2_000_000,
    concurrency=7,
    concurrency_max=7,
    below_share=0.0,
)

CHANGED = IdentityChange("version", "changed", "1", "2")
LOST = IdentityChange("version", "unverified", "1", None)

MUTATIONS: list[tuple[Gate, str, dict[str, Any]]] = [
    *[(gate, "fail", {"load_failures": {gate.value: 1}, "ok": 63, "failed": 1}) for gate in LOAD],
    (Gate.outstanding, "fail", {"open_loop": True, "outstanding_limit": 64}),
    (Gate.arrivals, "invalid", {"open_loop": True, "not_delivered": "63 of 64 planned requests were sent"}),
    (Gate.all_ended, "inconclusive", {"ok": 63, "cancelled": 1}),
    (Gate.all_ended, "inconclusive", {"ok": 63, "unfinished": 1}),
    (Gate.all_ended, "inconclusive", {"ok": 63, "sent": 63}),
    (Gate.bad_request, "invalid", {"bad_requests": 1, "ok": 63, "failed": 1}),
    (Gate.warmup, "invalid", {"warmup_failed": 1}),
    (Gate.output_length, "invalid", {"wrong_output_length": 1}),
    (Gate.output_length, "unverified", {"output_length_unknown": 64}),
    (Gate.finish_reason, "invalid", {"wrong_finish": 1}),
    (Gate.finish_reason, "unverified", {"finish_unknown": 64}),
    (Gate.empty_output, "invalid", {"empty_outputs": 1}),
    (Gate.input_length, "invalid", {"prompt_wrong": 1}),
    (Gate.input_length, "unverified", {"prompt": None}),
    (Gate.cached_tokens, "invalid", {"cached_beyond": 1}),
    (Gate.cached_tokens, "unverified", {"cached": None}),
    (Gate.cached_tokens, "invalid", {"cached": None, "cached_by_counter": 72 * 33, "counter_requests": 72}),
    (Gate.unique_prompts, "invalid", {"duplicate_prompts": 1}),
    (Gate.unique_outputs, "invalid", {"duplicate_outputs": 1, "outputs_must_differ": True}),
    (Gate.looping, "invalid", {"loops": LoopCount(64, 4, 0), "outputs_must_not_loop": True}),
    (Gate.looping, "unverified", {"loops": LoopCount(60, 0, 4)}),
    (Gate.looping, "unverified", {"loops": None}),
    (Gate.no_other_traffic, "invalid", {"extra_requests_seen": 1}),
    (Gate.no_other_traffic, "unverified", {"extra_requests_seen": None}),
    (Gate.server_counters, "invalid", {"counters": (CounterCheck("requests", 73, 72),)}),
    (Gate.server_counters, "invalid", {"counters": (CounterCheck("output_tokens", 99, 100),)}),
    (Gate.server_counters, "unverified", {"counters": (CounterCheck("requests", None, 72),)}),
    (
        Gate.server_counters,
        "unverified",
        {"counters": (CounterCheck("prompt_tokens", 101, 100),), "preemptions": 1},
    ),
    (Gate.identity, "invalid", {"identity_changes": (CHANGED,)}),
    (Gate.identity, "invalid", {"counters_fell": ("preemptions_total",)}),
    (Gate.identity, "unverified", {"identity_changes": (LOST,)}),
    (Gate.identity, "unverified", {"identity_known": False}),
    (Gate.client_lateness, "invalid", {"arrival_doubt_p99_ns": 2_000_001.0}),
    (Gate.client_lateness, "invalid", {"send_lag_p99_ns": 2_000_001.0}),
    (Gate.client_lateness, "invalid", {"send_lag_share": 0.0051}),
    (Gate.client_lateness, "unverified", {"arrival_doubt_p99_ns": None}),
    (Gate.concurrency, "invalid", {"concurrency_max": 8}),
    (Gate.concurrency, "invalid", {"below_share": 0.0101}),
    (Gate.concurrency, "invalid", {"below_share": 0.5, "underfilled_share": 0.0101}),
    (Gate.evidence, "invalid", {"damage": ("reads.zst is torn",)}),
    (Gate.evidence, "invalid", {"planned": 63}),
]

# What a changed fact also moves, because the fact is about it too.
ALSO: dict[Gate, set[Gate]] = {
    gate: {Gate.server_counters} for gate in (*LOAD, Gate.all_ended, Gate.bad_request, Gate.warmup)
}


def statuses(facts: TrialFacts, *, error_rate_decides: bool = False) -> dict[Gate, str]:
    return {r.gate: r.status for r in judge_gates(facts, error_rate_decides=error_rate_decides)}


def test_sound_facts_pass_every_gate() -> None:
    """Every gate has a result, those of a rate study where one is asked for, and all pass."""
    found = statuses(SOUND)
    assert set(found) == {*LOAD, *CONTRACT, Gate.all_ended, Gate.outstanding}
    assert {*found, *SUSTAINED} == set(Gate) == set(MEANING)
    assert set(found.values()) == {"pass"}


@pytest.mark.parametrize(("gate", "status", "change"), MUTATIONS)
def test_each_fault_trips_its_own_gate(gate: Gate, status: str, change: dict[str, Any]) -> None:
    """One changed fact changes one gate, to the status that it must have."""
    found = statuses(structs.replace(SOUND, **change))
    assert found[gate] == status
    others = {name for name, value in found.items() if value != "pass"} - {gate}
    assert others <= ALSO.get(gate, set())


def test_every_gate_has_a_mutation() -> None:
    """No gate is left that nothing can trip; those of a rate study have tests of their own."""
    assert {gate for gate, _, _ in MUTATIONS} == set(Gate) - set(SUSTAINED)


def test_an_error_rate_replaces_the_load_gates() -> None:
    """With an error_rate SLO load failures are counted, not judged; broken contracts still are."""
    facts = structs.replace(SOUND, load_failures={"reset": 2}, ok=62, failed=2, warmup_failed=1)
    found = statuses(facts, error_rate_decides=True)
    assert found[Gate.reset] == "pass" and found[Gate.warmup] == "invalid"


def test_sums_that_do_not_add_up_are_damage() -> None:
    """sent = ok + failed + cancelled + unfinished is held in every trial."""
    assert statuses(structs.replace(SOUND, ok=63))[Gate.evidence] == "invalid"


def test_repeated_outputs_count_only_against_a_unique_baseline() -> None:
    """A greedy toy model repeats itself, and that is no fault."""
    assert statuses(structs.replace(SOUND, duplicate_outputs=9))[Gate.unique_outputs] == "pass"


@pytest.mark.parametrize(
    ("judged", "looped", "limit", "status"),
    [
        (64, 3, 0.05, "pass"),
        (60, 3, 0.05, "pass"),
        (59, 3, 0.05, "invalid"),
        (1, 1, 0.05, "invalid"),
        (64, 1, 0.0, "invalid"),
        (64, 64, 1.0, "pass"),
        (0, 0, 0.05, "pass"),
    ],
)
def test_more_loops_than_the_limit_are_invalid(judged: int, looped: int, limit: float, status: str) -> None:
    """The share is of the answers that are long enough to be judged; none that is leaves nothing to judge."""
    facts = structs.replace(
        SOUND, loops=LoopCount(judged, looped, 0), loop_limit=limit, outputs_must_not_loop=True
    )
    assert statuses(facts)[Gate.looping] == status


def test_loops_count_only_against_a_baseline_without() -> None:
    """A greedy toy model loops always, and its capacity can still be measured."""
    assert statuses(structs.replace(SOUND, loops=LoopCount(64, 64, 0)))[Gate.looping] == "pass"


def test_an_empty_slot_is_no_fault_while_requests_fail() -> None:
    """Refused requests leave slots empty; the trial fails by its load gate and is not invalid."""
    facts = structs.replace(SOUND, below_share=0.9, load_failures={"rejected": 60}, ok=4, failed=60)
    found = statuses(facts)
    assert found[Gate.concurrency] == "unverified" and found[Gate.rejected] == "fail"
    assert "invalid" not in found.values()


def test_unobserved_coldness_is_labelled() -> None:
    """Absent cached tokens are unknown, not zero: valid, and labelled."""
    results = judge_gates(structs.replace(SOUND, cached=None))
    cached = next(result for result in results if result.gate is Gate.cached_tokens)
    assert cached.detail == "cold by construction, not observed"


@pytest.mark.parametrize(
    ("outcome", "status", "gate"),
    [
        ("ok", 200, None),
        ("cancelled", None, None),
        ("unfinished", 200, None),
        ("http_error", 429, Gate.rejected),
        ("http_error", 503, Gate.rejected),
        ("http_error", 500, Gate.server_error),
        ("http_error", 408, Gate.server_error),
        ("http_error", None, Gate.server_error),
        ("http_error", 400, Gate.bad_request),
        ("http_error", 302, Gate.bad_request),
        ("stream_error", 200, Gate.stream_error),
        ("truncated", 200, Gate.stream_error),
        ("ended_without_marker", 200, Gate.stream_error),
        ("malformed", 200, Gate.stream_error),
        ("reset", None, Gate.reset),
        ("connect_failed", None, Gate.refused),
        ("timed_out_first_output", 200, Gate.timeout),
        ("timed_out_total", 429, Gate.timeout),
    ],
)
def test_each_outcome_has_its_gate(outcome: str, status: int | None, gate: Gate | None) -> None:
    """Every failed request counts under exactly one gate."""
    assert gate_of_failure(outcome, status) is gate


def test_an_unknown_outcome_is_refused() -> None:
    """The list of outcomes is closed."""
    with pytest.raises(ValueError):
        gate_of_failure("fine", 200)


@pytest.mark.parametrize(
    ("asked", "counted", "expected"),
    [
        (8192, 8232, "ok"),
        (8192, 8233, "warned"),
        (8192, 8355, "warned"),
        (8192, 8356, "wrong"),
        (8192, 8028, "wrong"),
        (100, 108, "ok"),
        (100, 109, "wrong"),
    ],
)
def test_prompt_lengths_have_two_tolerances(asked: int, counted: int, expected: str) -> None:
    """Within max(8, 0.5%) ok, beyond 2% wrong, between them warned."""
    assert prompt_length(asked, counted) == expected


def test_cached_tokens_have_a_range() -> None:
    """Cold: up to the floor and one block; with a shared prefix: one block to either side."""
    assert cached_range(0, 16, 16) == (0, 32)
    assert cached_range(2048, 16, 16) == (2032, 2080)


def test_the_lateness_budget_follows_the_tightest_limit() -> None:
    """max(2 ms, 1% of the tightest time limit); 5 ms where no SLO has one."""
    parse = Slo.parse
    assert lateness_budget_ns([parse("ttft p95 < 10s"), parse("e2e p95 < 60s")]) == 100_000_000
    assert lateness_budget_ns([parse("itl p99 < 50ms")]) == 2_000_000
    assert lateness_budget_ns([parse("error_rate < 1%")]) == 5_000_000


def test_held_streams_may_be_sent_one_after_the_other() -> None:
    """A ramp's last send is late by all before it; for held streams only time without a request counts."""
    facts = structs.replace(SOUND, send_lag_p99_ns=50_000_000.0, send_lag_share=0.005)
    (result,) = [result for result in judge_gates(facts) if result.gate == Gate.client_lateness]
    assert result.status == "pass"
