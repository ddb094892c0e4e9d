"""The result of a speed study: a row for every planned cell, values only where valid, and everything else kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError
from nameplate.contract.matrix import CellPlan, Matrix, MixedRule, PrefillRule, planned_cells
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.methodology import methods
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.speed_builder import About, build_speed
from nameplate.measure.speed_result import SpeedResult, decode_speed, encode_speed
from nameplate.measure.tests.held_cells import MS, Part, S, cell_evidence, every, held, hold_plan, samples
from nameplate.measure.tests.trials import closed_loop, contract, evidence, identity, ok_row
from nameplate.verdict.cell import CellStatus, CellVerdict

K = 1024
MATRIX = Matrix(
    prefill_contexts=(1000, 5000),
    decode_contexts=(1000, 2000),
    concurrencies=(1, 2),
    window_ns=4 * S,
    burst=True,
    mixed=MixedRule(arrival_tokens=5000, streams=2),
)
DECODE, PREFILL, BURST = CellPlan("decode", 1000, 2), CellPlan("prefill", 1000, 1), CellPlan("burst", 1000, 2)
SKIPPED = CellVerdict(CellStatus.skipped, "no time left", ("a note",))


def study(matrix: Matrix = MATRIX) -> Contract:
    """Return a contract of this matrix."""
    return structs.replace(contract(), speed=matrix)


def decode_result(cell: CellPlan = DECODE, *, attempt: int = 0, valid: bool = True) -> TrialResult:
    """Evaluate one decode cell, valid or underfilled."""
    plan = structs.replace(hold_plan(cell.concurrency), name=cell.name, attempt=attempt)
    parts = [Part(stream, every(10 * MS)) for stream in range(cell.concurrency)]
    running = cell.concurrency if valid else 0
    return evaluate(cell_evidence(parts, plan=plan, held=held(cell.concurrency), samples=samples(running)))


def prefill_result(cell: CellPlan = PREFILL, *ttfts_ns: int) -> TrialResult:
    """Evaluate a prefill cell."""
    rows = [
        ok_row(n, S + 10 * n * S, phase="steady" if n else "opening", ttft_ns=ttft_ns, tokens=1)
        for n, ttft_ns in enumerate(ttfts_ns or (S, S, S))
    ]
    plan = TrialPlan(cell.name, "prefill", Shape(cell.context_tokens, 1), 1, 9, 0, until=PrefillRule())
    return evaluate(
        evidence([structs.replace(r, prompt_tokens=cell.context_tokens) for r in rows], plan=plan)
    )


def build(*results: TrialResult, matrix: Matrix = MATRIX, **more: Any) -> SpeedResult:
    """Build the result of these trials."""
    about = About(tool="nameplate test", identity=identity(kv_tokens=100_000), note="a note")
    unrun = more.pop("unrun", {})
    return build_speed(study(matrix), about, results, unrun, **more)


def row_of(result: SpeedResult, cell: CellPlan) -> Any:
    """Return a cell's row."""
    (row,) = [
        row
        for row in result.rows
        if (row.kind, row.context_tokens, row.concurrency)
        == (cell.kind, cell.context_tokens, cell.concurrency)
    ]
    return row


def test_every_planned_cell_has_a_row_in_its_order() -> None:
    """Whether anything was run or not, the rows are the planned cells, and one that was not run has no number."""
    result = build()
    assert [(row.kind, row.context_tokens, row.concurrency) for row in result.rows] == [
        (cell.kind, cell.context_tokens, cell.concurrency) for cell in planned_cells(MATRIX)
    ]
    for row in result.rows:
        assert row.status is CellStatus.interrupted and row.reason == "not run yet"
        assert row.values is None and row.discarded is None and row.trials == ()
    assert not result.finished and result.exit_code is None and result.note == "a note"


def test_a_verdict_without_a_trial_is_the_rows() -> None:
    """A skipped cell has its status, reason and notes; a trial weighs more than such a word."""
    result = build(decode_result(), unrun={DECODE: SKIPPED, BURST: SKIPPED}, exit_code=0)
    skipped = row_of(result, BURST)
    assert (skipped.status, skipped.reason, skipped.notes) == (
        CellStatus.skipped,
        "no time left",
        ("a note",),
    )
    assert row_of(result, DECODE).status is CellStatus.valid and result.finished


