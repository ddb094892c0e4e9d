"""The metrics page, in the names and the text format of vLLM's."""

from collections.abc import Iterator

from nameplate.sim.engine import Engine
from nameplate.sim.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render_metrics(engine: Engine, *, model: str, started_s: float, phantom_running: int = 0) -> bytes:
    """Return the page; `phantom_running` pretends that somebody else's requests run as well."""
    return ("\n".join(_lines(engine, model, started_s, phantom_running)) + "\n").encode()


def _lines(engine: Engine, model: str, started_s: float, phantom_running: int) -> Iterator[str]:
    state, counters, parameters = engine.state(), engine.counters, engine.parameters
    labels = f'engine="0",model_name="{_escape(model)}"'

    def metric(name: str, kind: str, value: float, about: str) -> Iterator[str]:
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} {kind}"
        yield f"{name}{{{labels}}} {float(value)!r}"

    yield "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds."
    yield "# TYPE process_start_time_seconds gauge"
    yield f"process_start_time_seconds {started_s!r}"
    running = state.running + phantom_running
    yield from metric("vllm:num_requests_running", "gauge", running, "Requests in execution batches.")
    yield from metric(
        "vllm:num_requests_waiting", "gauge", state.waiting, "Requests waiting to be processed."
    )
    # Real pages have this near-namesake: it must not be mistaken for the gauge above.
    yield "# HELP vllm:num_requests_waiting_by_reason Waiting requests by the reason of their waiting."
    yield "# TYPE vllm:num_requests_waiting_by_reason gauge"
    for reason, value in (("capacity", state.waiting), ("deferred", 0)):
        yield f'vllm:num_requests_waiting_by_reason{{{labels},reason="{reason}"}} {float(value)!r}'
    yield from metric(
        "vllm:kv_cache_usage_perc", "gauge", state.kv_use, "KV-cache usage. 1 means 100 percent usage."
    )
    for name, value, about in (
        ("prefix_cache_queries", counters.prefix_queries, "Prefix cache queries, in tokens."),
        ("prefix_cache_hits", counters.prefix_hits, "Prefix cache hits, in tokens."),
        ("num_preemptions", counters.preemptions, "Cumulative number of preemptions."),
        ("prompt_tokens", counters.prompt_tokens, "Number of prefill tokens processed."),
        ("prompt_tokens_cached", counters.cached_tokens, "Prompt tokens found in the cache."),
        ("generation_tokens", counters.generation_tokens, "Number of generation tokens processed."),
    ):
        yield from metric(f"vllm:{name}_total", "counter", value, about)
    if parameters.draft_tokens:
        for name, value, about in (
            ("num_drafts", counters.drafts, "Number of spec decoding drafts."),
            ("num_draft_tokens", counters.draft_tokens, "Number of draft tokens."),
            ("num_accepted_tokens", counters.accepted_tokens, "Number of accepted tokens."),
        ):
            yield from metric(f"vllm:spec_decode_{name}_total", "counter", value, about)
    yield "# HELP vllm:request_success_total Count of successfully processed requests."
    yield "# TYPE vllm:request_success_total counter"
    for reason, value in counters.finished().items():
        yield f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(value)!r}'
    histograms = engine.histograms
    for name, histogram, about in (
        ("time_to_first_token_seconds", histograms.ttft, "Histogram of time to first token in seconds."),
        ("inter_token_latency_seconds", histograms.itl, "Histogram of inter-token latency in seconds."),
        ("e2e_request_latency_seconds", histograms.e2e, "Histogram of e2e request latency in seconds."),
        ("request_queue_time_seconds", histograms.queue, "Histogram of time spent in WAITING phase."),
        ("request_inference_time_seconds", histograms.inference, "Histogram of time spent in RUNNING phase."),
        ("request_prefill_time_seconds", histograms.prefill, "Histogram of time spent in PREFILL phase."),
        ("request_decode_time_seconds", histograms.decode, "Histogram of time spent in DECODE phase."),
    ):
        yield from _histogram(f"vllm:{name}", labels, histogram, about)
    yield "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig"
    yield "# TYPE vllm:cache_config_info gauge"
    cache = {
        "block_size": parameters.block_tokens,
        "enable_prefix_caching": parameters.prefix_cache,
        "engine": 0,
        "kv_cache_size_tokens": parameters.claimed_blocks * parameters.block_tokens,
        "num_gpu_blocks": parameters.claimed_blocks,
    }
    described = ",".join(f'{name}="{value}"' for name, value in cache.items())
    yield f"vllm:cache_config_info{{{described}}} 1.0"


def _histogram(name: str, labels: str, histogram: Histogram, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} histogram"
    counts = histogram.cumulative()
    for edge, count in zip((*map(str, map(float, histogram.edges_s)), "+Inf"), counts, strict=True):
        yield f'{name}_bucket{{{labels},le="{edge}"}} {float(count)!r}'
    yield f"{name}_count{{{labels}}} {float(counts[-1])!r}"
    yield f"{name}_sum{{{labels}}} {histogram.sum_s!r}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
