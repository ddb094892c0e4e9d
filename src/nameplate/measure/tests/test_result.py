"""Results: from evidence to verdict by one pure function, and through JSON unharmed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.errors import EvidenceError
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import Rules
from nameplate.contract.slo import Slo
from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.measure.result import decode, encode, evaluate
from nameplate.measure.samples import bounds_of, lower_bounds
from nameplate.measure.tests.trials import (
    MS,
    SHAPE,
    S,
    closed_loop,
    contract,
    evidence,
    identity,
    ok_row,
)
from nameplate.statistics.censoring import Bounds
from nameplate.verdict.facts import LoopCount
from nameplate.verdict.gate import Gate
from nameplate.verdict.trial import failure_certain
from nameplate.verdict.warnings import Code
from nameplate.wire.events import Channel
from nameplate.wire.loop import Loop


def gates(**more: object) -> dict[Gate, str]:
    return {result.gate: result.status for result in evaluate(evidence(**more)).gates}  # type: ignore[arg-type]


def changed(position: int, **values: object) -> list[RequestRow]:
    rows = closed_loop(4, 64)
    rows[position] = structs.replace(rows[position], **values)
    return rows


def test_a_sound_trial_passes() -> None:
    """Sound evidence below the limit passes; only what the server does not tell is unverified."""
    result = evaluate(evidence())
    assert result.verdict.status == "pass"
    unverified = {held.gate for held in result.gates if held.status != "pass"}
    assert unverified == {Gate.no_other_traffic, Gate.server_counters}
    assert result.elapsed_s > 0


def test_a_slow_trial_fails_by_its_slo() -> None:
    """An opening wave above the limit owns the p95: 4 of 64."""
    rows = closed_loop(4, 64, ttft=lambda n: 20 * S if n < 4 else 100 * MS)
    result = evaluate(evidence(rows))
    assert result.verdict.status == "fail"
    assert result.verdict.slos[0].opening.over == 4 and result.verdict.slos[0].steady.over == 0


@pytest.mark.parametrize(
    ("gate", "status", "position", "values"),
    [
        (Gate.rejected, "fail", 9, {"outcome": "http_error", "http_status": 429}),
        (Gate.server_error, "fail", 9, {"outcome": "http_error", "http_status": 500}),
        (Gate.reset, "fail", 9, {"outcome": "reset"}),
        (Gate.timeout, "fail", 9, {"outcome": "timed_out_silence"}),
        (Gate.bad_request, "invalid", 9, {"outcome": "http_error", "http_status": 400}),
        (Gate.warmup, "invalid", 0, {"outcome": "reset"}),
        (Gate.all_ended, "inconclusive", 9, {"outcome": "cancelled"}),
        (Gate.output_length, "invalid", 9, {"output_tokens": 10}),
        (Gate.output_length, "unverified", 9, {"output_tokens_source": "estimated"}),
        (Gate.finish_reason, "invalid", 9, {"finish_reason": "stop"}),
        (Gate.finish_reason, "unverified", 9, {"finish_reason": None}),
        (Gate.empty_output, "invalid", 9, {"output_events": 0}),
        (Gate.input_length, "invalid", 9, {"prompt_tokens": 1021}),
        (Gate.cached_tokens, "invalid", 9, {"cached_tokens": 17}),
        (Gate.unique_prompts, "invalid", 9, {"prompt_sha256": closed_loop(4, 64)[0].prompt_sha256}),
        (Gate.unique_prompts, "invalid", 9, {"prompt_head_sha256": closed_loop(4, 64)[0].prompt_head_sha256}),
        (Gate.concurrency, "invalid", 9, {"sent_ns": S * 2}),
        (Gate.evidence, "invalid", 9, {"outcome": "fine"}),
    ],
)
def test_one_changed_row_trips_its_gate(
    gate: Gate, status: str, position: int, values: dict[str, Any]
) -> None:
    """Each fault of a single request is found by the gate that is named for it."""
    assert gates(rows=changed(position, **values))[gate] == status


def test_repeated_outputs_count_where_the_plan_says_so() -> None:
    """Duplicate outputs break the contract only after a baseline whose outputs were unique."""
    rows = changed(9, output_sha256=closed_loop(4, 64)[10].output_sha256)
    plan = TrialPlan("t", "single", SHAPE, 4, 64, 2, outputs_must_differ=True)
    assert gates(rows=rows)[Gate.unique_outputs] == "pass"
    assert gates(rows=rows, plan=plan)[Gate.unique_outputs] == "invalid"


def test_loops_count_where_the_plan_says_so() -> None:
    """Answers that loop break the contract only after a baseline without; else the trial warns of them."""
    rows = [
        structs.replace(
            row, longest_channel_chars=5000, loop=Loop(Channel.content, 3, 4999) if at % 8 else None
        )
        for at, row in enumerate(closed_loop(4, 64))
    ]
    plan = TrialPlan("t", "single", SHAPE, 4, 64, 2, outputs_must_not_loop=True)
    assert gates(rows=rows)[Gate.looping] == "pass"
    assert gates(rows=rows, plan=plan)[Gate.looping] == "invalid"
    result = evaluate(evidence(rows))
    looped = sum(row.loop is not None and row.measured for row in rows)
    assert result.facts.loops == result.measurement.correctness.loops == LoopCount(64, looped, 0)
    assert [warned.code for warned in result.warnings if warned.code is Code.looping] == [Code.looping]


def test_short_answers_are_not_judged_for_loops() -> None:
    """What is too short to judge does not count, and rows that do not tell leave the gate unverified."""
    result = evaluate(evidence(closed_loop(4, 64)))
    assert result.facts.loops == LoopCount(0, 0, 0)
    assert result.gate(Gate.looping).status == "pass" and "too short" in result.gate(Gate.looping).detail
    assert gates(rows=changed(9, longest_channel_chars=None))[Gate.looping] == "unverified"


def test_the_servers_counters_are_held_against_all_rows() -> None:
    """Requests and tokens from idle to idle, warm-up included, equal ours, or it was not ours alone."""
    zero = ServerSample(0, output_tokens_total=0, prompt_tokens_total=0, preemptions_total=0, finished=())
    ours = ServerSample(
        1,
        output_tokens_total=66 * 11,
        prompt_tokens_total=66 * 1000,
        preemptions_total=0,
        finished=(("length", 66),),
    )
    assert gates(idle_before=zero, idle_after=ours)[Gate.server_counters] == "pass"
    more = structs.replace(ours, finished=(("length", 67),))
    assert gates(idle_before=zero, idle_after=more)[Gate.server_counters] == "invalid"


def test_identity_is_compared_before_and_after() -> None:
    """A restarted server is another one; a fact that can no longer be read is unverified."""
    before = identity(engine="vllm", process_start_time_s=1.0)
    after = identity(engine="vllm", process_start_time_s=2.0)
    assert gates(identity_before=before, identity_after=after)[Gate.identity] == "invalid"
    assert (
        gates(identity_before=before, identity_after=identity(engine="vllm"))[Gate.identity] == "unverified"
    )
    assert gates(identity_after=None)[Gate.identity] == "unverified"


def test_a_late_client_invalidates() -> None:
    """p99 beyond the budget of 100 ms (1% of ten seconds) is client-limited, by doubt or by send lag."""
    assert gates(arrival_doubt_ns=[101 * MS] * 50)[Gate.client_lateness] == "invalid"
    late = [structs.replace(row, scheduled_ns=(row.sent_ns or 0) - 101 * MS) for row in closed_loop(4, 64)]
    assert gates(rows=late)[Gate.client_lateness] == "invalid"
    assert gates(arrival_doubt_ns=[])[Gate.client_lateness] == "unverified"
    assert gates(arrival_doubt_ns=[], clock="virtual")[Gate.client_lateness] == "pass"


def test_natural_stops_allow_shorter_answers() -> None:
    """Without ignore_eos a shorter answer that stopped is as asked; an aborted one is not."""
    natural = structs.replace(contract(), sampling=structs.replace(contract().sampling, ignore_eos=False))
    rows = changed(9, output_tokens=5, finish_reason="stop")
    found = gates(rows=rows, contract=natural)
    assert (found[Gate.output_length], found[Gate.finish_reason]) == ("pass", "pass")
    assert gates(rows=changed(9, finish_reason="abort"), contract=natural)[Gate.finish_reason] == "invalid"


def test_an_error_rate_decides_in_place_of_the_load_gates() -> None:
    """One reset of 64 is below 2% and the trial passes; without that SLO it fails."""
    rows = changed(9, outcome="reset")
    assert evaluate(evidence(rows)).verdict.status == "fail"
    lenient = contract("ttft p95 < 10s", "error_rate < 2%")
    assert evaluate(evidence(rows, contract=lenient)).verdict.status == "pass"
    strict = contract("ttft p95 < 10s", "error_rate < 1%")
    assert evaluate(evidence(rows, contract=strict)).verdict.status == "fail"


def test_a_stopped_trial_is_never_a_pass() -> None:
    """Rows that are missing or cut leave it inconclusive, unless failure was certain."""
    rows = closed_loop(4, 64)[:40]
    assert evaluate(evidence(rows)).verdict.status == "inconclusive"
    slow = [
        structs.replace(
            row,
            outcome="cancelled",
            first_output_ns=None,
            last_output_ns=None,
            end_ns=(row.sent_ns or 0) + 11 * S,
        )
        for row in closed_loop(8, 8, warmup=0)
    ]
    assert evaluate(evidence(slow, concurrency=8)).verdict.status == "fail"


def test_results_survive_json() -> None:
    """Encoding and decoding give the same value, with infinities and nulls."""
    rows = changed(9, outcome="unfinished", end_ns=None, first_output_ns=None, last_output_ns=None)
    result = evaluate(evidence(rows, contract=contract("ttft p99 < 10s", "error_rate < 1%")))
    data = encode(result)
    assert decode(data) == result and data.endswith(b"}\n")
    again = msgspec.json.decode(data)
    assert again["version"] == 1 and again["verdict"]["slos"][0]["whole"]["worst"] is None
    assert again["verdict"]["slos"][0]["whole"]["worst_infinite"] is True


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1}'])
def test_damaged_results_are_evidence_errors(data: bytes) -> None:
    """What cannot be read says so, and a later version names itself."""
    with pytest.raises(EvidenceError):
        decode(data)


CUT = ok_row(0, S)


@pytest.mark.parametrize(
    ("row", "metric", "expected"),
    [
        (CUT, "ttft", Bounds.exactly(100 * MS)),
        (CUT, "e2e", Bounds.exactly(200 * MS)),
        (CUT, "itl", Bounds.exactly(10 * MS)),
        (CUT, "error_rate", Bounds.exactly(0.0)),
        (structs.replace(CUT, output_tokens=1), "itl", None),
        (structs.replace(CUT, outcome="reset"), "ttft", Bounds.exactly(100 * MS)),
        (structs.replace(CUT, outcome="reset"), "e2e", Bounds.never()),
        (structs.replace(CUT, outcome="reset"), "error_rate", Bounds.exactly(1.0)),
        (structs.replace(CUT, outcome="reset", first_output_ns=None), "ttft", Bounds.never()),
        (structs.replace(CUT, outcome="unfinished", first_output_ns=None), "ttft", Bounds.at_least(200 * MS)),
        (structs.replace(CUT, outcome="unfinished", first_output_ns=None), "itl", Bounds.at_least(0)),
        (structs.replace(CUT, outcome="unfinished", end_ns=None), "e2e", Bounds.at_least(4 * S)),
        (structs.replace(CUT, outcome="cancelled"), "error_rate", Bounds(0.0, 1.0)),
        (structs.replace(CUT, outcome="cancelled"), "longest_gap", Bounds.at_least(10 * MS)),
        (structs.replace(CUT, outcome="cancelled", output_tokens=6), "tpot", Bounds.at_least(10 * MS)),
        (structs.replace(CUT, outcome="timed_out_total"), "e2e", Bounds.at_least(200 * MS)),
        (
            structs.replace(CUT, outcome="cancelled", sent_ns=None, first_output_ns=None),
            "e2e",
            Bounds.at_least(0),
        ),
    ],
)
def test_what_became_of_a_request_decides_its_bounds(
    row: RequestRow, metric: Any, expected: Bounds | None
) -> None:
    """Reached values are exact, the server's failures infinite, our own cuts open."""
    assert bounds_of(row, metric, until_ns=5 * S) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=64, max_size=64), st.integers(0, 64))
def test_a_locator_that_stopped_for_certain_failure_fails(ttfts: list[int], watched: int) -> None:
    """When failure was certain from some rows, the sealed trial with those rows alone fails too."""
    rows = closed_loop(4, 64, warmup=0, ttft=lambda n: ttfts[n] * S)[:watched]
    slos = [Slo.parse("ttft p95 < 10s")]
    if failure_certain(slos, 64, lower_bounds(slos, rows, 10**12)):
        assert evaluate(evidence(rows, contract=contract(rules=Rules()))).verdict.status == "fail"
