"""Files that are told apart and not read: what each is, and which file of the same tool to give instead.

Objects are known by names that stand together in them, texts by how they begin.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from msgspec import Struct


class Stranger(Struct, frozen=True):
    """Name one kind of file by the names that its object holds."""

    names: tuple[str, ...]
    says: str
    hint: str = ""


_AIPERF = "Give profile_export_aiperf.json, profile_export.jsonl or profile_export_raw.jsonl of the same run."
_SERVE = "Give a run over HTTP: the result of `vllm bench serve --save-result`."
_SGLANG = "Give a run over HTTP: the JSONL of SGLang's bench_serving."
_NO_LLM = (
    "It knows no tokens: give the result of a load test of language models, or measure with nameplate trial."
)
_LLAMA = "Give the same run as JSON: llama-bench -o json."
_YAML = (
    "Give it as JSON: python -c 'import sys, json, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout, "
    "default=str)' < report.yaml > report.json"
)
_TRACE = "It is a load, not a result: repeat it with nameplate trial --trace FILE."

FOREIGN = (
    Stranger(("aiperf_version", "summary", "metrics"), "AIPerf's server metrics", _AIPERF),
    Stranger(("iterations", "boundary_summary"), "AIPerf's search history", _AIPERF),
    Stranger(("schema_version", "data", "warmup"), "AIPerf's outputs.json", _AIPERF),
    Stranger(
        ("aggregated_metrics", "individual_request_metrics"), "a result of genai-bench",
        "It cannot be read yet; nameplate curve measures the same levels.",
    ),
    Stranger(
        ("time_to_first_token", "time_to_last_token", "num_tokens_output"), "responses of LLMeter",
        "It cannot be read yet; AIPerf, GuideLLM or vllm bench serve can.",
    ),
    Stranger(
        ("experiments", "version"), "a profile of perf_analyzer",
        "Give GenAI-Perf's profile_export_genai_perf.json of the same run.",
    ),
    Stranger(("choices", "object"), "an answer of a server, not a result"),
    Stranger(("num_sessions", "num_sessions_succeeded"), "a session report of inference-perf",
             "Give summary_lifecycle_metrics.json or stage_N_lifecycle_metrics.json of the same run."),
    Stranger(("avg_latency", "latencies", "percentiles"), "the result of `vllm bench latency`", _SERVE),
    Stranger(("elapsed_time", "num_requests", "total_num_tokens"), "the result of `vllm bench throughput`", _SERVE),
    Stranger(("batch_size", "input_len", "output_len", "prefill_latency"), "the result of SGLang's bench_one_batch",
             _SGLANG),
    Stranger(("successful_requests", "total_latency", "last_gen_throughput"),
             "the result of SGLang's bench_offline_throughput", _SGLANG),
    Stranger(("engine", "request_info", "world_info", "performance"), "a report of trtllm-bench",
             "Its requests do not go over HTTP. Give TensorRT-LLM's benchmark_serving, AIPerf or `vllm bench serve`."),
    Stranger(("request_info", "world_info", "performance"), "a report of trtllm-bench",
             "Its requests do not go over HTTP. Give TensorRT-LLM's benchmark_serving, AIPerf or `vllm bench serve`."),
    Stranger(("Time taken for tests (s)", "Total requests"), "a summary of evalscope perf",
             "It cannot be read yet; AIPerf, GuideLLM or vllm bench serve can."),
    Stranger(("root_group", "metrics"), "a summary of k6 (llama.cpp's server bench writes it)", _NO_LLM),
    Stranger(("type", "metric", "data"), "the JSON lines of k6 (llama.cpp's server bench writes them)", _NO_LLM),
    Stranger(("timestamp", "input_length", "output_length"), "a trace of requests", _TRACE),
    Stranger(("num_requests", "num_failures", "response_times"), "the JSON of locust", _NO_LLM),
)  # fmt: skip
FOREIGN_ITEMS = (
    Stranger(("start_time", "end_time", "info"), "the requests of inference-perf (per_request_lifecycle_metrics.json)",
             "Give summary_lifecycle_metrics.json or stage_N_lifecycle_metrics.json beside it."),
    Stranger(("Percentiles",), "the percentiles of evalscope perf",
             "It cannot be read yet; AIPerf, GuideLLM or vllm bench serve can."),
    Stranger(("conversations",), "a data set of conversations, not a result"),
)  # fmt: skip

# How files begin that are text and no JSON.
_TEXTS = (
    (rb"Metric,\s*avg\b", "the CSV of AIPerf or GenAI-Perf",
     "Give the JSON beside it: profile_export_aiperf.json or profile_export_genai_perf.json."),
    (rb"=+\s*\nMLPerf Results Summary", "MLPerf's mlperf_log_summary.txt",
     "Its scenarios are no load test that is known here. Measure with nameplate trial, rate or soak."),
    (rb":::MLLOG", "MLPerf's detailed log", "Measure with nameplate trial, rate or soak."),
    (rb"\"?Type\"?,\"?Name\"?,\"?Request Count\"?,", "the statistics of locust (CSV)", _NO_LLM),
    (rb"Timestamp,User Count,Type,Name,", "the history of locust (CSV)", _NO_LLM),
    (rb"metric_name,timestamp,metric_value", "the CSV of k6 (llama.cpp's server bench writes it)", _NO_LLM),
    (rb"build_commit,build_number,", "the CSV of llama-bench", _LLAMA),
    (rb"CREATE TABLE IF NOT EXISTS (?:llama_bench|test)|INSERT INTO (?:llama_bench|test)\b", "the SQL of llama-bench",
     _LLAMA),
    (rb"\| *model +\| *size +\|", "the table of llama-bench", _LLAMA),
    (rb"(?:#[^\n]*\n|---\n)*version: *['\"]?0\.[12](?:\.\d+)?['\"]? *\n(?:.*\n){0,400}?(?:scenario|results|metrics):",
     "an llm-d benchmark report as YAML",
     _YAML),
    (rb"(?:#[^\n]*\n|---\n)*(?:args|benchmarks|metadata|config):", "YAML, perhaps GuideLLM's benchmarks.yaml",
     "Give GuideLLM's benchmarks.json."),
    (rb"=+ Serving Benchmark Result =+", "what a benchmark printed to the terminal",
     "Give its result file: `vllm bench serve --save-result`, or SGLang's --output-file."),
    (rb"# (?:TYPE|HELP) ", "a page of Prometheus metrics, not a result", ""),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), Stranger((), says, hint)) for pattern, says, hint in _TEXTS)

# How files begin that are no text.
MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF"),
    (b"SQLite format 3", "an SQLite data base"),
    (b"\x7fELF", "a program"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x04\x95", "a Python pickle"),
)

# Names that tools give to results which are read; only a directory is looked through by them.
NAMES = (
    "profile_export_aiperf.json", "profile_export.jsonl", "profile_export_raw.jsonl", "*profile_export_genai_perf.json",
    "benchmarks.json", "*lifecycle_metrics.json", "*_summary.json", "*_individual_responses.json",
    "benchmark_report*.json", "openai-*.json", "vllm-*.json", "sglang_*.jsonl",
)  # fmt: skip


def is_known_name(name: str) -> bool:
    """Say whether a tool that is known names its results so; with or without the ending of a packed file."""
    plain = name.removesuffix(".gz").removesuffix(".zst")
    session = plain.startswith("per_request") or "session_lifecycle" in plain
    return not session and any(fnmatchcase(plain, pattern) for pattern in NAMES)


def stranger_of(head: bytes) -> Stranger | None:
    """Return which text that is not read a file begins as; None where it is no such text."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return next((stranger for pattern, stranger in _COMPILED if pattern.match(start)), None)
