"""What the measures of further tools mean, read from their own source; names for them that the first table lacks.

Read from inference-perf 0.2 to 0.5, LLMPerf (2023-08-31), GenAI-Perf 0.0.8 to 0.0.16, llama-bench b4500 to b8000, and
the llm-d benchmark report 0.1 to 0.2.1. A property that is not known is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nameplate.exchange.peers.run import Definition
from nameplate.exchange.peers.sources import (
    BODY_END,
    FIRST_CONTENT,
    FIRST_OUTPUT,
    LAST_OUTPUT,
    LEFT_OUT,
    LINEAR,
    LLMPERF,
    REQUEST,
    SENT,
    STARTED,
    TO_ALL_DONE,
    TO_LAST,
    TOKENIZER,
    USAGE,
)

GENAI_PERF = "GenAI-Perf"
INFERENCE_PERF = "inference-perf"
LLAMA_BENCH = "llama-bench"
LLMD = "llm-d benchmark report"
# What this program writes in that report's shape.
LLMD_OURS = "llm-d benchmark report, by nameplate"

FIRST_TOKEN, LAST_TOKEN = "first token of content", "last token of content"
LAST_CONTENT = "last content text"
SAME_TIME_TOKEN = "token, those of a chunk at its time"
EVERYTHING = "first start to last end, failed requests included"

_INFERENCE = "github.com/kubernetes-sigs/inference-perf inference_perf/reportgen/base.py"
_LLMPERF = (
    "github.com/ray-project/llmperf token_benchmark_ray.py, ray_clients/openai_chat_completions_client.py"
)
_GENAI = (
    "github.com/triton-inference-server/perf_analyzer genai-perf/genai_perf/profile_data_parser/"
    "llm_profile_data_parser.py"
)
_LLAMA = "github.com/ggml-org/llama.cpp tools/llama-bench/README.md"
_REPORT = "pypi.org/project/llmd-benchmark-report schema_v0_2.py"

_LINEAR: dict[str, Any] = {"failures": LEFT_OUT, "percentiles": LINEAR}
_UNKNOWN: dict[str, Any] = {"failures": None, "percentiles": None}


def _defined(documented: str, meaning: str, **properties: Any) -> Definition:
    return Definition(
        meaning=meaning, documented=documented, properties=tuple(sorted(properties)), **properties
    )


def _told_by_its_tool(meaning: str, **properties: Any) -> Definition:
    return _defined(_REPORT, f"{meaning} Which events that is, the tool that measured decides.", **properties)


_LATENCY: dict[str, Any] = {"begins": None, "ends": None, "of": REQUEST, **_UNKNOWN}
_RATE: dict[str, Any] = {"failures": None, "denominator": None}

FURTHER: Mapping[str, Mapping[str, Definition]] = {
    INFERENCE_PERF: {
        "ttft": _defined(
            _INFERENCE, "Start of the request to its first token of content; a stream of one token has none.",
            begins=STARTED, ends=FIRST_TOKEN, of=REQUEST, **_LINEAR,
        ),
        "tpot": _defined(
            _INFERENCE, "(Last token - first) / (output tokens - 1), one value a request.",
            begins=FIRST_TOKEN, ends=LAST_TOKEN, of=REQUEST, tokens=None,
            denominator="output tokens - 1", **_LINEAR,
        ),
        "normalised_tpot": _defined(
            _INFERENCE, "(End - start of the request) / output tokens: the wait for the first is part of it.",
            begins=STARTED, ends=BODY_END, of=REQUEST, tokens=None, denominator="output tokens", **_LINEAR,
        ),
        "chunk_gaps": _defined(
            _INFERENCE, "Named ITL there: time between consecutive tokens, of all requests together; the tokens of one "
            "chunk, as its tokenizer counts them, came at one time.",
            begins="one token", ends="next token", of=SAME_TIME_TOKEN, **_LINEAR,
        ),
        "e2e": _defined(
            _INFERENCE, "Start of the request to the end of its answer.",
            begins=STARTED, ends=BODY_END, of=REQUEST, **_LINEAR,
        ),
        "dispatch_delay": _defined(
            _INFERENCE, "When a request was to start to when it did, failed ones included.",
            begins="scheduled", ends=STARTED, of=REQUEST, failures="counted", percentiles=LINEAR,
        ),
        "output_rate": _defined(
            _INFERENCE, "Output tokens of successful requests / benchmark time.",
            tokens=None, failures=LEFT_OUT, denominator=EVERYTHING,
        ),
        "input_rate": _defined(
            _INFERENCE, "Input tokens of successful requests / benchmark time.",
            tokens=None, failures=LEFT_OUT, denominator=EVERYTHING,
        ),
        "total_rate": _defined(
            _INFERENCE, "Input and output tokens of successful requests / benchmark time.",
            tokens=None, failures=LEFT_OUT, denominator=EVERYTHING,
        ),
        "request_rate": _defined(
            _INFERENCE, "Successful requests / benchmark time.", failures=LEFT_OUT, denominator=EVERYTHING
        ),
        "goodput": _defined(
            _INFERENCE, "Requests within the limits given to it / time of the successful ones.",
            failures=LEFT_OUT, denominator="first start to last end of successful requests",
        ),
        "output_tokens": _defined(
            _INFERENCE, "Output tokens of a request, counted again from its text.", of=REQUEST,
            tokens=TOKENIZER, **_LINEAR
        ),
        "prompt_tokens": _defined(
            _INFERENCE, "Prompt tokens of a request.", of=REQUEST, tokens=None, **_LINEAR
        ),
        "total_input_tokens": _defined(
            _INFERENCE, "Sum over successful requests.", tokens=None, failures=LEFT_OUT
        ),
    },
    LLMPERF: {
        "ttft": _defined(
            _LLMPERF, "Start of the request, on a new connection, to its first content; reasoning is none.",
            begins=STARTED, ends=FIRST_CONTENT, of=REQUEST, **_LINEAR,
        ),
        "tpot": _defined(
            _LLMPERF,
            "Named inter-token latency there: (last content - start of the request) / output tokens: the wait "
            "for the first is part of it.",
            begins=STARTED, ends=LAST_CONTENT, of=REQUEST, tokens=TOKENIZER, denominator="output tokens", **_LINEAR,
        ),
        "e2e": _defined(
            _LLMPERF, "Start of the request to the end of its answer.",
            begins=STARTED, ends=BODY_END, of=REQUEST, **_LINEAR,
        ),
        "e2e_per_user": _defined(
            _LLMPERF, "Output tokens of a request / its end-to-end latency.",
            of=REQUEST, tokens=TOKENIZER, denominator="end-to-end latency", **_LINEAR,
        ),
        "output_rate": _defined(
            _LLMPERF, "Output tokens of successful requests / time of the test.",
            tokens=TOKENIZER, failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "request_rate": _defined(
            _LLMPERF, "Successful requests / time of the test.", failures=LEFT_OUT, denominator=TO_ALL_DONE
        ),
        "output_tokens": _defined(
            _LLMPERF, "Output tokens of a request, counted again from its text.", of=REQUEST,
            tokens=TOKENIZER, **_LINEAR
        ),
        "prompt_tokens": _defined(
            _LLMPERF, "Prompt tokens as they were drawn.", of=REQUEST, tokens=TOKENIZER, **_LINEAR
        ),
    },
    GENAI_PERF: {
        "ttft": _defined(
            _GENAI, "Start of the request to its first response with content.",
            begins=STARTED, ends=FIRST_CONTENT, of=REQUEST, **_LINEAR,
        ),
        "second_output": _defined(
            _GENAI, "Second response with content - first.",
            begins=FIRST_CONTENT, ends="second content text", of=REQUEST, **_LINEAR,
        ),
        "itl": _defined(
            _GENAI, "(Request latency - TTFT) / (output tokens - 1), one value a request.",
            begins=FIRST_CONTENT, ends=LAST_CONTENT, of=REQUEST, tokens=TOKENIZER, denominator="output tokens - 1",
            **_LINEAR,
        ),
        "e2e": _defined(
            _GENAI, "Start of the request to its last response with content.",
            begins=STARTED, ends=LAST_CONTENT, of=REQUEST, **_LINEAR,
        ),
        "per_user": _defined(
            _GENAI, "1 / ITL of each request.", of=REQUEST, tokens=TOKENIZER,
            denominator="output tokens - 1", **_LINEAR
        ),
        "output_rate": _defined(
            _GENAI, "Output tokens / benchmark duration.",
            tokens=TOKENIZER, failures=LEFT_OUT, denominator=TO_LAST,
        ),
        "request_rate": _defined(
            _GENAI, "Requests, those with an empty answer included / benchmark duration.",
            failures="counted where their answer is empty", denominator=TO_LAST,
        ),
        "goodput": _defined(
            _GENAI, "Requests within the limits given to it / benchmark duration.",
            failures=LEFT_OUT, denominator=TO_LAST,
        ),
        "output_tokens": _defined(_GENAI, "Output tokens of a request.", of=REQUEST, tokens=TOKENIZER, **_LINEAR),
        "prompt_tokens": _defined(
            _GENAI, "Tokens of the prompt, without the chat template.", of=REQUEST, tokens=TOKENIZER, **_LINEAR
        ),
    },
    LLAMA_BENCH: {
        "prefill_rate": _defined(
            _LLAMA,
            "Prompt tokens / time of their batches: one sequence, no server, no tokenization; mean of repetitions.",
            of="repetition", tokens="what was asked for", denominator="time of the prompt's batches",
        ),
        "decode_rate": _defined(
            _LLAMA, "Tokens / time of generating them: one sequence, no server, no sampling; mean of repetitions.",
            of="repetition", tokens="what was asked for", denominator="time of generation",
        ),
        "total_rate": _defined(
            _LLAMA, "Prompt and generated tokens / time of both: one sequence, no server; mean of repetitions.",
            of="repetition", tokens="what was asked for", denominator="time of prompt and generation",
        ),
        "repetition": _defined(_LLAMA, "Time of one repetition.", begins="begin", ends="end", of="repetition"),
    },
    LLMD: {
        "ttft": _told_by_its_tool("Time to generate the first token.", **_LATENCY),
        "tpot": _told_by_its_tool(
            "Time to generate an output token, without the first.", tokens=None, denominator=None, **_LATENCY
        ),
        "normalised_tpot": _told_by_its_tool(
            "Time to generate an output token, the first included.", tokens=None, denominator=None, **_LATENCY
        ),
        "itl": _told_by_its_tool("Time between tokens.", tokens=None, denominator=None, **_LATENCY),
        "e2e": _told_by_its_tool("End-to-end latency of a request.", **_LATENCY),
        "output_rate": _told_by_its_tool("Output tokens a second.", tokens=None, **_RATE),
        "input_rate": _told_by_its_tool("Input tokens a second.", tokens=None, **_RATE),
        "total_rate": _told_by_its_tool("Input and output tokens a second.", tokens=None, **_RATE),
        "request_rate": _told_by_its_tool("Requests a second.", **_RATE),
        "output_tokens": _told_by_its_tool("Output tokens of a request.", of=REQUEST, tokens=None, **_UNKNOWN),
        "prompt_tokens": _told_by_its_tool("Prompt tokens of a request.", of=REQUEST, tokens=None, **_UNKNOWN),
    },
    LLMD_OURS: {
        "ttft": _defined(
            _REPORT, "Send to the first output, of successful requests.",
            begins=SENT, ends=FIRST_OUTPUT, of=REQUEST, **_LINEAR,
        ),
        "tpot": _defined(
            _REPORT, "(E2E - TTFT) / (output tokens - 1), one value a request.",
            begins=FIRST_OUTPUT, ends=LAST_OUTPUT, of=REQUEST, tokens=USAGE, denominator="output tokens - 1", **_LINEAR,
        ),
        "normalised_tpot": _defined(
            _REPORT, "E2E / output tokens, one value a request.",
            begins=SENT, ends=LAST_OUTPUT, of=REQUEST, tokens=USAGE, denominator="output tokens", **_LINEAR,
        ),
        "itl": _defined(
            _REPORT, "Time between consecutive tokens, of all requests together.",
            begins="one output", ends="next output", of="token", tokens=USAGE, denominator=None, **_LINEAR,
        ),
        "e2e": _defined(
            _REPORT, "Send to the last output, of successful requests.",
            begins=SENT, ends=LAST_OUTPUT, of=REQUEST, **_LINEAR,
        ),
    },
}  # fmt: skip


def further_definitions(tool: str, names: set[str]) -> dict[str, Definition]:
    """Return the definitions of those measures that are used and known; what a tool lacks is that of its report."""
    known = {**FURTHER[LLMD], **FURTHER[tool]} if tool == LLMD_OURS else FURTHER[tool]
    return {name: known[name] for name in known if name in names}
