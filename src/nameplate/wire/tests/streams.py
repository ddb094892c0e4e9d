"""Scripted bodies, one for each way in which a server is known to talk, with what they mean."""

import gzip
import json
from typing import Any

import msgspec

from nameplate.wire.chunk import Api

SSE = "text/event-stream; charset=utf-8"
JSON = "application/json"
DONE = b"data: [DONE]\n\n"


class Script(msgspec.Struct, frozen=True):
    """Hold one body and what a Tally must make of it."""

    name: str
    body: bytes
    outcome: str = "ok"
    text: str = ""
    events: int = 0
    tokens: int | None = None
    source: str | None = "usage"
    finish: str | None = "length"
    warnings: tuple[str, ...] = ()
    error: str = ""
    status: int = 200
    content_type: str = SSE
    content_encoding: str = ""
    api: Api = "chat"
    event_tokens: tuple[int, ...] | None = None
    cached: int | None = None


def line(document: Any, prefix: str = "data: ", end: str = "\n\n") -> bytes:
    """Return one event that carries a JSON document."""
    return f"{prefix}{json.dumps(document, ensure_ascii=False)}{end}".encode()


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    """Return a chat chunk."""
    choice = {
        "index": 0,
        "delta": delta if delta is not None else {},
        "logprobs": None,
        "finish_reason": finish,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    } | more


def say(text: str, finish: Any = None, **more: Any) -> bytes:
    """Return an event with content."""
    return line(chunk({"content": text}, finish, **more))


def counts(prompt: int, completion: int, cached: int | None = None) -> dict[str, Any]:
    """Return a usage object."""
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage["total_tokens"] = prompt + completion
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return usage


