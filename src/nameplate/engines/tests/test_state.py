"""Metrics pages to states."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.engines.fakes import reply
from nameplate.engines.metrics import LLAMA_CPP, SGLANG, TABLES, TENSORRT_LLM, VLLM
from nameplate.engines.page import parse, read_state
from nameplate.engines.state import ServerSample, ServerState
from nameplate.engines.tests.helpers import golden
from nameplate.engines.transport import Reply

VLLM_PAGE = (
    'vllm:num_requests_running{engine="0"} 3.0\n'
    'vllm:num_requests_running{engine="1"} 2.0\n'
    'vllm:num_requests_waiting{engine="0"} 1.0\n'
    'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 7.0\n'
    'vllm:kv_cache_usage_perc{engine="0"} 0.2\n'
    'vllm:kv_cache_usage_perc{engine="1"} 0.6\n'
    'vllm:prompt_tokens_total{engine="0"} 100.0\n'
    'vllm:prompt_tokens_created{engine="0"} 1.79e+09\n'
    'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="10",kv_cache_size_tokens="80"} 1.0\n'
    'vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="10",kv_cache_size_tokens="None"} 1.0\n'
)


def test_a_real_vllm_page_is_read_whole() -> None:
    """A page of vLLM 0.32 gives every meaning but speculation, which that server did not use."""
    state = read_state(golden("vllm-0.32-metrics.txt"), VLLM, 7)
    assert state.error is None and state.t_ns == 7
    assert (state.running, state.waiting, state.kv_usage_max) == (0, 0, 0.0)
    assert (state.kv_tokens, state.block_size_tokens, state.prefix_caching) == (349_440, 128, True)
    assert state.missing == ("spec_drafts_total", "spec_draft_tokens_total", "spec_accepted_tokens_total")
    assert state.ttft is not None and state.ttft.buckets[0][0] == 0.001
    assert state.finished is not None and dict(state.finished)["length"] == state.ttft.count
    assert state.process_start_time_s == pytest.approx(1.79600974673e9)


def test_series_of_one_meaning_are_summed_and_usage_has_mean_and_maximum() -> None:
    """Two engines' requests add up; their cache use does not."""
    state = read_state(reply(VLLM_PAGE), VLLM, 0)
    assert (state.running, state.waiting, state.prompt_tokens_total) == (5, 1, 100)
    assert state.kv_usage_mean == pytest.approx(0.4) and state.kv_usage_max == 0.6


def test_names_are_exact_and_created_series_are_no_values() -> None:
    """Neither `waiting_by_reason` nor `_created` is counted as something else."""
    samples = parse(VLLM_PAGE.encode(), VLLM.names)
    assert "vllm:num_requests_waiting_by_reason" not in samples
    assert not any(name.endswith("_created") for name in samples)


def test_the_engines_own_kv_count_wins_over_blocks_and_engines_add_up() -> None:
    """One engine tells 80 tokens though its blocks make 160; the other tells only blocks."""
    assert read_state(reply(VLLM_PAGE), VLLM, 0).kv_tokens == 80 + 160


def test_what_a_page_lacks_is_unknown_and_named() -> None:
    """A missing metric is None and listed, never zero."""
    state = read_state(reply("vllm:num_requests_running 0\n"), VLLM, 0)
    assert state.running == 0 and state.waiting is None and "waiting" in state.missing
    assert state.cache_hits is None and state.finished_total is None


def test_sglang_priority_series_are_not_counted_twice() -> None:
    """The series with an empty priority already is the total of the others."""
    page = (
        'sglang:num_running_reqs{priority="",tp_rank="0"} 14\n'
        'sglang:num_running_reqs{priority="-1",tp_rank="0"} 10\n'
        'sglang:num_running_reqs{priority="0",tp_rank="0"} 4\n'
        'sglang:num_queue_reqs{priority="0"} 2\n'
        'sglang:num_queue_reqs{priority="1"} 3\n'
    )
    state = read_state(reply(page), SGLANG, 0)
    assert state.running == 14
    assert state.waiting == 5


def test_sglang_tensor_ranks_repeat_and_data_parallel_ranks_add() -> None:
    """Ranks of one engine report the same requests; engines have their own."""
    page = "".join(
        f'sglang:num_running_reqs{{dp_rank="{dp}",tp_rank="{tp}"}} {3 + dp}\n'
        f'sglang:max_total_num_tokens{{dp_rank="{dp}",tp_rank="{tp}"}} 1000\n'
        for dp in (0, 1)
        for tp in (0, 1, 2, 3)
    )
    state = read_state(reply(page), SGLANG, 0)
    assert (state.running, state.kv_tokens) == (7, 2000)


