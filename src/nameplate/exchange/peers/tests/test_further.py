"""Further tools' files: each number with its own definition, and none of them taken for another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nameplate.contract.errors import CallerError
from nameplate.exchange.peers.comparable import comparable
from nameplate.exchange.peers.further import FIRST_TOKEN, LLMD
from nameplate.exchange.peers.sources import FIRST_CONTENT, SENT, STARTED, TOKENIZER
from nameplate.exchange.peers.tests.making import (
    FURTHER,
    GENAI_PERF,
    HERE,
    INFERENCE_PERF,
    LLAMA_BENCH,
    LLMPERF,
    MS,
    RESPONSES,
    VLLM,
    changed,
    contradicted,
    document,
    imported,
    only,
    put,
    shown,
)
from nameplate.exchange.peers.tests.making import LLMD as REPORT

TTFT = {"p50": 52.5 * MS, "p95": 59.25 * MS}


@pytest.mark.parametrize("name", [GENAI_PERF, INFERENCE_PERF, LLMPERF, REPORT])
def test_the_same_requests_in_nanoseconds(name: str) -> None:
    """Seconds and milliseconds of all of them become the same nanoseconds; four of the requests ended well."""
    run = only(HERE / name)
    ttft, rate = run.measure("ttft"), run.measure("output_rate")
    assert ttft is not None and {key: ttft.percentiles[key] for key in TTFT} == pytest.approx(TTFT)
    assert rate is not None and rate.mean == pytest.approx(64.0)
    assert run.counts.completed == 4 and run.load.input_tokens and run.load.output_tokens == 4


def test_definitions_are_each_tools_own() -> None:
    """What begins, ends and counts differs, and where it is not known nothing is said."""
    ttft = {
        name: only(HERE / name).definitions["ttft"] for name in (GENAI_PERF, INFERENCE_PERF, LLMPERF, REPORT)
    }
    assert ttft[INFERENCE_PERF].ends == FIRST_TOKEN and ttft[LLMPERF].ends == FIRST_CONTENT
    assert ttft[GENAI_PERF].begins == STARTED and ttft[REPORT].begins is ttft[REPORT].ends is None
    assert only(HERE / LLMPERF).definitions["tpot"].denominator == "output tokens"
    assert only(HERE / INFERENCE_PERF).definitions["tpot"].denominator == "output tokens - 1"
    whose = only(HERE / REPORT)
    assert whose.tool == LLMD and whose.version == "0.2.1, by inference-perf 0.3.0" and whose.engine == "vllm"


def test_what_is_not_known_is_not_compared() -> None:
    """A report of a harness is never comparable: what it measured is not in it."""
    assert comparable(only(HERE / REPORT), only(HERE / REPORT)).comparable == ()
    assert "ttft" not in comparable(only(HERE / INFERENCE_PERF), only(HERE / VLLM)).comparable


def test_a_report_of_ours_comes_back(tmp_path: Path) -> None:
    """What was written as an llm-d report is read with our definitions."""
    told = document(REPORT)
    told["scenario"]["load"]["standardized"]["tool"] = "nameplate"
    run = only(put(tmp_path, told))
    assert run.definitions["ttft"].begins == SENT and "ttft" in comparable(run, run).measures


def test_the_first_version_of_the_report(tmp_path: Path) -> None:
    """Version 0.1 has its rates as numbers and the harness by another name."""
    told = document(REPORT)
    held = told["results"]["request_performance"]["aggregate"]
    rates = {"output_tokens_per_sec": 64.0, "total_tokens_per_sec": 1088.0, "requests_per_sec": 16.0}
    old = {
        "version": "0.1",
        "scenario": {"model": {"name": "toy"}, "load": {"name": "vllm-benchmark"}},
        "metrics": {**held, "throughput": rates, "time": {"duration": 0.25}},
    }
    run = only(put(tmp_path, old))
    rate = run.measure("output_rate")
    assert (
        run.model == "toy"
        and run.version == "0.1, by vllm-benchmark"
        and rate is not None
        and rate.mean == 64.0
    )


def test_units_that_are_not_known_are_refused(tmp_path: Path) -> None:
    """A number without its unit says nothing."""
    told = document(REPORT)
    told["results"]["request_performance"]["aggregate"]["latency"]["time_to_first_token"]["units"] = (
        "fortnights"
    )
    with pytest.raises(CallerError, match="no unit of ttft"):
        imported(put(tmp_path, told))


def test_responses_are_computed_by_our_rules() -> None:
    """LLMPerf's responses give our own percentiles, the refused request counting as never."""
    run = only(HERE / RESPONSES)
    (ttft,) = [found for found in run.recomputed if found.name == "ttft"]
    assert (
        ttft.n == 5 and ttft.censored == 1 and ttft.percentiles["p50"] == 55 * MS and "p95" in ttft.infinite
    )
    (e2e,) = [found for found in run.recomputed if found.name == "e2e"]
    assert e2e.percentiles["p50"] == pytest.approx(96 * MS)
    assert any(TOKENIZER in said for found in run.recomputed for said in found.differs)


