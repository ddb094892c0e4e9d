"""What each tool's measures mean, as data: read from the tools' own documentation and source.

Read from AIPerf 0.10 to 0.13, GuideLLM 0.5 to 0.8, `vllm bench serve` to 0.32, SGLang `bench_serving` to 0.5.18; where
versions differ the reader of the format replaces a property (`replaced`). A property that is not known is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from nameplate.exchange.peers.run import Definition

AIPERF = "AIPerf"
GUIDELLM = "GuideLLM"
VLLM = "vllm bench serve"
SGLANG = "SGLang bench_serving"
LLMPERF = "LLMPerf"
OURS = "nameplate"

# Events of a request.
SENT = "first byte sent on an open connection"
STARTED = "start of the request, connecting included"
FIRST_OUTPUT = "first content, reasoning or tool-call text"
FIRST_TEXT = "first content or reasoning text"
FIRST_CONTENT = "first content text"
FIRST_CHUNK = "first chunk, an empty or role-only one included"
LAST_OUTPUT = "last output"
LAST_CHUNK = "last chunk"
BODY_END = "end of the body"

# What has one value.
REQUEST = "request"
TOKEN = "request, weighted by its tokens"
CHUNK = "gap between chunks"
EVEN_TOKEN = "token, a chunk's gap spread evenly over its tokens"

USAGE = "server's usage"
TOKENIZER = "client's tokenizer"
USAGE_OR_TOKENIZER = "server's usage, else client's tokenizer"
USAGE_OR_CHUNKS = "server's usage, else one a chunk"
USAGE_OR_ASKED = "server's usage, else what was asked for"

LEFT_OUT = "left out"
NEVER = "count as never"
LINEAR = "linear between closest ranks"
INVERSE_CDF = "smallest value that reaches the share, not interpolated"

TO_LAST = "first start to last response"
TO_ALL_DONE = "first start until all were done, drain included"
WINDOW = "measured window, warm-up and cool-down cut off"

_AIPERF = "github.com/ai-dynamo/aiperf docs/metrics-reference.md"
_GUIDELLM = "github.com/vllm-project/guidellm src/guidellm/schemas/request_stats.py, statistics.py"
_VLLM = "github.com/vllm-project/vllm vllm/benchmarks/serve.py, lib/endpoint_request_func.py"
_SGLANG = "github.com/sgl-project/sglang python/sglang/benchmark/serving.py"
_OURS = "nameplate: definitions, measured from the raw reads"


def _defined(documented: str, meaning: str, **properties: Any) -> Definition:
    return Definition(
        meaning=meaning, documented=documented, properties=tuple(sorted(properties)), **properties
    )


def _latency(
    documented: str, meaning: str, *, begins: str | None, ends: str | None, of: str, **more: Any
) -> Definition:
    return _defined(documented, meaning, begins=begins, ends=ends, of=of, **more)


_PEERS_LATENCY: dict[str, Any] = {"failures": LEFT_OUT, "percentiles": LINEAR}
_GUIDE_LATENCY: dict[str, Any] = {"failures": LEFT_OUT, "percentiles": INVERSE_CDF}
_OUR_LATENCY: dict[str, Any] = {"failures": NEVER, "percentiles": LINEAR}

DEFINITIONS: Mapping[str, Mapping[str, Definition]] = {
    AIPERF: {
        "ttft": _latency(
            _AIPERF, "Start of the request to its first non-empty content, reasoning or tool call.",
            begins=STARTED, ends=FIRST_OUTPUT, of=REQUEST, **_PEERS_LATENCY,
        ),
        "first_answer": _latency(
            _AIPERF, "Start of the request to its first non-reasoning output.",
            begins=STARTED, ends="first answer", of=REQUEST, **_PEERS_LATENCY,
        ),
        "second_output": _latency(
            _AIPERF, "Second non-empty chunk - first.",
            begins=FIRST_OUTPUT, ends="second output", of=REQUEST, **_PEERS_LATENCY,
        ),
        "itl": _latency(
            _AIPERF, "(request_latency - TTFT) / (output tokens - 1), one value a request.",
            begins=FIRST_OUTPUT, ends=LAST_OUTPUT, of=REQUEST, tokens=TOKENIZER, denominator="output tokens - 1",
            **_PEERS_LATENCY,
        ),
        "chunk_gaps": _latency(
            _AIPERF, "Time between consecutive non-empty chunks, those of all requests together.",
            begins="one output", ends="next output", of=CHUNK, **_PEERS_LATENCY,
        ),
        "e2e": _latency(
            _AIPERF, "Start of the request to its last non-empty chunk.",
            begins=STARTED, ends=LAST_OUTPUT, of=REQUEST, **_PEERS_LATENCY,
        ),
        "per_user": _defined(
            _AIPERF, "1 / ITL of each request.", of=REQUEST, tokens=TOKENIZER, denominator="output tokens - 1",
            **_PEERS_LATENCY,
        ),
        "output_rate": _defined(
            _AIPERF, "Output tokens of successful requests, reasoning included / benchmark duration.",
            tokens=TOKENIZER, failures=LEFT_OUT, denominator=TO_LAST,
        ),
        "total_rate": _defined(
            _AIPERF, "Input and output tokens of successful requests / benchmark duration.",
            tokens=TOKENIZER, failures=LEFT_OUT, denominator=TO_LAST,
        ),
        "request_rate": _defined(
            _AIPERF, "Successful requests / benchmark duration.", failures=LEFT_OUT, denominator=TO_LAST
        ),
        "goodput": _defined(
            _AIPERF, "Requests within the limits given to it / benchmark duration.",
            failures=LEFT_OUT, denominator=TO_LAST,
        ),
        "output_tokens": _defined(
            _AIPERF, "Output tokens of a request, reasoning included.", of=REQUEST, tokens=TOKENIZER, **_PEERS_LATENCY
        ),
        "prompt_tokens": _defined(
            _AIPERF, "Tokens of the prompt, without special tokens and the chat template.",
            of=REQUEST, tokens=TOKENIZER, **_PEERS_LATENCY,
        ),
        "total_output_tokens": _defined(
            _AIPERF, "Sum over successful requests, reasoning included.", tokens=TOKENIZER, failures=LEFT_OUT
        ),
        "total_input_tokens": _defined(
            _AIPERF, "Sum over successful requests.", tokens=TOKENIZER, failures=LEFT_OUT
        ),
    },
    GUIDELLM: {
        "ttft": _latency(
            _GUIDELLM, "Start of the request to its first token; a request without one counts as 0.",
            begins=STARTED, ends=FIRST_OUTPUT, of=REQUEST, **_GUIDE_LATENCY,
        ),
        "first_answer": _latency(
            _GUIDELLM, "Start of the request to its first non-reasoning token.",
            begins=STARTED, ends="first answer", of=REQUEST, **_GUIDE_LATENCY,
        ),
        "itl": _latency(
            _GUIDELLM, "(Last token - first) / (output tokens - 1) of a request, which counts once for each of them.",
            begins=FIRST_OUTPUT, ends=LAST_OUTPUT, of=TOKEN, tokens=USAGE_OR_CHUNKS, denominator="output tokens - 1",
            **_GUIDE_LATENCY,
        ),
        "tpot": _latency(
            _GUIDELLM, "(Last token - start of the request) / output tokens: the first token's wait is part of it.",
            begins=STARTED, ends=LAST_OUTPUT, of=TOKEN, tokens=USAGE_OR_CHUNKS, denominator="output tokens",
            **_GUIDE_LATENCY,
        ),
        "e2e": _latency(
            _GUIDELLM, "Start of the request to the end of its answer.",
            begins=STARTED, ends=BODY_END, of=REQUEST, **_GUIDE_LATENCY,
        ),
        "dispatch_delay": _latency(
            _GUIDELLM, "When a request was to start to when it did.",
            begins="scheduled", ends=STARTED, of=REQUEST, **_GUIDE_LATENCY,
        ),
        "output_rate": _defined(
            _GUIDELLM, "Rate of tokens over time, a request's spread evenly from its first to its last; a mean.",
            tokens=USAGE_OR_CHUNKS, failures=LEFT_OUT, denominator=WINDOW,
        ),
        "total_rate": _defined(
            _GUIDELLM, "The same with prompt tokens, which count at the first token.",
            tokens=USAGE_OR_CHUNKS, failures=LEFT_OUT, denominator=WINDOW,
        ),
        "request_rate": _defined(
            _GUIDELLM, "Rate of requests ending over time.", failures=LEFT_OUT, denominator=WINDOW
        ),
        "output_tokens": _defined(
            _GUIDELLM, "Output tokens of a request.", of=REQUEST, tokens=USAGE_OR_CHUNKS, **_GUIDE_LATENCY
        ),
        "prompt_tokens": _defined(
            _GUIDELLM, "Prompt tokens of a request.", of=REQUEST, tokens=USAGE_OR_CHUNKS, **_GUIDE_LATENCY
        ),
        "concurrency": _defined(
            _GUIDELLM, "Requests in flight over time, those that succeeded.", of="time", failures=LEFT_OUT,
            percentiles=INVERSE_CDF,
        ),
    },
    VLLM: {
        "ttft": _latency(
            _VLLM, "Start of the request to its first chunk, a role-only one included.",
            begins=STARTED, ends=FIRST_CHUNK, of=REQUEST, **_PEERS_LATENCY,
        ),
        "tpot": _latency(
            _VLLM, "(E2E - TTFT) / (output tokens - 1), one value a request.",
            begins=FIRST_CHUNK, ends=LAST_CHUNK, of=REQUEST, tokens=USAGE_OR_TOKENIZER,
            denominator="output tokens - 1", **_PEERS_LATENCY,
        ),
        "chunk_gaps": _latency(
            _VLLM, "Named ITL there: time between consecutive chunks, empty ones included, of all requests together.",
            begins="one chunk", ends="next chunk", of=CHUNK, **_PEERS_LATENCY,
        ),
        "e2e": _latency(
            _VLLM, "Start of the request to its last chunk.",
            begins=STARTED, ends=LAST_CHUNK, of=REQUEST, **_PEERS_LATENCY,
        ),
        "client_queue": _latency(
            _VLLM, "How long a request waited in the client for a place among max_concurrency.",
            begins="scheduled", ends=STARTED, of=REQUEST, **_PEERS_LATENCY,
        ),
        "output_rate": _defined(
            _VLLM, "Output tokens of successful requests / duration.",
            tokens=USAGE_OR_TOKENIZER, failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "total_rate": _defined(
            _VLLM, "Input and output tokens of successful requests / duration.",
            tokens=USAGE_OR_TOKENIZER, failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "peak_output_rate": _defined(
            _VLLM, "Most chunks in one second, called tokens: below the mean where a chunk holds several.",
            of="second", failures=LEFT_OUT,
        ),
        "request_rate": _defined(
            _VLLM, "Successful requests / duration.", failures=LEFT_OUT, denominator=TO_ALL_DONE
        ),
        "goodput": _defined(
            _VLLM, "Successful requests within the limits given to it / duration.",
            failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "total_output_tokens": _defined(
            _VLLM, "Sum over successful requests.", tokens=USAGE_OR_TOKENIZER, failures=LEFT_OUT
        ),
        "total_input_tokens": _defined(
            _VLLM, "Sum over successful requests; as asked for, where the server does not count.",
            tokens=None, failures=LEFT_OUT,
        ),
    },
    SGLANG: {
        "ttft": _latency(
            _SGLANG, "Start of the request to its first non-empty text; connecting included, a new session a request.",
            begins=STARTED, ends=FIRST_TEXT, of=REQUEST, **_PEERS_LATENCY,
        ),
        "tpot": _latency(
            _SGLANG, "(E2E - TTFT) / (output tokens - 1), one value a request.",
            begins=FIRST_TEXT, ends=BODY_END, of=REQUEST, tokens=USAGE_OR_ASKED, denominator="output tokens - 1",
            **_PEERS_LATENCY,
        ),
        "chunk_gaps": _latency(
            _SGLANG, "Named ITL there: time between consecutive non-empty chunks, of all requests together.",
            begins="one output", ends="next output", of=CHUNK, **_PEERS_LATENCY,
        ),
        "e2e": _latency(
            _SGLANG, "Start of the request to its last line, the end marker included.",
            begins=STARTED, ends=BODY_END, of=REQUEST, **_PEERS_LATENCY,
        ),
        "output_rate": _defined(
            _SGLANG, "Output tokens of successful requests / duration.",
            tokens=USAGE_OR_ASKED, failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "input_rate": _defined(
            _SGLANG, "Input tokens of successful requests / duration.", failures=LEFT_OUT, denominator=TO_ALL_DONE
        ),
        "total_rate": _defined(
            _SGLANG, "Input and output tokens of successful requests / duration.",
            tokens=USAGE_OR_ASKED, failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "peak_output_rate": _defined(
            _SGLANG, "Most tokens in one second.", of="second", failures=LEFT_OUT
        ),
        "request_rate": _defined(
            _SGLANG, "Successful requests / duration.", failures=LEFT_OUT, denominator=TO_ALL_DONE
        ),
        "concurrency": _defined(
            _SGLANG, "Sum of the E2E latencies of successful requests / duration.",
            failures=LEFT_OUT, denominator=TO_ALL_DONE,
        ),
        "total_output_tokens": _defined(
            _SGLANG, "Sum over successful requests.", tokens=USAGE_OR_ASKED, failures=LEFT_OUT
        ),
        "total_output_tokens_retokenized": _defined(
            _SGLANG, "Sum over successful requests, counted again from their text.",
            tokens=TOKENIZER, failures=LEFT_OUT,
        ),
        "total_input_tokens": _defined(
            _SGLANG, "Sum over successful requests.", tokens=None, failures=LEFT_OUT
        ),
        "accept_length": _defined(_SGLANG, "Tokens accepted a step, a mean since the server started.", of="step"),
    },
}  # fmt: skip

# Ours, for what is computed from the request records of a file by our rules, and for runs of our own.
OUR_DEFINITIONS: Mapping[str, Definition] = {
    "ttft": _latency(
        _OURS, "Send to the first output; a request without one counts as never.",
        begins=SENT, ends=FIRST_OUTPUT, of=REQUEST, **_OUR_LATENCY,
    ),
    "ttft_from_schedule": _latency(
        _OURS, "When the request was due to its first output; what an open loop is judged by.",
        begins="scheduled", ends=FIRST_OUTPUT, of=REQUEST, **_OUR_LATENCY,
    ),
    "first_answer": _latency(
        _OURS, "Send to the first non-reasoning output.",
        begins=SENT, ends="first answer", of=REQUEST, **_OUR_LATENCY,
    ),
    "itl": _latency(
        _OURS, "(Last output - first) / (output tokens - tokens of the first event), one value a request.",
        begins=FIRST_OUTPUT, ends=LAST_OUTPUT, of=REQUEST, tokens=USAGE,
        denominator="output tokens - those of the first event", **_OUR_LATENCY,
    ),
    "tpot": _latency(
        _OURS, "(E2E - TTFT) / (output tokens - 1), one value a request.",
        begins=FIRST_OUTPUT, ends=LAST_OUTPUT, of=REQUEST, tokens=USAGE, denominator="output tokens - 1",
        **_OUR_LATENCY,
    ),
    "chunk_gaps": _latency(
        _OURS, "Time between consecutive outputs, of all requests together.",
        begins="one output", ends="next output", of=CHUNK, **_OUR_LATENCY,
    ),
    "longest_gap": _latency(
        _OURS, "Longest time between two outputs of a request.",
        begins="one output", ends="next output", of=REQUEST, **_OUR_LATENCY,
    ),
    "e2e": _latency(
        _OURS, "Send to the last output.", begins=SENT, ends=LAST_OUTPUT, of=REQUEST, **_OUR_LATENCY
    ),
    "per_user": _defined(
        _OURS, "1 / ITL of each request; one that did not end well counts as 0.", of=REQUEST, tokens=USAGE,
        denominator="output tokens - those of the first event", failures=NEVER, percentiles=LINEAR,
    ),
    "output_rate": _defined(
        _OURS, "All output tokens / first send to last end.", tokens=USAGE, failures="their tokens count",
        denominator="first send to last end",
    ),
    "request_rate": _defined(
        _OURS, "Requests that ended well / first send to last end.", failures=LEFT_OUT,
        denominator="first send to last end",
    ),
    "prompt_tokens": _defined(_OURS, "The server's count of the prompt, template included.", of=REQUEST, tokens=USAGE),
    "output_tokens": _defined(_OURS, "The server's count of the output.", of=REQUEST, tokens=USAGE),
}  # fmt: skip


class Events(Struct, frozen=True):
    """Hold between which events a tool's request records lie, from which our rules compute."""

    sent: str
    first: str
    last: str
    gap: str


