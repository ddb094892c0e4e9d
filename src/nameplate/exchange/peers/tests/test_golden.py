"""Each format's golden file: what is read from it, what is computed from it, and that nothing contradicts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.exchange.peers.further import FURTHER
from nameplate.exchange.peers.run import decode, encode
from nameplate.exchange.peers.sources import (
    DEFINITIONS,
    EVEN_TOKEN,
    INVERSE_CDF,
    OUR_DEFINITIONS,
    TOKENIZER,
    USAGE,
)
from nameplate.exchange.peers.tests.making import (
    ALL,
    DETAILED,
    GUIDELLM,
    HERE,
    LLAMA_BENCH,
    MS,
    RAW,
    RECORDS,
    RESPONSES,
    SGLANG,
    SUMMARY,
    VLLM,
    contradicted,
    document,
    imported,
    lines,
    only,
    put,
    shown,
)

LINEAR_TTFT = {"p50": 52.5 * MS, "p95": 59.25 * MS, "p99": 59.85 * MS}


@pytest.mark.parametrize("name", ALL)
def test_nothing_contradicts_a_golden_file(name: str) -> None:
    """All checks hold or are unverified, every measure has a definition, and the document survives its encoding."""
    found = imported(HERE / name)
    for run in found.runs:
        assert not contradicted(run)
        assert {measure.name for measure in run.measures} <= run.definitions.keys()
        assert all(definition.documented for definition in run.definitions.values())
    assert decode(encode(found)) == found
    assert "its own" in shown(found) or name in (RECORDS, RAW, RESPONSES, LLAMA_BENCH)


@pytest.mark.parametrize("name", [SUMMARY, VLLM, DETAILED])
def test_the_same_requests_give_the_same_numbers(name: str) -> None:
    """AIPerf and vLLM rank alike: the percentiles of one set of requests are equal, in nanoseconds."""
    run = only(HERE / name)
    ttft, rate = run.measure("ttft"), run.measure("output_rate")
    assert ttft is not None and ttft.n == 4 and ttft.unit == "ns"
    assert {key: ttft.percentiles[key] for key in LINEAR_TTFT} == pytest.approx(LINEAR_TTFT)
    assert ttft.mean == pytest.approx(51.25 * MS) and "p95" in ttft.unsupported
    assert rate is not None and rate.mean == pytest.approx(16 / 0.215)
    assert (run.counts.requests, run.counts.completed, run.counts.failed) == (5, 4, 1)
    assert run.load.concurrency == 2 and run.model == "made/model-1b"
    assert run.window_s == pytest.approx(0.215)


def test_aiperf_says_who_it_is() -> None:
    """Version, server, load and lengths come from the summary's configuration and command line."""
    run = only(HERE / SUMMARY)
    assert (run.version, run.endpoint) == ("0.13.0", "http://127.0.0.1:8000")
    assert run.load.warmup_requests == 1 and run.load.requests == 5
    assert (run.load.input_tokens, run.load.output_tokens) == (512, 4)
    assert run.definitions["itl"].tokens == TOKENIZER
    assert any("503" in note for note in run.notes)


def test_aiperfs_newer_configuration(tmp_path: Path) -> None:
    """From 0.10 on models are objects, and phases stand apart: the warm-up's load is not the run's."""
    told = document(SUMMARY)
    told["run_info"]["cli_command"] = None
    told["input_config"] = {
        "models": {"items": [{"name": "made/model-1b"}]},
        "endpoint": {"urls": ["http://127.0.0.1:8000"], "type": "chat", "streaming": True},
        "datasets": [
            {"name": "main", "type": "file", "path": "a.jsonl", "format": "multi_turn", "entries": 5}
        ],
        "phases": [
            {"name": "warmup", "type": "concurrency", "requests": 1, "concurrency": 7},
            {"name": "profiling", "type": "concurrency", "requests": 5, "concurrency": 2},
        ],
    }
    run = only(put(tmp_path, told))
    assert (run.model, run.endpoint) == ("made/model-1b", "http://127.0.0.1:8000")
    assert run.load.concurrency == 2 and run.load.requests == 5 and run.load.dataset == "multi_turn"
    assert (run.load.input_tokens, run.load.output_tokens) == (512, 4)


