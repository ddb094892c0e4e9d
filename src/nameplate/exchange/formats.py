"""Which tool wrote a file, told by its content alone: the names in its first JSON object, never the file's own name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.exchange.strangers import FOREIGN, FOREIGN_ITEMS, MAGIC

LIB = "llm-inference-bench"


class Format(Struct, frozen=True):
    """Name one kind of file: `lines` has an object a line, `read` says whether this program reads it."""

    key: str
    says: str
    lines: bool = False
    read: bool = True
    hint: str = ""


AIPERF_SUMMARY = Format("aiperf", "AIPerf's summary (profile_export_aiperf.json)")
AIPERF_RECORDS = Format("aiperf-records", "AIPerf's records (profile_export.jsonl)", lines=True)
AIPERF_RAW = Format("aiperf-raw", "AIPerf's raw records (profile_export_raw.jsonl)", lines=True)
GUIDELLM = Format("guidellm", "GuideLLM's report (benchmarks.json)")
VLLM = Format("vllm", "the result of `vllm bench serve --save-result`", lines=True)
SGLANG = Format("sglang", "the result of SGLang's bench_serving", lines=True)
GENAI_PERF = Format("genai-perf", "GenAI-Perf's summary (profile_export_genai_perf.json)")
INFERENCE_PERF = Format(
    "inference-perf", "a summary of inference-perf (summary_ or stage_N_lifecycle_metrics.json)"
)
LLMPERF = Format("llmperf", "LLMPerf's summary (*_summary.json)")
LLMPERF_RESPONSES = Format(
    "llmperf-responses", "LLMPerf's responses (*_individual_responses.json)", lines=True
)
LLAMA_BENCH = Format("llama-bench", "the JSON or JSONL of llama-bench", lines=True)
LLMD = Format("llm-d", "an llm-d benchmark report (JSON)")
MATRIX = Format("llm-inference-bench", f"a result file of {LIB}")

KNOWN = (
    AIPERF_SUMMARY, AIPERF_RECORDS, AIPERF_RAW, GENAI_PERF, GUIDELLM, VLLM, SGLANG, INFERENCE_PERF, LLMPERF,
    LLMPERF_RESPONSES, LLAMA_BENCH, LLMD, MATRIX,
)  # fmt: skip

_OURS = "It needs no import: see nameplate show and nameplate verify with its directory."

# What only the options of GenAI-Perf are called.
_GENAI_PERF_CONFIG = ("service_kind", "perf_analyzer", "formatted_model_name", "subcommand")
# A block of AIPerf's summary; it has others as the run gives.
_AIPERF_TAGS = ("request_latency", "request_count", "request_throughput", "benchmark_duration")

_NAME = re.compile(rb'"([A-Za-z_][A-Za-z0-9_.]{0,60})"\s*:')


def recognise(value: Mapping[str, Any]) -> Format | None:
    """Return what kind of file begins with this object; None for one that is not known.

    Values may be `msgspec.Raw`: only the names are looked at, but for those of `metadata` and of `schema`.
    """
    names = value.keys()
    if "schema" in names and str(_plain(value["schema"])).startswith("nameplate."):
        return Format("", "a result of nameplate itself", read=False, hint=_OURS)
    if {"plan", "measurement", "verdict"} <= names:
        return Format("", "the result of one of our own trials", read=False, hint=_OURS)
    if {"metadata", "start_perf_ns", "responses"} <= names:
        return AIPERF_RAW
    if {"metadata", "metrics"} <= names and _has(value["metadata"], "benchmark_phase", "request_start_ns"):
        return AIPERF_RECORDS
    for stranger in FOREIGN:
        if names >= set(stranger.names):
            return Format("", stranger.says, read=False, hint=stranger.hint)
    if {"load_summary", "successes", "failures"} <= names:
        return INFERENCE_PERF
    if {"results_ttft_s_mean", "results_num_requests_started"} <= names:
        return LLMPERF
    if {"ttft_s", "end_to_end_latency_s", "error_code"} <= names:
        return LLMPERF_RESPONSES
    if {"avg_ns", "avg_ts", "n_prompt", "n_gen"} <= names:
        return LLAMA_BENCH
    if "version" in names and ({"run", "results"} <= names or {"scenario", "metrics"} <= names):
        return LLMD
    if "benchmarks" in names and (
        names & {"args", "config"} or _has(value.get("metadata"), "guidellm_version")
    ):
        return GUIDELLM
    if _has(value.get("input_config"), *_GENAI_PERF_CONFIG) and names & set(_AIPERF_TAGS):
        return GENAI_PERF
    if names & {"aiperf_version", "input_config"} and (
        names & set(_AIPERF_TAGS) or "aiperf_version" in names
    ):
        return AIPERF_SUMMARY
    if {"duration", "completed"} <= names:
        if "dataset_name" in names or "total_output_tokens_retokenized" in names:
            return SGLANG
        if names & {"model_id", "tokenizer_id", "num_prompts"}:
            return VLLM
    if "metadata" in names and (
        names & {"results", "burst_results", "prefill", "mixed_prefill"} or _has(value["metadata"], "version")
    ):
        return MATRIX
    return None


def recognise_item(value: Mapping[str, Any]) -> Format | None:
    """Return what kind of file is a list whose first entry is this object: some kinds are, beside those of lines."""
    found = recognise(value)
    if found is not None and (found.lines or not found.read):
        return found
    return next(
        (
            Format("", stranger.says, read=False, hint=stranger.hint)
            for stranger in FOREIGN_ITEMS
            if value.keys() >= set(stranger.names)
        ),
        None,
    )


def seems(head: bytes) -> str:
    """Say what the beginning of a file that cannot be read looks like; empty where it tells nothing."""
    for magic, said in MAGIC:
        if head.startswith(magic):
            return said
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start:
        return "empty" if not head else "nothing but blanks"
    if start[:1] == b"<":
        return "a page of HTML or XML"
    if b"\0" in start[:4096]:
        return "not text"
    if start[:1] not in b"{[":
        first = start.split(b"\n", 1)[0]
        return "a table (CSV)" if first.count(b",") > 1 else "plain text"
    names = {name.decode() for name in _NAME.findall(head)}
    # Names of inner objects stand among these, which does no harm to a guess.
    kind = recognise(dict.fromkeys(names, dict.fromkeys(names)))
    return kind.says if kind is not None else "JSON"


def known_formats() -> str:
    """List what can be read, in words."""
    return "; ".join(kind.says for kind in KNOWN)


def _has(value: object, *names: str) -> bool:
    plain = _plain(value)
    return isinstance(plain, Mapping) and any(name in plain for name in names)


def _plain(value: object) -> object:
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