_OUTPUTS = "time between outputs"
OUR_EVENTS = Events(SENT, FIRST_OUTPUT, LAST_OUTPUT, _OUTPUTS)
EVENTS: Mapping[str, Events] = {
    AIPERF: Events(STARTED, FIRST_OUTPUT, LAST_OUTPUT, _OUTPUTS),
    GUIDELLM: Events(STARTED, FIRST_OUTPUT, LAST_OUTPUT, _OUTPUTS),
    VLLM: Events(STARTED, FIRST_CHUNK, LAST_CHUNK, "time between chunks, empty ones included"),
    LLMPERF: Events(STARTED, FIRST_CONTENT, "last content text", _OUTPUTS),
    SGLANG: Events(STARTED, FIRST_TEXT, "last content or reasoning text", _OUTPUTS),
}
_USES: Mapping[str, tuple[str, ...]] = {
    "ttft": ("sent", "first"),
    "first_answer": ("sent",),
    "e2e": ("sent", "last"),
    "itl": ("first", "last", "tokens"),
    "tpot": ("first", "last", "tokens"),
    "per_user": ("first", "last", "tokens"),
    "chunk_gaps": ("gap",),
    "longest_gap": ("gap",),
}


def taken(tool: str, name: str, tokens: str | None) -> tuple[str, ...]:
    """Say which events, and whose token count, a measure of ours takes as a tool's records have them."""
    theirs = EVENTS[tool]
    said = []
    for use in _USES.get(name, ()):
        other, ours = (tokens, USAGE) if use == "tokens" else (getattr(theirs, use), getattr(OUR_EVENTS, use))
        if other != ours:
            said.append(f"{other or 'tokens that nobody says who counted'}, where ours is: {ours}")
    return tuple(said)


def definitions_of(tool: str, names: set[str]) -> dict[str, Definition]:
    """Return the definitions of those measures that are used and known."""
    known = OUR_DEFINITIONS if tool == OURS else DEFINITIONS.get(tool, {})
    return {name: known[name] for name in known if name in names}


def replaced(definitions: Mapping[str, Definition], **properties: str) -> dict[str, Definition]:
    """Return definitions with other values for properties, in those that have the property at all."""
    return {
        name: structs.replace(
            definition, **{key: value for key, value in properties.items() if key in definition.properties}
        )
        for name, definition in definitions.items()
    }