def final(prompt: int, completion: int, cached: int | None = None, **more: Any) -> bytes:
    """Return the event that carries usage beside no choice."""
    return line({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": []} | more
                | {"usage": counts(prompt, completion, cached)})  # fmt: skip


ROLE = line(chunk({"role": "assistant", "content": ""}))
_ENDS = final(9, 3) + DONE


SCRIPTS: list[Script] = [
    Script("vllm", ROLE + say("Hé") + say("llo", "length", stop_reason=None) + final(9, 2, 4) + DONE,
           text="Héllo", events=2, tokens=2, cached=4),
    Script("vllm continuous usage",
           line(chunk({"role": "assistant", "content": ""}, usage=counts(9, 0)))
           + say("ab", usage=counts(9, 2)) + line(chunk({}, usage=counts(9, 3)))
           + say("c", "length", usage=counts(9, 5)) + final(9, 6) + DONE,
           text="abc", events=2, tokens=6, event_tokens=(2, 3)),
    Script("vllm reasoning, both names at once",
           ROLE + line(chunk({"reasoning": "hm", "reasoning_content": "hm"})) + say("yes", "length") + _ENDS,
           text="hmyes", events=2, tokens=3),
    Script("vllm error and then the end marker",
           ROLE + say("a") + line({"error": {"message": "EngineCore died", "type": "InternalServerError",
                                             "param": None, "code": 500}}) + DONE,
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None,
           error="EngineCore died"),
    Script("vllm tool call", ROLE
           + line(chunk({"tool_calls": [{"index": 0, "id": "x", "type": "function",
                                         "function": {"name": "f", "arguments": ""}}]}))
           + line(chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}))
           + line(chunk({}, "tool_calls")) + _ENDS, text="f{}", events=2, tokens=3, finish="tool_calls"),
    Script("sglang", line(chunk({"role": "assistant", "content": "a"})) + say("b")
           + line(chunk({"content": ""}, "length", matched_stop=None)) + line({"id": "1", "choices": []})
           + final(9, 3) + DONE, text="ab", events=2, tokens=3),
    Script("sglang abort", say("a") + line(chunk({}, "abort")) + _ENDS,
           outcome="stream_error", text="a", events=1, tokens=3, finish="abort", error="abort"),
    Script("sglang error object, finish, usage and end marker after it",
           say("a") + line({"object": "error", "message": "aborted", "type": "BadRequest", "code": 400})
           + line(chunk({}, "stop")) + _ENDS,
           outcome="stream_error", text="a", events=1, tokens=3, finish="stop", error="aborted"),
    Script("sglang completions, usage beside empty text",
           line({"choices": [{"index": 0, "text": "ab", "finish_reason": None}]})
           + line({"choices": [{"index": 0, "text": "", "finish_reason": "length"}], "usage": counts(9, 7)}) + DONE,
           text="ab", events=1, tokens=7, api="completions"),
    Script("llama.cpp", line(chunk({"role": "assistant", "content": None}))
           + line(chunk({}, prompt_progress={"total": 9, "processed": 4})) + line({"prompt_progress": {"total": 9}})
           + b":\n\n" + say("a")
           + line(chunk({}, "length", timings={"prompt_n": 5, "cache_n": 4, "predicted_n": 1, "predicted_ms": 2.5}))
           + DONE, text="a", events=1, tokens=1, cached=4),
    Script("old llama.cpp", say("a") + b'error: {"code":500,"message":"slot lost","type":"server_error"}\n\n' + DONE,
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None, error="slot lost"),
    Script("old llama.cpp, one block", say("a") + b'error: {"message":"slot lost"}\n' + DONE,
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None, error="slot lost"),
    Script("end marker without its blank line", say("a", "length") + final(9, 1) + b"data: [DONE]",
           text="a", events=1, tokens=1),
    Script("tensorrt, bundles and a wrong object", say("a b c") + say(" d e", "length")
           + final(9, 5, object="chat.completion") + DONE, text="a b c d e", events=2, tokens=5),
    Script("tensorrt, the whole text each time",
           b"".join(say("abcdef"[:n]) for n in range(1, 6)) + say("abcdef", "length") + final(9, 6) + DONE,
           text="abcdef", events=6, tokens=6, warnings=("repeated_text",)),
    Script("tgi error", say("a") + line({"error": "Request failed during generation", "error_type": "generation"}),
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None,
           error="Request failed during generation"),
    Script("tgi overloaded", json.dumps({"error": "Model is overloaded", "error_type": "overloaded"}).encode(),
           outcome="http_error", status=429, content_type=JSON, source=None, finish=None, error="overloaded"),
    Script("ollama, empty finish reasons",
           line(chunk({"role": "assistant", "content": "a"}, ""))
           + line(chunk({"role": "assistant", "content": "b"}, ""))
           + line(chunk({"role": "assistant", "content": ""}, "stop")) + _ENDS, text="ab", events=2, tokens=3,
           finish="stop"),
    Script("ollama's native API", b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n'
           b'{"model":"m","message":{"content":""},"done":true}\n', outcome="malformed", source=None, finish=None,
           content_type="application/x-ndjson", error="newline-delimited JSON"),
    Script("lm studio", say("a") + line(chunk({}, "stop")) + DONE, text="a", events=1, tokens=1, source="estimated",
           finish="stop"),
    Script("dynamo", b"event: request_id\ndata: 01ab-cd\n\n" + line(chunk({"role": "assistant", "content": None}))
           + line(chunk({"role": "assistant", "content": "a", "tool_calls": None, "function_call": None}))
           + line(chunk({"role": "assistant"}, "length"))
           + b"event: llm_metrics\n" + final(9, 1) + DONE, text="a", events=1, tokens=1),
    Script("dynamo error in a comment", say("a") + b"event: error\n: no responders\n\n",
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None,
           error="no responders"),
    Script("error event with data", b'event: error\ndata: {"status_code":503,"message":"busy"}\n\n',
           outcome="stream_error", source=None, finish=None, error="busy (503)"),
    Script("openrouter", b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + say("a", usage=None)
           + line(chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected"})) + DONE,
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish="error",
           error="Provider disconnected"),
    Script("deepseek keep-alive", b": keep-alive\n\n" * 3 + say("a", "length")
           + line({"choices": [], "usage": counts(9, 1) | {"prompt_cache_hit_tokens": 8}}) + DONE,
           text="a", events=1, tokens=1, cached=8),
    Script("litellm, usage beside a choice", say("a") + say("b") + line(chunk({}, "length", usage=counts(9, 2))) + DONE,
           text="ab", events=2, tokens=2, event_tokens=(-1, -1)),
    Script("azure", line({"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
           + ROLE + say("a", "length", content_filter_results={}) + _ENDS, text="a", events=1, tokens=3),
    Script("openai, usage null", say("a", usage=None, obfuscation="xx") + line(chunk({}, "length", usage=None))
           + final(9, 1) + DONE, text="a", events=1, tokens=1),
    Script("groq", say("a") + line(chunk({}, "stop", x_groq={"id": "r", "usage": counts(9, 1)})) + DONE,
           text="a", events=1, tokens=1, finish="stop"),
    Script("moonshot, usage inside the choice", say("a") + line({"choices": [
               {"index": 0, "delta": {}, "finish_reason": "stop", "usage": counts(9, 1) | {"cached_tokens": 2}}]})
           + DONE, text="a", events=1, tokens=1, finish="stop", cached=2),
    Script("mistral, parts and thinking", line(chunk({"content": [
               {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]}))
           + line(chunk({"content": [{"type": "text", "text": "!"}]}, "length")) + _ENDS,
           text="hmyes!", events=2, tokens=3),
    Script("two choices in one chunk", line({"choices": [{"index": 0, "delta": {"content": "a"}},
                                                         {"index": 1, "delta": {"content": "b"}}]})
           + line(chunk({}, "length")) + _ENDS, text="ab", events=1, tokens=3),
    Script("crlf, no space, ids, retry, bom", b"\xef\xbb\xbfretry: 10\r\n\r\nid: 1\r\n\r\n"
           + line(chunk({"content": "a"}), prefix="id: 2\r\ndata:", end="\r\n\r\n")
           + line(chunk({}, "length"), prefix="data:", end="\r\n\r\n") + b"data:[DONE]\r\n\r\n",
           text="a", events=1, tokens=1, source="estimated"),
    Script("lone cr", line(chunk({"content": "a"}), end="\r\r") + line(chunk({}, "length"), end="\r\r")
           + b"data: [DONE]\r\r", text="a", events=1, tokens=1, source="estimated"),
    Script("multi-line data and raw line separators",
           b'data: {"choices":[{"delta":\ndata: {"content":"a\xe2\x80\xa8b\xc2\x85"},"finish_reason":"length"}]}\n\n'
           + DONE, text="a\u2028b\x85", events=1, tokens=1, source="estimated"),
    Script("forgotten blank lines", line(chunk({"content": "a"}), end="\n") + line(chunk({"content": "b"}), end="\n")
           + line(chunk({}, "length"), end="\n") + b"data: [DONE]\n", text="ab", events=2, tokens=2,
           source="estimated", warnings=("missing_blank_lines",)),
    Script("broken utf-8 and a lone surrogate",
           b'data: {"choices":[{"delta":{"content":"a\xff"}}]}\n\n'
           b'data: {"choices":[{"delta":{"content":"\\ud83d"},"finish_reason":"length"}]}\n\n' + DONE,
           text="a\ufffd\ufffd", events=2, tokens=2, source="estimated"),
    Script("not a number in log-probabilities",
           b'data: {"choices":[{"delta":{"content":"a"},"logprobs":{"x":-Infinity,"y":NaN},"finish_reason":"length"}]}'
           b"\n\n" + DONE, text="a", events=1, tokens=1, source="estimated"),
    Script("counts that are none", say("a", "length") + b'data: {"choices":[],"usage":{"prompt_tokens":1e400,'
           b'"completion_tokens":true,"prompt_tokens_details":{"cached_tokens":-1}}}\n\n' + DONE,
           text="a", events=1, tokens=1, source="estimated", warnings=("bad_usage",)),
    Script("a negative count", say("a", "length") + line({"choices": [], "usage": counts(9, -5)}) + DONE,
           text="a", events=1, tokens=1, source="estimated", warnings=("bad_usage",)),
    Script("counts as strings and floats", say("a", "length")
           + line({"choices": [], "usage": {"prompt_tokens": "9", "completion_tokens": 7.0}}) + DONE,
           text="a", events=1, tokens=7),
    Script("together, text beside delta", line({"choices": [{"index": 0, "text": "a", "delta": {"content": "a"}}]})
           + line({"choices": [{"index": 0, "text": "", "delta": {"content": ""}, "finish_reason": "length"}]}) + DONE,
           text="a", events=1, tokens=1, source="estimated"),
    Script("keep-alives as data, and the word null", b"data: ping\n\ndata: : PROCESSING\n\ndata: \n\ndata: {}\n\n"
           + say("a", "null") + line(chunk({}, "length")) + b'data: "[DONE]"\n\n', text="a", events=1, tokens=1,
           source="estimated"),
    Script("a named error", b'event: server_error\ndata: {"message":"no"}\n\n', outcome="stream_error", source=None,
           finish=None, error="no"),
    Script("words under a stream's type", b"Internal Server Error", outcome="malformed", source=None, finish=None,
           error="Internal Server Error"),
    Script("only comments", b": hold on\n\n", outcome="ended_without_marker", source=None, finish=None),
    Script("an error without its kind in a choice-less chunk", say("a") + line({"choices": [], "error": "gone"}) + DONE,
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None, error="gone"),
    Script("no end marker", say("a", "length"), text="a", events=1, tokens=1, source="estimated",
           warnings=("no_done",)),
    Script("no finish reason", say("a") + DONE, text="a", events=1, tokens=1, source="estimated", finish=None,
           warnings=("no_finish_reason",)),
    Script("neither", ROLE + say("a"), outcome="ended_without_marker", text="a", events=1, tokens=1,
           source="estimated", finish=None),
    Script("only the end marker", DONE, outcome="ended_without_marker", source=None, finish=None),
    Script("nothing at all", b"", outcome="ended_without_marker", source=None, finish=None),
    Script("no output", ROLE + line(chunk({}, "length")) + final(9, 1) + DONE, tokens=1, warnings=("empty_output",)),
    Script("ends inside an event", say("a") + b'data: {"choices":[{"delta":{"con', outcome="truncated", text="a",
           events=1, tokens=1, source="estimated", finish=None, error="middle of an event"),
    Script("text after the end marker", say("a", "length") + DONE + say("b") + final(9, 1), text="a", events=1,
           tokens=1, warnings=("bytes_after_done",)),
    Script("words where JSON belongs", say("a") + b"data: Internal Server Error\n\n" + DONE, outcome="malformed",
           text="a", events=1, tokens=1, source="estimated", finish=None, error="Internal Server Error"),
    Script("an error without its data field", say("a") + b'{"error":{"message":"lost"}}\n\n' + DONE,
           outcome="stream_error", text="a", events=1, tokens=1, source="estimated", finish=None, error="lost"),
    Script("whole answer", json.dumps({"choices": [{"index": 0, "finish_reason": "length",
               "message": {"role": "assistant", "content": "ab", "reasoning_content": "hm"}}],
               "usage": counts(9, 3)}).encode(), text="hmab", events=1, tokens=3, content_type=JSON,
           warnings=("not_streamed",)),
    Script("a stream under a wrong type", say("a", "length") + _ENDS, text="a", events=1, tokens=3,
           content_type=JSON),
    Script("an error under a stream's type", b'{"error":{"message":"bad model","type":"NotFound","code":404}}',
           outcome="stream_error", source=None, finish=None, error="bad model"),
    Script("fastapi detail", b'{"detail":[{"loc":["body"],"msg":"field required","type":"missing"}]}', status=422,
           outcome="http_error", content_type=JSON, source=None, finish=None, error="field required"),
    Script("google's list of errors", b'[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]',
           outcome="stream_error", content_type=JSON, source=None, finish=None, error="quota"),
    Script("html with 200", b"<!doctype html><html><head><title>Sign in &amp; go</title>", outcome="malformed",
           content_type="text/html", source=None, finish=None, error="Sign in & go"),
    Script("html with 502", b"<html><body><h1>502 Bad Gateway</h1></body></html>", outcome="http_error", status=502,
           content_type="text/html", source=None, finish=None, error="502 Bad Gateway"),
    Script("plain words", b"upstream connect error", outcome="malformed", content_type="text/plain", source=None,
           finish=None, error="upstream connect error"),
    Script("json of something else", b'{"status":"ok"}', outcome="malformed", content_type=JSON, source=None,
           finish=None, error="without choices"),
    Script("json cut short", b'{"choices":[{"mess', outcome="truncated", content_type=JSON, source=None, finish=None),
    Script("gzip, unlabelled", gzip.compress(say("a", "length") + _ENDS, mtime=0), text="a", events=1, tokens=3,
           warnings=("compressed",)),
    Script("gzip, cut short", gzip.compress(say("a", "length") + _ENDS, mtime=0)[:-5], outcome="truncated", text="a",
           events=1, tokens=3, warnings=("compressed",)),
    Script("gzip only claimed", say("a", "length") + _ENDS, text="a", events=1, tokens=3, content_encoding="gzip"),
    Script("brotli", b"\x8b\x02\x80abc", outcome="malformed", source=None, finish=None, content_encoding="br",
           warnings=("compressed",), error="compressed (br)"),
]  # fmt: skip
