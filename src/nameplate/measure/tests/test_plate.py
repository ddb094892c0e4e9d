"""Plates and study records: what they hold, and that they survive JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.contract.errors import EvidenceError
from nameplate.contract.plan import Role, TrialPlan
from nameplate.measure.plate import decode_plate, encode_plate, expectation_of
from nameplate.measure.plate_builder import build_plate, build_shape
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.study_record import decode_study, encode_study, study_record
from nameplate.measure.tests.trials import MS, SHAPE, closed_loop, contract, evidence, identity
from nameplate.verdict.boundary import Status, boundary, settle
from nameplate.verdict.expectation import Expectation, differences
from nameplate.verdict.level import judge_level
from nameplate.verdict.shape import Decision, ShapeVerdict
from nameplate.verdict.warnings import Code

# The opening wave waits k x 2.4 s: the p95 of 64 is 11.64 s at C=8 and 14.04 s at C=9.
CONTRACT = contract("ttft p95 < 12s")


def trial(role: Role, concurrency: int, number: int) -> TrialResult:
    """Run a perfect closed loop whose opening wave queues for its prefill."""
    requests = 10 if role == "baseline" else 64
    rows = closed_loop(
        concurrency, requests, ttft=lambda n: (n + 1) * 2400 * MS if 1 < concurrency > n else 200 * MS
    )
    plan = TrialPlan(f"{role}.c{concurrency}.t{number}", role, SHAPE, concurrency, requests, 2)
    return evaluate(evidence(rows, concurrency=concurrency, requests=requests, plan=plan, contract=CONTRACT))


def studied() -> tuple[ShapeVerdict, list[TrialResult]]:
    """Return the verdict and results of a study whose boundary is 8."""
    results = [trial("baseline", 1, 1), trial("locator", 2, 1)]
    for number in (1, 2, 3):
        results += [trial("confirmation", 8, number), trial("confirmation", 9, number)]
    levels = [
        judge_level(c, [r.verdict.status for r in results if r.plan.concurrency == c], CONTRACT.rules)
        for c in (8, 9)
    ]
    found = settle({level.level: level.status for level in levels}, 1, 1024, zero_below=True)
    assert found is not None
    keys = tuple((result.plan.key, result.verdict.status) for result in results)
    return ShapeVerdict(SHAPE, found, tuple(levels), 7, "because", keys), results


VERDICT, RESULTS = studied()


def test_a_plate_holds_what_a_reader_needs() -> None:
    """Rated number, both levels, each confirmation with its latencies, rates, correctness and verdict."""
    shape = build_shape(CONTRACT, VERDICT, RESULTS)
    assert (shape.rated, shape.pass_level, shape.fail_level, shape.operate_at) == (8, 8, 9, 7)
    assert shape.status is Status.confirmed and shape.exit_code == 0
    assert [held.status for held in shape.confirmations] == ["pass", "fail"] * 3
    first = shape.confirmations[0]
    assert first.ttft.p95_ns == 11_640_000_000 and first.itl.p50_ns == 10 * MS
    assert first.requests_per_s and first.output_tokens_per_s and first.correctness.ok == 64
    assert shape.prompt_tokens is not None and shape.prompt_tokens.low == 1000
    assert shape.baseline is not None and shape.baseline.ttft.p50_ns == 200 * MS


def test_a_plate_says_what_is_certified_and_what_is_not() -> None:
    """The pooled shares of the rated level, and the lists of what the number covers."""
    shape = build_shape(CONTRACT, VERDICT, RESULTS)
    (entry,) = shape.certified
    assert (entry.level, entry.whole.n, entry.whole.over) == (8, 192, 12)
    assert not entry.holds and entry.steady.over == 0
    assert any("shape 1000/11" in text for text in shape.qualified)
    assert "other percentiles of ttft than p95" in shape.not_qualified
    assert "ITL at any percentile" in shape.not_qualified


def test_a_plate_warns() -> None:
    """The flat median under the climbing percentile, the missing E2E gate, and each trial warning once."""
    codes = [warned.code for warned in build_shape(CONTRACT, VERDICT, RESULTS).warnings]
    assert Code.flat_median in codes and Code.e2e_without_gate in codes
    assert codes.count(Code.unverified_gate) == 2


def test_a_status_without_a_number_qualifies_nothing() -> None:
    """Interrupted: no rated number, nothing certified, nothing qualified, and every trial still shown."""
    cut = structs.replace(VERDICT, boundary=boundary(Status.interrupted, {8: "pass"}), operate_at=None)
    shape = build_shape(CONTRACT, cut, RESULTS)
    assert (shape.rated, shape.certified, shape.qualified) == (None, (), ())
    assert len(shape.confirmations) == 6 and shape.pass_level == 8


def test_plates_survive_json_with_plain_names() -> None:
    """`pass` and `fail` are written as such, and the plate comes back the same."""
    plate = build_plate(CONTRACT, [VERDICT], RESULTS, identity(engine="vllm"), study_manifest_sha256="ab")
    data = encode_plate(plate)
    assert decode_plate(data) == plate
    raw = msgspec.json.decode(data)
    assert raw["schema"] == "nameplate.plate/2" and raw["study_manifest_sha256"] == "ab"
    assert (raw["shapes"][0]["pass"], raw["shapes"][0]["fail"]) == (8, 9)
    assert "quantisation" in raw["identity"]["missing"]
    assert [warned["code"] for warned in raw["warnings"]] == ["not_portable"]


def test_several_shapes_are_alternatives() -> None:
    """More than one rated number comes with the warning that they do not add up."""
    plate = build_plate(CONTRACT, [VERDICT, VERDICT], RESULTS, identity(), study_manifest_sha256=None)
    assert Code.alternatives in [warned.code for warned in plate.warnings]


def test_study_records_survive_json() -> None:
    """Every decision and trial is kept, and the exit code is null until the study is finished."""
    decisions = [Decision(SHAPE, "locate", "run x", "the locator starts here", 2, "x")]
    running = study_record(
        CONTRACT, RESULTS, decisions, [], expectations={SHAPE: Expectation(ttft_ns=2e8)}, spoiled=["y"]
    )
    assert running.exit_code is None and decode_study(encode_study(running)) == running
    assert [entry.key for entry in running.trials] == [result.plan.key for result in RESULTS]
    done = study_record(CONTRACT, RESULTS, decisions, [VERDICT], finished=True)
    assert done.exit_code == 0 and decode_study(encode_study(done)) == done


def test_documents_of_version_1_are_read() -> None:
    """An earlier program called a level `concurrency`: its plates and records come back as today's."""

    def older(value: Any) -> Any:
        if isinstance(value, list):
            return [older(one) for one in value]
        if not isinstance(value, dict):
            return value
        named = {"concurrency" if name == "level" else name: older(one) for name, one in value.items()}
        schema = named.get("schema")
        return {**named, "schema": schema.replace("/2", "/1")} if isinstance(schema, str) else named

    plate = build_plate(CONTRACT, [VERDICT], RESULTS, identity(), study_manifest_sha256=None)
    data = msgspec.json.encode(older(msgspec.json.decode(encode_plate(plate))))
    assert b'"level"' not in data
    assert decode_plate(data).shapes == plate.shapes
    decisions = [Decision(SHAPE, "locate", "run x", "the locator starts here", 2, "x")]
    record = study_record(CONTRACT, RESULTS, decisions, [VERDICT], finished=True)
    data = msgspec.json.encode(older(msgspec.json.decode(encode_study(record))))
    assert b'"level"' not in data
    assert structs.replace(decode_study(data), schema=record.schema) == record


@pytest.mark.parametrize("data", [b"", b"{}", b'{"schema": "other/1"}', b'{"schema": "nameplate.plate/1"}'])
def test_damaged_documents_are_evidence_errors(data: bytes) -> None:
    """What is no plate or no study says so."""
    with pytest.raises(EvidenceError):
        decode_plate(data)
    with pytest.raises(EvidenceError):
        decode_study(data)


def test_an_earlier_plate_is_an_expectation() -> None:
    """A new baseline is held against the old one's numbers, each within the tolerance."""
    plate = build_plate(CONTRACT, [VERDICT], RESULTS, identity(), study_manifest_sha256=None)
    expected = expectation_of(plate, SHAPE)
    assert expected is not None and expected.ttft_ns == 200 * MS
    assert differences(expected, 215 * MS, 4800.0, 101.0) == ()
    off = differences(expected, 300 * MS, None, 101.0)
    assert len(off) == 2 and "TTFT p50 is 300.0 ms" in off[0] and "not measured" in off[1]