def test_values_stand_only_in_a_valid_row() -> None:
    """What was measured in a cell that is not valid is kept aside, and never as a value."""
    good = row_of(build(decode_result()), DECODE)
    assert good.values is not None and good.values.tokens_per_s == 200.0 and good.discarded is None
    assert (good.ready_s, good.ready_deadline_s, good.output_tokens) == (9.0, 60.0, 4000)
    bad = row_of(build(decode_result(valid=False)), DECODE)
    assert bad.status is CellStatus.underfilled and bad.values is None
    assert bad.discarded is not None and bad.discarded.tokens_per_s == 200.0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_last_attempt_counts_and_all_are_named(valid: list[bool], shuffle: Any) -> None:
    """Attempts in any order of reading: the row is the last one's, and lists them all."""
    results = [decode_result(attempt=n, valid=good) for n, good in enumerate(valid)]
    shuffle.shuffle(results)
    row = row_of(build(*results), DECODE)
    assert (row.status is CellStatus.valid) == valid[-1] == (row.values is not None)
    assert row.trials == (DECODE.name, *(f"{DECODE.name}.retry{n}" for n in range(1, len(valid))))


def test_each_kind_has_its_rate() -> None:
    """Prefill shows its median, a burst the whole wave's rate; both are counted, with what ended."""
    rows = closed_loop(2, 10, warmup=0)
    burst = evaluate(
        evidence(rows, plan=TrialPlan(BURST.name, "burst", Shape(1000, 11), 2, 10, 0), concurrency=2)
    )
    result = build(prefill_result(PREFILL, S, 2 * S, S), burst)
    prefill = row_of(result, PREFILL).values
    assert prefill.tokens_per_s == 1000.0 and prefill.completed == 3 and prefill.warmth == "cold"
    wave = row_of(result, BURST).values
    # Five rounds of 200 ms for two streams: 110 tokens a second.
    assert wave.tokens_per_s == pytest.approx(110.0) and (wave.requests, wave.completed) == (10, 10)
    assert wave.window_s == pytest.approx(1.0) and wave.e2e.n == 10


def mixed_result() -> TrialResult:
    """Evaluate a mixed cell whose long prompt took two seconds beside the streams."""
    times = every(10 * MS)
    beside = Part(
        2, [13 * S], 1, sent_ns=11 * S, phase="arrival", outcome="ok", prompt_tokens=5000, end_ns=13 * S
    )
    cell = CellPlan("mixed", 5000, 2)
    plan = structs.replace(hold_plan(2, arrival=True), name=cell.name)
    parts = [Part(0, times), Part(1, times), beside]
    return evaluate(cell_evidence(parts, plan=plan, held=held(2, end_ns=None), samples=[]))


def test_the_slowdown_is_against_the_prompt_alone() -> None:
    """TTFT under load by the median TTFT of the same length alone; without that, null."""
    cell = CellPlan("mixed", 5000, 2)
    alone = prefill_result(CellPlan("prefill", 5000, 1), S // 2, S // 2, S // 2)
    row = row_of(build(mixed_result(), alone), cell)
    assert row.values.slowdown == 4.0 and row.values.alone_ttft_ns == S // 2
    assert row.values.tokens_per_s == 200.0
    without = row_of(build(mixed_result()), cell)
    assert without.values.slowdown is None and without.values.alone_ttft_ns is None


def test_a_warning_of_preemption_stands_in_the_row_that_ran() -> None:
    """A cell whose outputs may exceed the pool says so where it ran, and not where it did not."""
    tight = structs.replace(MATRIX, output_tokens=60_000)
    ran = row_of(build(decode_result(), matrix=tight), DECODE)
    assert any("preemption is likely" in note for note in ran.notes)
    assert row_of(build(matrix=tight), DECODE).notes == ()


def test_a_result_survives_its_file() -> None:
    """Every field is read back as it was written; another schema and damage are refused."""
    result = build(decode_result(), prefill_result(), mixed_result(), exit_code=0)
    data = encode_speed(result)
    again = decode_speed(data)
    assert again == result and decode_speed(encode_speed(again)) == result
    assert b"NaN" not in data and b"Infinity" not in data
    for broken in (b"{}", data[:-20], data.replace(b"nameplate.speed/1", b"nameplate.speed/9", 1)):
        with pytest.raises(EvidenceError):
            decode_speed(broken)


def test_absent_is_null_and_never_zero() -> None:
    """What a burst or a prefill does not have is null in the file, not nought."""
    raw = msgspec.json.decode(encode_speed(build(prefill_result())))
    (row,) = [row for row in raw["rows"] if row["kind"] == "prefill" and row["context_tokens"] == 1000]
    for name in ("preemptions", "restarts", "looped_streams", "queue_share", "window_s", "itl", "kv"):
        assert row["values"][name] is None


@pytest.mark.parametrize("window_s", [4, 30])
def test_the_methodology_states_this_matrix(window_s: int) -> None:
    """Each measure is named once with its unit and formula, with the numbers of the matrix that was measured."""
    matrix = structs.replace(MATRIX, window_ns=window_s * S, loop_limit=0.25)
    found = {method.name: method for method in methods(matrix)}
    assert len(found) == len(methods(matrix))
    assert all(method.unit and method.formula for method in found.values())
    assert f"/ {window_s} s" in found["total rate"].formula
    assert "25%" in found["looped"].notes
    assert build(matrix=matrix).methodology == methods(matrix)
