"""Servers and clocks for tests: scripted answers, and a small engine with a prefix cache, without sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.target import Target
from nameplate.engines.failures import FailureKind, failure
from nameplate.engines.transport import LIMIT_BYTES, Reply, Transport

_TARGET = Target("http", "fake.test", 80)
_TEMPLATE = ("<s>", "user", ":")
_DEFAULT_ANSWER_TOKENS = 16

Answer = Reply | FailureKind | Callable[[bytes | None], Reply]


def reply(
    body: bytes | str | Mapping[str, Any] | list[Any] = b"", status: int = 200, content_type: str = ""
) -> Reply:
    """Return an answer; anything but bytes and text is sent as JSON."""
    if isinstance(body, str):
        data, kind = body.encode(), "text/plain; version=0.0.4"
    elif isinstance(body, bytes):
        data, kind = body, "text/plain"
    else:
        data, kind = msgspec.json.encode(body), "application/json"
    return Reply(status, (("content-type", content_type or kind),), data)


NOT_FOUND = reply({"detail": "Not Found"}, 404)


class FakeClock:
    """Tell a time that only sleeping moves."""

    def __init__(self, now_ns: int = 0) -> None:
        self.time_ns = now_ns
        self.slept_ns: list[int] = []

    def now_ns(self) -> int:
        return self.time_ns

    def sleep_ns(self, duration_ns: int) -> None:
        self.slept_ns.append(duration_ns)
        self.time_ns += duration_ns


class ScriptedTransport:
    """Answer by "METHOD path"; a list is used up one by one and its last answer stays. All else is 404."""

    def __init__(self, script: Mapping[str, Answer | list[Answer]]) -> None:
        self._script: dict[str, list[Answer]] = {
            key: list(value) if isinstance(value, list) else [value] for key, value in script.items()
        }
        self.calls: list[str] = []

    def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float = 10.0,  # noqa: ARG002 - nothing takes time here
        limit_bytes: int = LIMIT_BYTES,
    ) -> Reply:
        key = f"{method} {path}"
        self.calls.append(key)
        answers = self._script.get(key)
        if not answers:
            return NOT_FOUND
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, str):
            raise failure(answer, _TARGET)
        found = answer if isinstance(answer, Reply) else answer(body)
        if len(found.body) > limit_bytes:
            raise failure("too_large", _TARGET)
        return found


class FakeTraits(Struct, frozen=True, kw_only=True):
    """State how a fake engine behaves; the defaults are a vLLM with everything on.

    `rejects`: body fields answered with 400. `natural_tokens`: where its answers end unless it is told to ignore that.
    """

    block_tokens: int = 4
    reports_cached: bool = True
    omits_zero: bool = False
    reports_usage: bool = True
    continuous: bool = True
    honours_ignore_eos: bool = True
    honours_limit: bool = True
    natural_tokens: int = 1
    metrics: bool = True
    flush: str = "works"  # works, refuses, lies, absent, busy_once
    caches: bool = True
    rejects: tuple[str, ...] = ()
    names_rejected: bool = True
    running: int = 0


class FakeServer:
    """Be a vLLM-shaped server with a prefix cache over whole words, one word a token."""

    def __init__(self, traits: FakeTraits | None = None) -> None:
        self.traits = traits or FakeTraits()
        self.bodies: list[dict[str, Any]] = []
        self.flushes = 0
        self._seen: set[tuple[str, ...]] = set()
        self._queries = self._hits = self._output = self._finished = 0

    def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout_s: float = 10.0,  # noqa: ARG002 - nothing takes time here
        limit_bytes: int = LIMIT_BYTES,  # noqa: ARG002 - nothing is large here
    ) -> Reply:
        traits = self.traits
        if path == "/v1/models":
            model = {"id": "toy", "object": "model", "owned_by": "vllm", "root": "/models/toy"}
            return reply({"object": "list", "data": [{**model, "max_model_len": 4096}]})
        if path == "/version":
            return reply({"version": "0.99.0"})
        if path == "/health":
            return reply(b"")
        if path == "/metrics" and traits.metrics:
            return reply(self._page())
        if path == "/tokenize" and method == "POST" and body:
            return reply({"count": len(self._tokens(msgspec.json.decode(body)))})
        if path == "/reset_prefix_cache" and method == "POST" and traits.flush != "absent":
            return self._flush()
        if path == "/v1/chat/completions" and method == "POST" and body:
            return self._generate(msgspec.json.decode(body))
        return NOT_FOUND

    def _flush(self) -> Reply:
        self.flushes += 1
        if self.traits.flush == "refuses" or (self.traits.flush == "busy_once" and self.flushes == 1):
            return reply({"success": False})
        if self.traits.flush in ("works", "busy_once"):
            self._seen.clear()
        return reply({"success": True})

    def _tokens(self, fields: dict[str, Any]) -> list[str]:
        return [*_TEMPLATE, *str(fields["messages"][0]["content"]).split()]

    def _cached(self, tokens: list[str]) -> int:
        size = self.traits.block_tokens
        # The last token is always computed, for its logits.
        ends = range(size, len(tokens), size) if self.traits.caches else ()
        cached = 0
        for end in ends:
            if tuple(tokens[:end]) not in self._seen:
                break
            cached = end
        self._seen.update(tuple(tokens[:end]) for end in ends)
        return cached

    def _generate(self, fields: dict[str, Any]) -> Reply:
        self.bodies.append(fields)
        traits = self.traits
        flat = {**fields, **fields.get("stream_options", {})}
        for key in traits.rejects:
            if key in flat:
                text = f"Unrecognized request argument: {key}" if traits.names_rejected else "Bad request"
                return reply({"error": {"message": text, "type": "invalid_request_error"}}, 400)
        tokens = self._tokens(fields)
        cached = self._cached(tokens)
        limit = fields.get("max_completion_tokens") or fields.get("max_tokens") or _DEFAULT_ANSWER_TOKENS
        if not traits.honours_limit:
            limit = _DEFAULT_ANSWER_TOKENS
        ignores = traits.honours_ignore_eos and fields.get("ignore_eos")
        count = limit if ignores else min(limit, traits.natural_tokens)
        finish = "length" if count == limit else "stop"
        self._queries += len(tokens)
        self._hits += cached
        self._output += count
        self._finished += 1
        if fields["stream"]:
            return self._stream(fields, len(tokens), cached, count, finish)
        answer: dict[str, Any] = {
            "object": "chat.completion",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "yes " * count},
                    "finish_reason": finish,
                }
            ],
        }
        if traits.reports_usage:
            answer["usage"] = self._usage(len(tokens), count, cached)
        return reply(answer)

    def _usage(self, prompt: int, count: int, cached: int | None) -> dict[str, Any]:
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": count}
        if cached is not None and self.traits.reports_cached and (cached or not self.traits.omits_zero):
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        return usage

    def _stream(self, fields: dict[str, Any], prompt: int, cached: int, count: int, finish: str) -> Reply:
        options = fields.get("stream_options", {})
        reports = self.traits.reports_usage
        along = reports and self.traits.continuous and options.get("continuous_usage_stats")
        chunks: list[dict[str, Any]] = []
        for number in range(1, count + 1):
            last = finish if number == count else None
            chunk: dict[str, Any] = {
                "choices": [{"index": 0, "delta": {"content": "yes "}, "finish_reason": last}]
            }
            if along:
                chunk["usage"] = self._usage(prompt, number, None)
            chunks.append(chunk)
        if reports and options.get("include_usage"):
            chunks.append({"choices": [], "usage": self._usage(prompt, count, cached)})
        events = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
        return reply(b"".join([*events, b"data: [DONE]\n\n"]), content_type="text/event-stream")

    def _page(self) -> str:
        values = {
            "vllm:num_requests_running": self.traits.running,
            "vllm:num_requests_waiting": 0,
            "vllm:prompt_tokens_total": self._queries,
            "vllm:generation_tokens_total": self._output,
            "vllm:prompt_tokens_cached_total": self._hits,
            "vllm:prefix_cache_queries_total": self._queries,
            "vllm:prefix_cache_hits_total": self._hits,
            'vllm:request_success_total{finished_reason="length"}': self._finished,
            f'vllm:cache_config_info{{block_size="{self.traits.block_tokens}",num_gpu_blocks="100"}}': 1,
        }
        return "".join(f"{name} {value}\n" for name, value in values.items())


def _is_transport(server: FakeServer, script: ScriptedTransport) -> tuple[Transport, Transport]:
    """Let the type checker hold both fakes to the protocol."""
    return server, script
