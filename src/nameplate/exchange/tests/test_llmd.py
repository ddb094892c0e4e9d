"""The llm-d benchmark report: units and meanings as its schema has them, and nothing that is not known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from llmd_benchmark_report import load_benchmark_report
from msgspec import structs

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.timeline import Timeline
from nameplate.exchange.llmd.report import report_of
from nameplate.exchange.llmd.statistics import statistics_of
from nameplate.exchange.reports import report_of as exported
from nameplate.exchange.reports import soak_report_of, stage_of, why_not
from nameplate.exchange.subject import Kind, subject_of
from nameplate.exchange.tables.windows import soak_result
from nameplate.measure.result import decode


@pytest.fixture
def trial(made: Mapping[Kind, Path]) -> Path:
    return subject_of(made["trial"]).trials[0]


def aggregate(report: bytes) -> dict[str, Any]:
    """Return the aggregate of a report that its own package takes."""
    told = json.loads(report)
    load_benchmark_report(told)
    found: dict[str, Any] = told["results"]["request_performance"]["aggregate"]
    return found


def test_latencies_are_those_of_the_rows(trial: Path, made: Mapping[Kind, Path]) -> None:
    """Seconds and seconds a token, of successful requests, computed from the rows."""
    told = aggregate(exported(subject_of(made["trial"]), trial, "llm-d"))
    rows = [row for row in TrialReader(trial).rows() if row.measured]
    assert told["requests"]["total"] == len(rows) == 20 and told["requests"]["failures"] == 0
    ttfts = sorted((row.ttft_ns or 0) / 1e9 for row in rows)
    ttft = told["latency"]["time_to_first_token"]
    assert (
        ttft["units"] == "s"
        and ttft["min"] == pytest.approx(ttfts[0])
        and ttft["max"] == pytest.approx(ttfts[-1])
    )
    assert ttft["mean"] == pytest.approx(sum(ttfts) / 20)
    normalised = told["latency"]["normalized_time_per_output_token"]
    per_token = sum((row.e2e_ns or 0) / (row.output_tokens or 1) for row in rows) / 20e9
    assert normalised["units"] == "s/token" and normalised["mean"] == pytest.approx(per_token)
    first, last = min(row.sent_ns or 0 for row in rows), max(row.end_ns or 0 for row in rows)
    rate = told["throughput"]["output_token_rate"]
    assert rate == {"units": "tokens/s", "mean": pytest.approx(20 * 8 / (last - first) * 1e9)}


def test_percentiles_without_support_are_left_out() -> None:
    """The schema has no place to mark them: 20 values carry p95 and p5, and neither p99 nor p1."""
    told = statistics_of(range(20), "s")
    assert told is not None and {"p5", "p50", "p95"} <= told.keys() and not {"p1", "p99"} & told.keys()
    assert statistics_of([None], "s") is None


def test_what_is_not_known_is_absent(trial: Path) -> None:
    """Estimated tokens give no lengths and rates, chunks of several tokens no ITL, a server without a name no stack."""
    reader = TrialReader(trial)
    header, result = reader.header(), decode((trial / layout.RESULT).read_bytes())
    rows = [structs.replace(row, output_tokens_source="estimated") for row in reader.rows()]
    uncounted = [Timeline(held.index, held.times_ns) for held in reader.timelines()]
    bare = structs.replace(result, identity_before=structs.replace(result.identity_before, facts={}))
    report = report_of(header, rows, uncounted, bare)
    told = aggregate(report)
    assert "output_length" not in told["requests"] and "output_token_rate" not in told["throughput"]
    assert told["latency"].keys() == {"time_to_first_token", "request_latency"}
    whole = json.loads(report)
    assert "stack" not in whole["scenario"] and "observability" not in whole["results"]


def test_failed_and_cut_requests_are_counted_apart(trial: Path) -> None:
    """They are in the counts and in no latency."""
    reader = TrialReader(trial)
    rows = reader.rows()
    changed = [
        structs.replace(
            row, outcome={rows[-1].index: "rejected", rows[-2].index: "cancelled"}.get(row.index, "ok")
        )
        for row in rows
    ]
    result = decode((trial / layout.RESULT).read_bytes())
    told = aggregate(report_of(reader.header(), changed, reader.timelines(), result))
    assert (told["requests"]["total"], told["requests"]["failures"], told["requests"]["incomplete"]) == (
        20,
        1,
        1,
    )
    nothing = aggregate(report_of(reader.header(), (), (), result))
    assert nothing == {"requests": {"total": 0, "failures": 0, "incomplete": 0}}


def test_a_level_of_a_curve_is_a_stage(made: Mapping[Kind, Path]) -> None:
    """Levels of a curve are stages in ascending order; a trial of a search is none."""
    curve = subject_of(made["curve"])
    stages = {path.name: stage_of(curve, path.name) for path in curve.trials}
    assert sorted(stages.items()) == [("64-8.c1.t1", 0), ("64-8.c2.t1", 1)]
    search = subject_of(made["capacity"])
    assert stage_of(search, search.trials[0].name) is None


def test_a_soak_has_its_windows_in_time(made: Mapping[Kind, Path]) -> None:
    """Totals are those of the soak, and each window that was observed whole is a point."""
    subject = subject_of(made["soak"])
    result, report = soak_result(subject), soak_report_of(subject, "llm-d")
    told = aggregate(report)
    assert told["requests"]["total"] == result.counts.sent
    series = json.loads(report)["results"]["request_performance"]["time_series"]
    whole = [window for segment in result.segments for window in segment.windows if not window.partial]
    points = series["throughput"]["request_rate"]["series"]
    assert [point["value"] for point in points] == [window.requests_per_s for window in whole]
    assert series["latency"]["time_to_first_token"]["units"] == "s"


def test_an_invalid_trial_has_no_report(made: Mapping[Kind, Path], tmp_path: Path, trial: Path) -> None:
    """Its numbers must not count, and a report has no place to say so; nor has one of streams that were cut."""
    result = decode((trial / layout.RESULT).read_bytes())
    verdict = structs.replace(result.verdict, status="invalid", reasons=("warm cache",))
    (tmp_path / layout.RESULT).write_bytes(json_of(structs.replace(result, verdict=verdict)))
    assert "warm cache" in why_not(tmp_path) and not why_not(trial)
    assert all(
        "cut as planned" in why_not(path)
        for path in subject_of(made["speed"]).trials
        if "decode" in path.name
    )


def json_of(value: Any) -> bytes:
    from nameplate.measure.result import encode

    return encode(value)
