"""Each way in which a file can contradict itself is named; nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nameplate.exchange.peers.checks import checks_of
from nameplate.exchange.peers.records import Read
from nameplate.exchange.peers.run import Load, Measure, Run
from nameplate.exchange.peers.tests.making import (
    DETAILED,
    GUIDELLM,
    SUMMARY,
    VLLM,
    changed,
    contradicted,
    document,
    only,
    put,
)

Change = Callable[[Any], object]


def _set(*path: Any, to: object) -> Change:
    """Return a change that sets one value."""

    def change(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("name", "change", "check", "words"),
    [
        (SUMMARY, _set("time_to_first_token", "p90", to=70.0), "order", "ttft: p90 is above p95"),
        (SUMMARY, _set("time_to_first_token", "avg", to=70.0), "order", "ttft: the mean is above max"),
        (SUMMARY, _set("request_latency", "avg", to=20.0), "order", "e2e: the mean is below min"),
        (SUMMARY, _set("inter_token_latency", "p1", to=-1.0), "order", "itl: min is above p1"),
        (SUMMARY, _set("output_token_throughput", "avg", to=90.0), "output_rate", "the file says 90.000/s"),
        (SUMMARY, _set("request_throughput", "avg", to=23.3), "request_rate", "4 completed requests in 0.21 s"),
        (SUMMARY, _set("time_to_first_token", "count", to=7), "counts", "ttft is of 7 requests"),
        (VLLM, _set("total_token_throughput", to=74.0), "total_rate", "2,064 tokens"),
        (VLLM, _set("failed", to=0), "counts", "5 requests, 4 completed, 0 failed"),
        (VLLM, _set("max_concurrency", to=1), "concurrency", "1 were allowed"),
        (VLLM, _set("max_output_tokens_per_s", to=3.0), "peak", "it is no count of tokens"),
        (VLLM, _set("median_ttft_ms", to=99.0), "order", "ttft: p50 is above p90"),
        (DETAILED, _set("ttfts", 0, to=0.058), "percentiles", "ttft p50 is 52.500 ms, its records give"),
        (DETAILED, _set("itls", 3, to=[0.02, 0.01, 0.09]), "percentiles", "chunk_gaps p95"),
        (DETAILED, _set("output_lens", 0, to=9), "output tokens", "the records hold 21"),
        (DETAILED, _set("errors", 0, to="gone"), "records", "3 records of completed requests, 4 completed"),
        (
            GUIDELLM, _set("benchmarks", 0, "metrics", "request_totals", "successful", to=5), "counts",
            "5 requests, 5 completed, 1 failed",
        ),
        (
            GUIDELLM,
            _set("benchmarks", 0, "metrics", "request_latency", "successful", "percentiles", "p95", to=0.110),
            "percentiles", "e2e p95 is 110.000 ms, its records give 116.000 ms",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_is_named(name: str, change: Change, check: str, words: str, tmp_path: Path) -> None:
    """One altered number is found by the check that it breaks, with both sides of it."""
    run = changed(tmp_path, name, change)
    assert check in contradicted(run)
    assert any(words in found.detail for found in run.contradictions), run.contradictions


def test_a_sample_of_requests_is_no_contradiction(tmp_path: Path) -> None:
    """A GuideLLM report may list some of its requests: that is unverified."""
    told = document(GUIDELLM)
    told["benchmarks"][0]["requests"]["successful"].pop()
    run = only(put(tmp_path, told))
    assert not contradicted(run)
    assert [check.status for check in run.checks if check.name == "records"] == ["unverified"]


def test_a_rate_over_time_is_no_count_by_a_time(tmp_path: Path) -> None:
    """GuideLLM's rates are means over moments, and leave out what ends with the window: unverified."""
    told = document(GUIDELLM)
    told["benchmarks"][0]["metrics"]["requests_per_second"]["successful"]["mean"] = 12.0
    run = only(put(tmp_path, told))
    assert not contradicted(run)
    assert [check.status for check in run.checks if check.name == "request_rate"] == ["unverified"]


def test_lists_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    """A list of another length cannot be matched with requests: it is left out and said."""
    told = document(DETAILED)
    told["itls"].pop()
    run = only(put(tmp_path, told))
    assert any("itls has 4 entries for 5 requests" in note for note in run.notes)


def test_absent_numbers_are_not_checked() -> None:
    """A run that tells nothing is not contradicted by zeros."""
    assert checks_of(Read(Run(tool="AIPerf"))) == ()
    lone = Measure(name="output_rate", field="x", unit="1/s", mean=5.0)
    found = checks_of(Read(Run(tool="AIPerf", measures=(lone,), load=Load(concurrency=1))))
    assert [check.name for check in found] == ["order"]
