"""Which metric means what on which engine: a table as data, read by `state.py` with exact names only.

Names are those of the engines' own metric modules; where a name was changed, the newer stands first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Rule = Literal["sum", "spread", "max", "mean", "histogram", "by_label", "labels"]


class Series(Struct, frozen=True):
    """Say which metric holds one meaning and how its series become one value.

    `names` in order of preference: the first that the page holds is used. `rule`: `sum` over engines;
    `spread` is mean and maximum; `by_label` sums per value of `label`; `labels` reads an info metric's labels.
    `where` keeps only series with that label value. `scale` names a gauge that turns blocks into tokens.
    """

    meaning: str
    names: tuple[str, ...]
    rule: Rule = "sum"
    label: str = ""
    where: tuple[str, str] | None = None
    scale: str = ""


class MetricsTable(Struct, frozen=True):
    """Hold one engine's page: where it is, its series, and which labels repeat a value instead of adding to it.

    `repeats`: ranks of one engine that all report the same number. `totals`: a label whose empty value marks the
    series that already is the sum of the others.
    """

    paths: tuple[str, ...]
    prefix: str
    series: tuple[Series, ...]
    repeats: frozenset[str] = frozenset()
    totals: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Name every sample of the page that is read."""
        found: set[str] = set()
        for series in self.series:
            found.update(name for base in series.names for name in sample_names(base, series.rule))
            if series.scale:
                found.add(series.scale)
        return frozenset(found)


def sample_names(name: str, rule: Rule) -> tuple[str, ...]:
    """Return the page's names of one metric: a histogram has three."""
    return (f"{name}_bucket", f"{name}_sum", f"{name}_count") if rule == "histogram" else (name,)


_PROCESS = Series("process_start_time_s", ("process_start_time_seconds",), "max")

VLLM = MetricsTable(
    paths=("/metrics",),
    prefix="vllm:",
    series=(
        Series("running", ("vllm:num_requests_running",)),
        Series("waiting", ("vllm:num_requests_waiting",)),
        Series("kv_usage", ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"), "spread"),
        Series("kv_tokens", ("vllm:cache_config_info",), "labels"),
        Series("preemptions_total", ("vllm:num_preemptions_total",)),
        Series("prompt_tokens_total", ("vllm:prompt_tokens_total",)),
        Series("output_tokens_total", ("vllm:generation_tokens_total",)),
        Series("cached_tokens_total", ("vllm:prompt_tokens_cached_total",)),
        Series(
            "cache_query_tokens_total",
            ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        ),
        Series(
            "cache_hit_tokens_total", ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")
        ),
        Series("spec_drafts_total", ("vllm:spec_decode_num_drafts_total",)),
        Series("spec_draft_tokens_total", ("vllm:spec_decode_num_draft_tokens_total",)),
        Series("spec_accepted_tokens_total", ("vllm:spec_decode_num_accepted_tokens_total",)),
        Series("finished", ("vllm:request_success_total",), "by_label", "finished_reason"),
        Series("queue", ("vllm:request_queue_time_seconds",), "histogram"),
        Series("prefill", ("vllm:request_prefill_time_seconds",), "histogram"),
        Series("decode", ("vllm:request_decode_time_seconds",), "histogram"),
        Series("ttft", ("vllm:time_to_first_token_seconds",), "histogram"),
        Series("e2e", ("vllm:e2e_request_latency_seconds",), "histogram"),
        _PROCESS,
    ),
)

SGLANG = MetricsTable(
    paths=("/metrics",),
    prefix="sglang:",
    series=(
        Series("running", ("sglang:num_running_reqs",)),
        Series("waiting", ("sglang:num_queue_reqs",)),
        Series("kv_usage", ("sglang:token_usage",), "spread"),
        Series("kv_tokens", ("sglang:max_total_num_tokens",)),
        Series("preemptions_total", ("sglang:num_retracted_requests_total",)),
        Series("prompt_tokens_total", ("sglang:prompt_tokens_total",)),
        Series("output_tokens_total", ("sglang:generation_tokens_total",)),
        # Not `cache_hit_rate`: it is a gauge of the last prefill batch, and set to zero by each decode report.
        Series("cached_tokens_total", ("sglang:cached_tokens_total",)),
        Series("spec_accept_length", ("sglang:spec_accept_length",), "mean"),
        Series("finished", ("sglang:num_requests_total",), "by_label"),
        Series("queue", ("sglang:queue_time_seconds",), "histogram"),
        Series(
            "prefill",
            ("sglang:per_stage_req_latency_seconds",),
            "histogram",
            where=("stage", "prefill_forward"),
        ),
        Series("ttft", ("sglang:time_to_first_token_seconds",), "histogram"),
        Series("e2e", ("sglang:e2e_request_latency_seconds",), "histogram"),
        _PROCESS,
    ),
    repeats=frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "attn_cp_rank", "pid"}),
    totals="priority",
)