def test_aiperf_tokens_of_the_server(tmp_path: Path) -> None:
    """Where AIPerf was told to take the server's count, its definitions say so."""
    told = document(SUMMARY)
    told["run_info"]["cli_command"] += " --use-server-token-count"
    assert only(put(tmp_path, told)).definitions["itl"].tokens == USAGE


def test_guidellm_keeps_its_percentiles() -> None:
    """GuideLLM does not interpolate and weighs ITL by tokens: both stay, and are said."""
    run = only(HERE / GUIDELLM)
    ttft, itl = run.measure("ttft"), run.measure("itl")
    assert ttft is not None and ttft.percentiles["p50"] == 50 * MS
    assert run.definitions["ttft"].percentiles == INVERSE_CDF
    assert itl is not None and itl.n is None
    assert run.load.concurrency == 2 and run.label == "concurrent 2" and run.version == "0.8.0"
    assert run.window_s == pytest.approx(0.25)


def test_sglang_has_a_run_a_line() -> None:
    """A bare Infinity is an unbounded rate; a rate and details come from the second line."""
    first, second = imported(HERE / SGLANG).runs
    assert first.load.rate_unbounded and first.load.concurrency == 2 and first.counts.failed is None
    assert second.load.rate_per_s == 4.0 and second.load.arrivals == "poisson"
    assert second.label == "four a second" and second.counts.failed == 1
    again = second.measure("total_output_tokens_retokenized")
    assert again is not None and again.mean == 15


def test_sglangs_own_interface_spreads_gaps(tmp_path: Path) -> None:
    """With SGLang's native backend a gap is spread over the tokens it brought: another definition."""
    told = lines(SGLANG)[:1]
    told[0] |= {"backend": "sglang", "request_rate": 4.0}
    assert only(put(tmp_path, told)).definitions["chunk_gaps"].of == EVEN_TOKEN


@pytest.mark.parametrize("name", [RECORDS, RAW, DETAILED, GUIDELLM])
def test_records_are_computed_by_our_rules(name: str) -> None:
    """The refused request counts as never, so that the tail is infinite and the median moves."""
    run = only(HERE / name)
    ours = {found.name: found for found in run.recomputed}
    ttft = ours["ttft"]
    assert (ttft.n, ttft.censored) == (5, 1)
    assert ttft.percentiles["p50"] == pytest.approx(55 * MS, abs=1_000)
    assert set(ttft.infinite) == {"p90", "p95", "p99"} and ttft.mean is None
    assert ours["itl"].percentiles["p50"] == pytest.approx(12 * MS, abs=1_000)
    if name != GUIDELLM:
        assert ours["chunk_gaps"].n == 12 and ours["longest_gap"].percentiles["p50"] == pytest.approx(14 * MS)
    else:
        assert "chunk_gaps" not in ours


def test_what_our_rules_take_from_a_file_is_said() -> None:
    """vLLM's first chunk may hold no output: a TTFT computed from it says so; AIPerf's raw events give none of that."""
    vllm = {found.name: found.differs for found in only(HERE / DETAILED).recomputed}
    raw = {found.name: found.differs for found in only(HERE / RAW).recomputed}
    assert any("role-only" in said for said in vllm["ttft"])
    assert raw["itl"] == () and any("connecting included" in said for said in raw["ttft"])


def test_warmup_is_left_out() -> None:
    """AIPerf's warm-up request is no measured one."""
    run = only(HERE / RECORDS)
    assert run.counts.requests == 5 and run.counts.left_out == 1


def test_properties_of_definitions_are_listed() -> None:
    """A definition lists exactly the properties that its measure has, and every meaning is a sentence."""
    for table in (*DEFINITIONS.values(), *FURTHER.values(), OUR_DEFINITIONS):
        for definition in table.values():
            assert definition.meaning.endswith(".")
            set_ = {
                name
                for name in ("begins", "ends", "of", "failures", "percentiles")
                if getattr(definition, name)
            }
            assert set_ <= set(definition.properties)
