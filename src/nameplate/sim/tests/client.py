"""A client for the app's tests: requests by hand, responses taken apart, in simulated time."""

import json
from typing import Any

import msgspec

from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.sim.http import HttpRequest, Output
from nameplate.sim.parameters import EngineParameters
from nameplate.sim.presets import Preset

TINY = Preset(
    name="tiny",
    about="for tests",
    model="tiny",
    template_tokens=10,
    engine=EngineParameters(
        step_ns=1_000_000,
        prefill_token_ns=1_000.0,
        chunk_tokens=64,
        kv_tokens=512,
        block_tokens=8,
        running_limit=2,
        running_limit_requested=4,
        context_tokens=256,
    ),
)


def app_of(*faults: str, preset: Preset = TINY, **options: Any) -> App:
    """Return an app with these faults."""
    return App(preset, faults=FaultPlan(tuple(map(parse_fault, faults))), epoch_s=1_700_000_000, **options)


def chat(text: str = "hello world", tokens: int | None = 4, **more: Any) -> dict[str, Any]:
    """Return the body of a streamed chat request of fixed length."""
    body: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "ignore_eos": True,
    }
    if tokens is not None:
        body["max_tokens"] = tokens
    return body | more


class Exchange(msgspec.Struct):
    """Hold what came back on one connection."""

    outputs: list[Output]

    @property
    def raw(self) -> bytes:
        """Return all bytes."""
        return b"".join(output.data for output in self.outputs)

    @property
    def status(self) -> int:
        """Return the status code."""
        return int(self.raw.split(b" ", 2)[1])

    @property
    def end(self) -> str:
        """Return how it ended."""
        return self.outputs[-1].end

    @property
    def body(self) -> bytes:
        """Return the body, unchunked; a body cut short is what there is of it."""
        head, _, rest = self.raw.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" not in head:
            return rest
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        return body

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Return the events of a stream, "[DONE]" as text."""
        texts = [line.removeprefix("data: ") for line in self.body.decode().split("\n\n") if line]
        return [text if text == "[DONE]" else json.loads(text) for text in texts]

    @property
    def text(self) -> str:
        """Return the text of a chat stream."""
        choices = [event["choices"][0] for event in self.events if event != "[DONE]" and event.get("choices")]
        return "".join(choice["delta"].get("content", "") for choice in choices)

    @property
    def usage(self) -> Any:
        """Return the last usage that was sent, or None."""
        found = [event["usage"] for event in self.events if event != "[DONE]" and event.get("usage")]
        return found[-1] if found else None


def run(app: App) -> dict[int, Exchange]:
    """Let the app work until nothing more comes; return what each connection got."""
    exchanges: dict[int, Exchange] = {}
    for _ in range(100_000):
        next_ns = app.next_ns()
        if next_ns is None:
            return exchanges
        for output in app.advance(next_ns):
            assert output.t_ns <= next_ns
            exchanges.setdefault(output.connection, Exchange([])).outputs.append(output)
    raise AssertionError("the app never becomes idle")


def now_of(app: App) -> int:
    """Return the app's time."""
    return app.engine.now_ns


def ask(
    app: App, body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", **headers: str
) -> Exchange:
    """Post one request and run it to its end."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    app.handle(1, HttpRequest("POST", path, headers, data), now_of(app))
    return run(app).get(1, Exchange([]))


def get(app: App, path: str, method: str = "GET", **headers: str) -> Exchange:
    """Fetch a page."""
    app.handle(2, HttpRequest(method, path, headers), now_of(app))
    return run(app)[2]
