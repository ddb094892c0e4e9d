"""Our result in the other tool's shape: every field, its units, its signs for absent, and back again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.matrix import CellPlan, Matrix
from nameplate.contract.target import Target
from nameplate.exchange.inference_bench.exported import encode_export, exported, exported_again
from nameplate.exchange.inference_bench.foreign import Stats
from nameplate.exchange.inference_bench.imported import imported
from nameplate.exchange.inference_bench.reading import read_document
from nameplate.exchange.inference_bench.samples import Requests, requests_of, stats_from
from nameplate.exchange.inference_bench.tests.making import (
    HERE,
    NS,
    PUBLISHED,
    cell,
    ours,
    request,
    result_of,
)
from nameplate.measure.speed_result import SpeedResult
from nameplate.statistics.percentile import summarise
from nameplate.verdict.cell import CellStatus

RESULT = SpeedResult(
    tool="nameplate test",
    target="http://127.0.0.1:8000",
    model="model",
    rows=(
        ours("prefill", 8192, 1, CellStatus.valid),
        *(ours("decode", 8192, 1 + n, status) for n, status in enumerate(CellStatus)),
        ours("burst", 8192, 4, CellStatus.valid),
        ours("mixed", 32768, 8, CellStatus.valid),
        ours("mixed", 65536, 8, CellStatus.looped),
    ),
    finished=True,
)
EVIDENCE = {
    CellPlan("decode", 8192, 1): requests_of([request(0), request(1, 1.5), request(2, 0.1, outcome="reset")])
}


def document() -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(encode_export(exported(RESULT, EVIDENCE, "2026-01-02T03:04:05")))
    return decoded


def paths(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every path of a document with its JSON type; lists count by their first entry, contexts are one."""
    names = {
        bool: "bool",
        int: "number",
        float: "number",
        str: "text",
        type(None): "null",
        list: "list",
        dict: "object",
    }
    if path:
        yield path, names[type(value)]
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{'*' if key.isdigit() else key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value[:1]:
            yield from paths(inner, path + "[]")


@pytest.mark.parametrize("matrix", [None, Matrix(burst=True, burst_requests=20, unique_percent=25)])
def test_every_field_of_a_published_file_is_there(matrix: Matrix | None) -> None:
    """Each key path of a published file exists in an export, with the same JSON type, with a contract and without."""
    contract = Contract(Target.parse("http://h:1"), (), (), "n", speed=matrix) if matrix else None
    result = structs.replace(RESULT, contract=contract)
    wanted = json.loads((HERE / "published_shape.json").read_text())
    found = dict(paths(json.loads(encode_export(exported(result, EVIDENCE)))))
    missing = [path for path in wanted if path not in found]
    assert not missing
    # Null stands there for a temperature that was not set, a number where it was.
    wrong = {p: (t, found[p]) for p, t in wanted.items() if found[p] != t and p != "metadata.temperature"}
    assert not wrong


def test_a_row_has_no_name_that_version_does_not_know() -> None:
    """A program that builds its own row type from a row gets exactly its fields."""
    wanted = json.loads((HERE / "published_shape.json").read_text())
    names = {path.removeprefix("results[].") for path in wanted if path.startswith("results[].")}
    (valid,) = (row for row in document()["results"] if row["concurrency"] == 1)
    assert set(valid) == {name for name in names if "[]" not in name}


def test_the_version_can_be_compared() -> None:
    """The version is digits and dots alone, and who wrote the file stands beside it in three places."""
    told = document()
    assert tuple(map(int, told["metadata"]["version"].split("."))) == (0, 4, 30)
    assert told["metadata"]["generator"].startswith("nameplate ")
    assert told["startup_diagnostics"]["version"].startswith("0.4.30+nameplate.")
    assert "not measured by that tool" in told["event_log"][0]


def test_statuses_have_that_tools_signs() -> None:
    """-1, -2 and -3 for cells without a measurement, 0.0 for a failed one, a hidden rate for a doubtful one."""
    rows = {list(CellStatus)[row["concurrency"] - 1].value: row for row in document()["results"]}
    rates = {status: row["aggregate_tps"] for status, row in rows.items()}
    assert rates == {
        "valid": 100.0,
        "over_capacity": -1.0,
        "over_limit": -1.0,
        "not_ready": 100.0,
        "underfilled": 100.0,
        "extra_traffic": 100.0,
        "looped": -3.0,
        "client_limited": -2.0,
        "server_error": 0.0,
        "skipped": -2.0,
        "interrupted": -2.0,
    }
    hidden = {status for status, row in rows.items() if row["capacity_limited"]}
    assert hidden == {"not_ready", "underfilled", "extra_traffic"}
    assert rows["not_ready"]["warmup_timed_out"] and rows["underfilled"]["underfilled"]
    assert rows["server_error"]["num_errors"] and rows["server_error"]["failure_reason"]
    assert rows["looped"]["loop_detected"] and not rows["valid"].get("loop_detected")


def test_the_summary_has_rates_alone() -> None:
    """Cells without a rate are not in the summary, so that whoever adds up its numbers needs no exception."""
    summary = document()["summary_table"]["8192"]
    by = {list(CellStatus)[int(level) - 1].value: rate for level, rate in summary.items()}
    assert by.keys() == {"valid", "not_ready", "underfilled", "extra_traffic"}
    assert set(by.values()) == {100.0}


def test_units_are_seconds() -> None:
    """Nanoseconds become seconds; what is absent is 0.0 in a row."""
    (row,) = (row for row in document()["results"] if row["concurrency"] == 4)
    assert row["ttft_p50"] == 0.5 and row["inter_token_latency_p50"] == 0.02
    assert row["request_latency_avg"] == 0.0 and row["e2e_output_tps_per_user_p99"] == 0.0
    assert row["server_gen_throughput"] == pytest.approx(3001 / 30)


def test_evidence_gives_that_tools_definitions() -> None:
    """With the requests at hand, each summary is computed as that tool computes it, and the samples are listed."""
    (row,) = (row for row in document()["results"] if row["concurrency"] == 1)
    assert row["request_count"] == 3 and row["completed_request_count"] == 2 and row["num_errors"] == 1
    assert row["ttft_p50"] == 0.5 and row["ttft_avg"] == pytest.approx(0.7)
    assert row["time_to_second_token_p99"] == pytest.approx(0.02)
    assert row["inter_token_latency_p50"] == pytest.approx(0.02)
    assert row["request_samples"][0]["latency"] == pytest.approx(2.5)
    assert row["request_samples"][2]["latency"] == 0.0 and not row["request_samples"][2]["completed"]
    assert row["output_seq_len_p90"] == 101 and row["input_seq_len_avg"] == 8200


def test_our_statuses_come_back() -> None:
    """An export that is imported again has every cell with the status and the reason that it had."""
    back = imported(read_document(encode_export(exported(RESULT, {})), "e.json"), "e.json", "0" * 64, "t")
    there = {(row.kind, row.context_tokens, row.concurrency): row for row in RESULT.rows}
    found = {(row.kind, row.context_tokens, row.concurrency): row for row in back.rows}
    assert found.keys() == there.keys()
    for name, row in found.items():
        assert (row.status, row.reason) == (there[name].status, there[name].reason)
        assert (row.values is not None) == (row.status is CellStatus.valid)
    assert back.origin is not None and "written by nameplate" in back.origin.version


def test_our_numbers_come_back() -> None:
    """Prefill, mixed prefill and decode keep their numbers on the way there and back."""
    back = imported(read_document(encode_export(exported(RESULT, {})), "e.json"), "e.json", "0" * 64, "t")
    (prefill,) = back.rows_of("prefill")
    assert prefill.values is not None and prefill.values.prefill is not None
    assert prefill.values.tokens_per_s == 100.0 and prefill.values.prefill.server_s == 0.9
    mixed = back.rows_of("mixed")[0].values
    assert mixed is not None and mixed.mixed is not None and mixed.slowdown == 2.0
    assert mixed.mixed.during is not None and mixed.mixed.during.rate == 40.0
    assert mixed.mixed.timeline == (100.0, 40.0, 90.0)
    decode = back.rows_of("decode")[0].values
    assert decode is not None and decode.running is not None and decode.running.mean == 1.0
    assert decode.counter is not None and decode.counter.server_tokens == 3001


def test_an_imported_file_goes_back_whole() -> None:
    """With the original at hand every number of it is in the export, and our statuses are beside them."""
    result = imported(read_document(PUBLISHED, "p.json"), "p.json", "0" * 64, "t")
    again = exported_again(result, PUBLISHED, "p.json")
    own = again.pop("nameplate")
    assert again == json.loads(PUBLISHED)
    assert {entry["status"] for entry in own["cells"]} == {"valid", "not_ready", "extra_traffic"}
    back = imported(
        read_document(encode_export({**again, "nameplate": own}), "p.json"), "p.json", "0" * 64, "t"
    )
    assert [(row.status, row.reason) for row in back.rows] == [
        (row.status, row.reason) for row in result.rows
    ]


def test_an_imported_file_without_its_original() -> None:
    """From the result alone the numbers that it carries are those of the file, to the last digits of a float."""
    result = imported(read_document(PUBLISHED, "p.json"), "p.json", "0" * 64, "t")
    told = json.loads(encode_export(exported(result, {})))
    originals = {(row["context_tokens"], row["concurrency"]): row for row in json.loads(PUBLISHED)["results"]}
    carried = [
        "aggregate_tps",
        "measurement_wall_seconds",
        "client_output_tokens",
        "server_output_tokens",
        "server_gen_throughput",
        "ttft_avg",
        "ttft_p50",
        "ttft_p90",
        "ttft_p99",
        "inter_token_latency_p50",
        "inter_token_latency_p99",
        "request_count",
        "completed_request_count",
        "avg_running_reqs",
        "max_running_reqs",
        "avg_queue_reqs",
        "max_queue_reqs",
        "queue_fraction",
        "server_utilization",
        "measurement_seconds",
        "warmup_timed_out",
    ]
    metadata = json.loads(PUBLISHED)["metadata"] | {"version": "0.4.30"}
    assert {name: told["metadata"][name] for name in metadata} == metadata
    for row in told["results"]:
        original = originals[row["context_tokens"], row["concurrency"]]
        for name in carried:
            assert row[name] == pytest.approx(original[name], rel=1e-6), (name, row["context_tokens"])


@settings(deadline=None, max_examples=60)
@given(
    rate=st.floats(0.1, 1e5),
    seconds=st.floats(1e-6, 1e5),
    tokens=st.integers(1, 10**7),
    running=st.integers(1, 10),
)
def test_numbers_survive_both_ways(rate: float, seconds: float, tokens: int, running: int) -> None:
    """Import and export leave a rate, a time and a count as they were."""
    times: dict[str, Any] = {f"ttft_{part}": seconds for part in ("avg", "p50", "p90", "p99")}
    row = cell(
        concurrency=running,
        aggregate_tps=rate,
        client_output_tokens=tokens,
        avg_running_reqs=running,
        max_running_reqs=running,
        **times,
    )
    (back,) = json.loads(encode_export(exported(result_of(row), {})))["results"]
    assert back["aggregate_tps"] == rate and back["client_output_tokens"] == tokens
    assert back["ttft_p90"] == pytest.approx(seconds, rel=1e-12)
    assert back["avg_running_reqs"] == running and back["effective_concurrency"] == running


def test_an_empty_result_is_a_file_too() -> None:
    """A result without any row gives a whole document without rates."""
    told = json.loads(encode_export(exported(SpeedResult(tool="t", rows=()), {})))
    assert told["results"] == [] and told["summary_table"] == {} and told["prefill"] == {}


def test_summaries_of_nothing_are_absent() -> None:
    """A distribution without members has no summary there."""
    assert stats_from(summarise([])) == Stats() and not Stats().known
    assert stats_from(summarise([2 * NS]), NS) == Stats(2.0, 2.0, 2.0, 2.0)
    assert requests_of([]) == Requests()


def test_the_file_is_plain_json() -> None:
    """No number in it is one that JSON does not have, and nothing of ours that it cannot hold."""
    assert msgspec.json.decode(encode_export(exported(RESULT, EVIDENCE)))
