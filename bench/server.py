"""A server of known timing that shares no line with the project: asyncio, vLLM-like, with a log of what it did when.

    python -m bench.server [--itl-ms 25] [--usage continuous|end|never] [--chunk-tokens 1,2,3,4] ...

Continuous batching in its plainest form: a step every `--itl-ms`, in which every running request gets a chunk of some
tokens, drawn from `--chunk-tokens`; a few waiting requests are admitted a step, and get their role chunk then and their
first tokens one step later. `GET /log` returns JSON lines: a `server` line, a `request` line for each (times at which
the writes returned, CLOCK_MONOTONIC, and the tokens of each), and a `running` line: how many ran from when on. It stops
when its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MODEL = "known-timing"
TEMPLATE_TOKENS = 9
BLOCK_TOKENS = 16
POOL_BLOCKS = 65_536
CONTEXT_TOKENS = 32_768
ADMITTED_A_STEP = 32
# Letters for words that never repeat a passage: what loops would be flagged, and this server is meant to be innocent.
LETTERS = "bcdfghklmnprstvwz"
VOWELS = "aeiou"


@dataclass
class Request:
    """Follow one request; times in monotonic nanoseconds."""

    number: int
    connection: Connection
    received_ns: int
    asked: int
    prompt_tokens: int
    cached_tokens: int
    stream: bool
    wants_usage: bool
    continuous: bool
    admitted_ns: int | None = None
    ended_ns: int | None = None
    finish: str | None = None
    done: int = 0
    times: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    stalled_until_ns: int = 0
    stall_spent: bool = False
    held: bytearray = field(default_factory=bytearray)

    def row(self) -> dict[str, Any]:
        return {
            "kind": "request",
            "number": self.number,
            "stream": self.stream,
            "received_ns": self.received_ns,
            "admitted_ns": self.admitted_ns,
            "ended_ns": self.ended_ns,
            "finish": self.finish,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "times_ns": self.times,
            "tokens": self.tokens,
        }


class Engine:
    """Run the steps, keep the log and the counters of the metrics page."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.sizes = [int(size) for size in options.chunk_tokens.split(",")]
        self.waiting: list[Request] = []
        self.running: dict[int, Request] = {}
        self.log: list[Request] = []
        self.ran: list[tuple[int, int]] = []
        self.known: set[str] = set()
        self.generated = self.prompted = self.cached = self.queried = 0
        self.ghost_until_ns = 0
        self.streamed = 0

    async def run(self) -> None:
        """Step for ever; a late step is not made up for, as in a real engine."""
        period_s = self.options.itl_ms / 1e3
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + period_s, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
            self.step()

    def step(self) -> None:
        """Give every running request its chunk, then admit some of those that wait."""
        for request in list(self.running.values()):
            self._produce(request)
        admitted, self.waiting = self.waiting[:ADMITTED_A_STEP], self.waiting[ADMITTED_A_STEP:]
        for request in admitted:
            request.admitted_ns = time.monotonic_ns()
            self.running[request.number] = request
            self.prompted += request.prompt_tokens
            self.queried += request.prompt_tokens
            self.cached += request.cached_tokens
            if request.stream:
                self._write(request, chunk({"role": "assistant", "content": ""}, None, self._along(request)))
        self.note_running()

    def submit(self, connection: Connection, body: dict[str, Any], now_ns: int) -> Request:
        """Queue a request."""
        text = " ".join(str(message.get("content", "")) for message in body.get("messages", []))
        prompt = len(text.split()) + TEMPLATE_TOKENS
        cached = (prompt - 1) // BLOCK_TOKENS * BLOCK_TOKENS if text in self.known else 0
        self.known.add(text)
        options = body.get("stream_options") or {}
        usage = self.options.usage
        request = Request(
            number=len(self.log),
            connection=connection,
            received_ns=now_ns,
            asked=int(body.get("max_completion_tokens") or body.get("max_tokens") or 16),
            prompt_tokens=prompt,
            cached_tokens=cached,
            stream=bool(body.get("stream")),
            wants_usage=usage != "never" and bool(options.get("include_usage")),
            continuous=usage == "continuous" and bool(options.get("continuous_usage_stats")),
        )
        if not self.waiting and not self.running and self.options.ghost_s:
            # Somebody else's request, which our client can see in the gauge alone.
            self.ghost_until_ns = now_ns + round(self.options.ghost_s * 1e9)
        self.log.append(request)
        self.waiting.append(request)
        return request

    def lost(self, request: Request) -> None:
        """Stop a request whose client went away."""
        if request.finish is None:
            self._end(request, "cancelled")
            self.note_running()

    def running_now(self, now_ns: int) -> int:
        return len(self.running) + (now_ns < self.ghost_until_ns)

    def note_running(self) -> None:
        """Log how many run, if that changed."""
        now_ns = time.monotonic_ns()
        count = self.running_now(now_ns)
        if not self.ran or self.ran[-1][1] != count:
            self.ran.append((now_ns, count))

    def _produce(self, request: Request) -> None:
        options, now_ns = self.options, time.monotonic_ns()
        if now_ns < request.stalled_until_ns:
            return
        if (
            options.stall_every
            and request.stream
            and request.number % options.stall_every == 0
            and request.done >= options.stall_after
            and not request.stall_spent
        ):
            request.stall_spent = True
            request.stalled_until_ns = now_ns + round(options.stall_s * 1e9)
            return
        count = min(self.random.choice(self.sizes), request.asked - request.done)
        request.done += count
        words = "".join(self._word() for _ in range(count))
        last = request.done >= request.asked
        self.generated += count
        if request.stream:
            data = chunk({"content": words}, "length" if last else None, self._along(request))
            if last:
                if request.wants_usage:
                    data += event(
                        {"object": "chat.completion.chunk", "choices": [], "usage": usage_of(request)}
                    )
                data += framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
            self._write(request, data, last=last)
        else:
            request.text.append(words)
            if last:
                request.connection.answer(200, whole(request, self.options.usage != "never"))
        request.times.append(time.monotonic_ns())
        request.tokens.append(count)
        if last:
            self._end(request, "length")
            request.connection.over(request)

    def _write(self, request: Request, data: bytes, *, last: bool = False) -> None:
        if self.options.buffer:
            # A proxy that passes nothing on before the end.
            request.held += data
            if not last:
                return
            data = bytes(request.held)
        request.connection.transport.write(data)

    def _end(self, request: Request, finish: str) -> None:
        request.finish, request.ended_ns = finish, time.monotonic_ns()
        self.running.pop(request.number, None)
        if request in self.waiting:
            self.waiting.remove(request)

    def _along(self, request: Request) -> dict[str, Any] | None:
        return usage_of(request) if request.continuous else None

    def _word(self) -> str:
        pick = self.random.choice
        return f" {pick(LETTERS)}{pick(VOWELS)}{pick(LETTERS)}{pick(VOWELS)}"

    def metrics(self) -> bytes:
        """Return the page, in vLLM's names."""
        now_ns = time.monotonic_ns()
        held = sum(-(-(r.prompt_tokens + r.done) // BLOCK_TOKENS) for r in self.running.values())
        finished = sum(request.finish == "length" for request in self.log)
        label = f'{{engine="0",model_name="{MODEL}"}}'
        lines = [
            f"vllm:num_requests_running{label} {self.running_now(now_ns)}.0",
            f"vllm:num_requests_waiting{label} {len(self.waiting)}.0",
            f"vllm:kv_cache_usage_perc{label} {held / POOL_BLOCKS}",
            f"vllm:num_preemptions_total{label} 0.0",
            f"vllm:prompt_tokens_total{label} {self.prompted}.0",
            f"vllm:generation_tokens_total{label} {self.generated}.0",
            f"vllm:prefix_cache_queries_total{label} {self.queried}.0",
            f"vllm:prefix_cache_hits_total{label} {self.cached}.0",
            f'vllm:request_success_total{{engine="0",finished_reason="length",model_name="{MODEL}"}} {finished}.0',
            f'vllm:cache_config_info{{block_size="{BLOCK_TOKENS}",engine="0",num_gpu_blocks="{POOL_BLOCKS}"}} 1.0',
        ]
        return "\n".join(lines).encode() + b"\n"

    def lines(self) -> bytes:
        """Return the log."""
        about = {"kind": "server", "itl_ms": self.options.itl_ms, "pid": os.getpid()}
        rows = [about, *(r.row() for r in self.log), {"kind": "running", "from": self.ran}]
        return b"\n".join(json.dumps(row, separators=(",", ":")).encode() for row in rows) + b"\n"


class Connection(asyncio.Protocol):
    """Speak HTTP/1.1 with one client, one request after the other."""

    transport: asyncio.Transport

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._data = b""
        self._request: Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        if self._request is not None:
            self._engine.lost(self._request)
            self._request = None

    def data_received(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        self._data += data
        head, found, rest = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if len(rest) < length:
            return
        body, self._data = rest[:length], rest[length:]
        method, path, _ = head.split(b"\r\n")[0].split(b" ", 2)
        self._serve(method, path.partition(b"?")[0], body, now_ns)

    def _serve(self, method: bytes, path: bytes, body: bytes, now_ns: int) -> None:
        engine = self._engine
        if method == b"POST" and path == b"/v1/chat/completions":
            self._request = engine.submit(self, json.loads(body), now_ns)
            if self._request.stream:
                self.transport.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
                    b"transfer-encoding: chunked\r\n\r\n"
                )
            return
        pages = {
            b"/health": lambda: b"",
            b"/version": lambda: json.dumps({"version": "0.99.0"}).encode(),
            b"/v1/models": lambda: json.dumps(MODELS).encode(),
            b"/metrics": engine.metrics,
            b"/log": engine.lines,
        }
        page = pages.get(path) if method == b"GET" else None
        self.answer(200 if page else 404, page() if page else b'{"detail":"Not Found"}')

    def answer(self, status: int, body: bytes) -> None:
        """Send a whole answer."""
        reason = "OK" if status == 200 else "Not Found"
        kind = "text/plain; version=0.0.4" if body.startswith(b"vllm:") else "application/json"
        head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def over(self, request: Request) -> None:
        """Note that the answer to a request is complete."""
        if self._request is request:
            self._request = None


MODELS = {
    "object": "list",
    "data": [
        {"id": MODEL, "object": "model", "owned_by": "vllm", "root": MODEL, "max_model_len": CONTEXT_TOKENS}
    ],
}


def usage_of(request: Request) -> dict[str, Any]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.done,
        "total_tokens": request.prompt_tokens + request.done,
        "prompt_tokens_details": {"cached_tokens": request.cached_tokens},
    }


def whole(request: Request, usage: bool) -> bytes:
    """Render the answer to a request that does not stream."""
    message = {"role": "assistant", "content": "".join(request.text)}
    body: dict[str, Any] = {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
    }
    if usage:
        body["usage"] = usage_of(request)
    return json.dumps(body).encode()


def chunk(delta: dict[str, Any], finish: str | None, usage: dict[str, Any] | None) -> bytes:
    """Render one chunk of a stream."""
    body: dict[str, Any] = {
        "object": "chat.completion.chunk",
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    if usage is not None:
        body["usage"] = usage
    return event(body)


def event(body: dict[str, Any]) -> bytes:
    return framed(b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n")


def framed(data: bytes) -> bytes:
    """Frame data as one chunk of HTTP."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def parser() -> argparse.ArgumentParser:
    """Return the options' parser."""
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("--itl-ms", type=float, default=25.0, help="one step to the next")
    found.add_argument("--chunk-tokens", default="1,2,3,4", help="drawn for each chunk")
    found.add_argument("--usage", choices=("continuous", "end", "never"), default="continuous")
    found.add_argument(
        "--ghost-s", type=float, default=0.0, help="one more runs for so long after a start from idle"
    )
    found.add_argument("--stall-every", type=int, default=0, help="each N-th request stalls once")
    found.add_argument("--stall-after", type=int, default=0, help="... after so many tokens")
    found.add_argument("--stall-s", type=float, default=0.0, help="... for so long")
    found.add_argument("--buffer", action="store_true", help="pass nothing on before the end of an answer")
    found.add_argument("--seed", type=int, default=0)
    return found


async def serve(options: argparse.Namespace) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    engine = Engine(options)
    server = await loop.create_server(lambda: Connection(engine), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    steps = asyncio.ensure_future(engine.run())
    over = asyncio.Event()

    def read_stdin() -> None:
        if not os.read(0, 4096):
            over.set()

    loop.add_reader(0, read_stdin)
    waiting = asyncio.ensure_future(over.wait())
    await asyncio.wait((steps, waiting), return_when=asyncio.FIRST_COMPLETED)
    steps.cancel()
    server.close()


def main(arguments: Sequence[str] | None = None) -> int:
    asyncio.run(serve(parser().parse_args(arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