TENSORRT_LLM = MetricsTable(
    # Its /metrics is a JSON list of iterations.
    paths=("/prometheus/metrics", "/metrics"),
    prefix="trtllm_",
    series=(
        Series("running", ("trtllm_num_requests_running",)),
        Series("waiting", ("trtllm_num_requests_waiting",)),
        Series("kv_usage", ("trtllm_kv_cache_utilization",), "spread"),
        Series("kv_tokens", ("trtllm_kv_cache_max_blocks",), scale="trtllm_kv_cache_tokens_per_block"),
        Series("prompt_tokens_total", ("trtllm_prompt_tokens_total",)),
        Series("output_tokens_total", ("trtllm_generation_tokens_total",)),
        Series(
            "cached_tokens_total",
            ("trtllm_kv_cache_reused_blocks_total",),
            scale="trtllm_kv_cache_tokens_per_block",
        ),
        Series("spec_draft_tokens_total", ("trtllm_spec_decode_num_draft_tokens_total",)),
        Series("spec_accepted_tokens_total", ("trtllm_spec_decode_num_accepted_tokens_total",)),
        Series("finished", ("trtllm_request_success_total",), "by_label", "finished_reason"),
        Series("queue", ("trtllm_request_queue_time_seconds",), "histogram"),
        Series("prefill", ("trtllm_request_prefill_time_seconds",), "histogram"),
        Series("decode", ("trtllm_request_decode_time_seconds",), "histogram"),
        Series("ttft", ("trtllm_time_to_first_token_seconds",), "histogram"),
        Series("e2e", ("trtllm_e2e_request_latency_seconds",), "histogram"),
        _PROCESS,
    ),
    repeats=frozenset({"pid"}),
)

LLAMA_CPP = MetricsTable(
    paths=("/metrics",),
    prefix="llamacpp:",
    series=(
        Series("running", ("llamacpp:requests_processing",)),
        Series("waiting", ("llamacpp:requests_deferred",)),
        Series("prompt_tokens_total", ("llamacpp:prompt_tokens_total",)),
        Series("output_tokens_total", ("llamacpp:tokens_predicted_total",)),
        Series("cached_tokens_total", ("llamacpp:prompt_tokens_cached_total",)),
        Series("spec_drafts_total", ("llamacpp:spec_decode_num_drafts_total",)),
        Series("spec_draft_tokens_total", ("llamacpp:spec_decode_num_draft_tokens_total",)),
        Series("spec_accepted_tokens_total", ("llamacpp:spec_decode_num_accepted_tokens_total",)),
    ),
)

# By the adapters' names; the built-in engine speaks vLLM's.
TABLES: Mapping[str, MetricsTable] = {
    "vllm": VLLM,
    "nameplate-sim": VLLM,
    "sglang": SGLANG,
    "tensorrt-llm": TENSORRT_LLM,
    "llama.cpp": LLAMA_CPP,
}