def test_tests_of_a_model_have_rates_alone() -> None:
    """llama-bench knows no server: its tests are lines with prefill or decode, and no TTFT."""
    found = imported(HERE / LLAMA_BENCH)
    labels = {run.label: [measure.name for measure in run.measures] for run in found.runs}
    assert labels == {"pp512": ["prefill_rate", "repetition"], "tg128 @ d512": ["decode_rate", "repetition"]}
    text = shown(found)
    assert "TTFT" not in text and "7,049 ±" in text and "119.5 ±" in text


def test_lines_of_a_model_are_the_same(tmp_path: Path) -> None:
    """JSONL of llama-bench is what its JSON is."""
    listed = json.loads((HERE / LLAMA_BENCH).read_bytes())
    assert [run.measures for run in imported(put(tmp_path, listed)).runs] == [
        run.measures for run in imported(HERE / LLAMA_BENCH).runs
    ]


def _halve(told: dict[str, Any]) -> None:
    told["successes"]["throughput"]["requests_per_sec"] = 8.0


def _lose(told: dict[str, Any]) -> None:
    told["failures"]["count"] = 7


def _swap(told: dict[str, Any]) -> None:
    told["results_ttft_s_quantiles_p50"] = 1.0


def test_contradictions_are_found(tmp_path: Path) -> None:
    """A rate that is no count by the time, counts that do not add up, percentiles that fall, a mean of no samples."""
    assert contradicted(changed(tmp_path, INFERENCE_PERF, _halve)) == ["request_rate"]
    assert contradicted(changed(tmp_path, INFERENCE_PERF, _lose)) == ["counts"]
    assert contradicted(changed(tmp_path, LLMPERF, _swap)) == ["order"]
    listed = json.loads((HERE / LLAMA_BENCH).read_bytes())
    listed[0]["avg_ts"] *= 2
    found = imported(put(tmp_path, json.dumps(listed).encode()))
    assert contradicted(found.runs[0]) == ["avg_ts", "order"] and found.exit_code == 4


@pytest.mark.parametrize("name", FURTHER)
def test_no_slo_is_judged_from_aggregates(name: str) -> None:
    """Without the events of every request a verdict would be a guess."""
    with pytest.raises(CallerError, match="no SLO can be judged"):
        imported(HERE / name, "ttft p95 < 1s")


def test_what_did_not_run_is_said(tmp_path: Path) -> None:
    """Summaries without a request that ended well are refused in words."""
    for value, words in (
        ({"load_summary": {}, "successes": {}, "failures": {}}, "no request of the run ended well"),
        ({"version": "0.2.1", "run": {"uid": "x"}, "results": {}}, "no measure of requests"),
        (
            {"results_ttft_s_mean": None, "results_num_requests_started": 5},
            "no request of the run ended well",
        ),
        ({"avg_ns": 0, "avg_ts": 0, "n_prompt": 1, "n_gen": 0}, "did not come to an end"),
    ):
        with pytest.raises(CallerError, match=words):
            imported(put(tmp_path, value))