def test_sglang_stage_histogram_reads_one_stage() -> None:
    """Only the prefill stage counts as prefill."""
    page = "sglang:num_running_reqs 0\n" + "".join(
        f'sglang:per_stage_req_latency_seconds_{part}{{stage="{stage}"}} {value}\n'
        for stage, value in (("prefill_forward", 2), ("tokenize", 90))
        for part in ("sum", "count")
    )
    state = read_state(reply(page), SGLANG, 0)
    assert state.prefill is not None and (state.prefill.sum_s, state.prefill.count) == (2.0, 2)


def test_tensorrt_llm_blocks_become_tokens() -> None:
    """Its pool and its reuse are in blocks, and the page tells their size."""
    page = (
        "trtllm_num_requests_running 1\ntrtllm_kv_cache_max_blocks 10\n"
        "trtllm_kv_cache_tokens_per_block 32\ntrtllm_kv_cache_reused_blocks_total 3\n"
    )
    state = read_state(reply(page), TENSORRT_LLM, 0)
    assert (state.kv_tokens, state.cached_tokens_total) == (320, 96)


def test_llama_cpp_has_no_kv_use() -> None:
    """What its page does not have stays unknown."""
    state = read_state(reply("llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n"), LLAMA_CPP, 0)
    assert (state.running, state.waiting, state.kv_usage_max, state.idle) == (2, 1, None, False)


def test_histogram_buckets_of_several_series_add_up() -> None:
    """Buckets are summed edge by edge, and infinity is left to the count."""
    page = "vllm:num_requests_running 0\n" + "".join(
        f'vllm:time_to_first_token_seconds_bucket{{engine="{engine}",le="0.5"}} 2\n'
        f'vllm:time_to_first_token_seconds_bucket{{engine="{engine}",le="+Inf"}} 3\n'
        f'vllm:time_to_first_token_seconds_sum{{engine="{engine}"}} 1.5\n'
        f'vllm:time_to_first_token_seconds_count{{engine="{engine}"}} 3\n'
        for engine in "01"
    )
    state = read_state(reply(page), VLLM, 0)
    assert state.ttft is not None
    assert (state.ttft.sum_s, state.ttft.count, state.ttft.buckets) == (3.0, 6, ((0.5, 4),))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply("<!DOCTYPE html><html>login", content_type="text/html"), "HTML"),
        (reply([]), "empty JSON list"),
        (reply([{"iter": 1}]), "a JSON list"),
        (reply({"a": 1}), "is JSON"),
        (reply(b""), "empty"),
        (reply("nothing", 404), "HTTP 404"),
        (reply("no", 401), "key"),
        (reply("other_metric 1\n"), "no vllm: metric"),
        (reply("vllm:num_requests_running{ 1\n"), "cannot be parsed"),
        (reply(b"\xff\xfe\x00\x01" * 100), "no vllm: metric"),
    ],
)
def test_a_page_that_is_none_is_unknown_and_says_what_it_was(answer: Reply, words: str) -> None:
    """A failed scrape leaves everything unknown, with the reason."""
    state = read_state(answer, VLLM, 5)
    assert state.error is not None and words in state.error
    assert state.running is None and state.idle is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e308", "1e30"])
def test_impossible_values_are_unknown(value: str) -> None:
    """No such value becomes a number of requests, and none crashes."""
    page = f"vllm:num_requests_waiting 0\nvllm:num_requests_running {value}\nvllm:request_success_total {value}\n"
    state = read_state(reply(page), VLLM, 0)
    assert state.running is None and state.error is None
    msgspec.json.encode(state)


@given(st.binary(max_size=400), st.sampled_from(sorted(TABLES)))
def test_no_bytes_crash_the_reader(noise: bytes, engine: str) -> None:
    """Any bytes between two good lines give a state, and it can be written."""
    table = TABLES[engine]
    good = f"{table.series[0].names[0]} 4\n".encode()
    state = read_state(reply(good + noise + b"\n" + good), table, 1)
    assert isinstance(state, ServerState)
    msgspec.json.encode(ServerSample.of(state))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_a_sum_over_engines_is_their_sum(counts: list[int]) -> None:
    """However many engines report, the total is theirs."""
    page = "".join(f'vllm:num_requests_running{{engine="{i}"}} {n}\n' for i, n in enumerate(counts))
    assert read_state(reply(page), VLLM, 0).running == sum(counts)


def test_a_sample_keeps_the_sums_of_histograms() -> None:
    """A line of the time series holds no buckets, and an error line only its error."""
    state = read_state(golden("vllm-0.32-metrics.txt"), VLLM, 1)
    sample = ServerSample.of(state, 5)
    assert state.ttft is not None and sample.ttft_s == (state.ttft.sum_s, state.ttft.count)
    assert b"bucket" not in msgspec.json.encode(sample)
    failed = ServerSample.of(ServerState(2, error="down"))
    assert failed.running is None and failed.error == "down"
