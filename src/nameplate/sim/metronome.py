"""The metronome: a server whose every token comes at a known moment, to measure clients against.

The k-th chunk of a request is due at received + TTFT + k x ITL, whatever happened before, so lateness never adds up.
It computes nothing: chunks are rendered before they are due, and only joined to the request's own identifier then.
The log (written at the end, or read from `GET /log`) has the times at which sends returned; see `truth`.
"""

import gc
import os
import time
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from nameplate import __version__
from nameplate.sim.body import BadRequestError, GenerationBody, prompt_text, read_generation
from nameplate.sim.connection import Connection
from nameplate.sim.http import LAST_CHUNK, HttpRequest, error_body, response, stream_head
from nameplate.sim.replies import DONE, Renderer, Usage
from nameplate.sim.sockets import Sockets, StopSignals, listen, raise_descriptor_limit, url_of
from nameplate.sim.tokens import ChatTemplate, tokenize
from nameplate.sim.truth import TruthRow
from nameplate.sim.words import WORDS

MODEL = "metronome"
TEMPLATE_TOKENS = 12
_CONTEXT_TOKENS = 131_072
_DEFAULT_TOKENS = 64
# After so many sends (some 0.1 ms) look for new requests: reading one late would shift its whole schedule.
_SENDS_A_TURN = 16
# Chunks that are due within so little of each other share one waking up, which costs as much as a send. It is about
# what the kernel rounds a wait to anyway.
_REST_NS = 100_000
# Words of one length, so that all chunks of a stream have one length too and their framing is known beforehand.
_TEXTS = [f" {word}" for word in WORDS if len(word) == 5][:64]


class MetronomeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Say where to serve and the schedule; raises ValueError for one that cannot be."""

    host: str = "127.0.0.1"
    port: int = 0
    ttft_ns: int = 50_000_000
    itl_ns: int = 10_000_000
    chunk_tokens: int = 1
    log: Path | None = None
    max_connections: int = 4_096
    until_eof: int | None = None
    keep_alive_s: float = 60.0

    def __post_init__(self) -> None:
        if self.ttft_ns < 0 or self.itl_ns < 0 or self.chunk_tokens < 1:
            raise ValueError("the metronome needs times of at least 0 and at least one token a chunk")


class _Stream(msgspec.Struct, eq=False, kw_only=True):
    """Follow one request along its schedule: what its chunks are made of, the next one, and when each was sent."""

    number: int
    connection: Connection
    received_ns: int
    tokens: int
    chunks: int
    renderer: Renderer
    prefix: bytes
    tails: list[bytes]
    usage: Usage
    wants_usage: bool
    continuous: bool
    keep_alive: bool
    times: "array[int]"
    next: int = 0
    finish: str | None = None


class Metronome:
    """Keep the schedule of all streams; the sockets are given."""

    def __init__(self, options: MetronomeOptions) -> None:
        self._options = options
        self._template = ChatTemplate(TEMPLATE_TOKENS)
        self._streams: dict[int, _Stream] = {}
        # All streams share one TTFT and one ITL, so what is due next is always at the head of one of two queues.
        self._first: deque[tuple[int, _Stream]] = deque()
        self._later: deque[tuple[int, _Stream]] = deque()
        self._rest_until_ns = 0
        self._ended: list[_Stream] = []
        self._count = 0
        self._epoch_s = int(time.time())
        self._tails: dict[bool, tuple[int, list[bytes]]] = {}
        self.sockets: Sockets | None = None

    def next_ns(self) -> int | None:
        """Return when to tick next: when a chunk is due, but not before a short rest after the last one."""
        queue = self._first if self._first_is_next() else self._later
        return max(queue[0][0], self._rest_until_ns) if queue else None

    def on_request(self, connection: Connection, request: HttpRequest, now_ns: int) -> None:
        """Answer a page at once, or put a stream on the schedule."""
        assert self.sockets is not None
        path = request.path.partition("?")[0]
        if request.method == "POST" and path in ("/v1/chat/completions", "/v1/completions"):
            try:
                self._begin(connection, request, now_ns, chat=path.endswith("chat/completions"))
            except BadRequestError as error:
                page = error_body(error.message, error.kind, error.param, error.code)
                self.sockets.send(connection, response(error.code, page), done=True)
            return
        status, body = self._page(path)
        data = response(status, body, keep_alive=request.keep_alive)
        self.sockets.send(connection, data, done=True, close=not request.keep_alive)

    def on_lost(self, connection: Connection, now_ns: int) -> None:  # noqa: ARG002 - the callback's signature
        """Stop a stream whose client went away."""
        stream = self._streams.pop(connection.number, None)
        if stream is not None:
            stream.finish = "cancelled"
            self._ended.append(stream)

    def tick(self) -> None:
        """Send what is due, a bounded number of chunks."""
        later, itl_ns, clock = self._later, self._options.itl_ns, time.monotonic_ns
        now_ns = clock()
        for _ in range(_SENDS_A_TURN):
            queue = self._first if self._first and self._first_is_next() else later
            if not queue or queue[0][0] > now_ns:
                self._rest_until_ns = now_ns + _REST_NS
                return
            due_ns, stream = queue.popleft()
            if stream.finish is not None:
                continue
            index = stream.next
            stream.next = index + 1
            if index + 1 < stream.chunks:
                later.append((due_ns + itl_ns, stream))
            if not index or index + 1 == stream.chunks or stream.continuous:
                self._send_rendered(stream, index)
            else:
                self._send_plain(stream.connection, stream.prefix + stream.tails[index & 63])
            now_ns = clock()
            stream.times.append(now_ns)

    def rows(self) -> bytes:
        """Return the log: a line about the server, then one a request that ended."""
        about: dict[str, object] = {
            "kind": "server",
            "version": __version__,
            "preset": MODEL,
            "pid": os.getpid(),
            "clock": "monotonic",
            "ttft_ns": self._options.ttft_ns,
            "itl_ns": self._options.itl_ns,
            "chunk_tokens": self._options.chunk_tokens,
        }
        lines: list[object] = [about]
        for stream in self._ended:
            times = stream.times
            row = TruthRow(
                stream.number,
                stream.received_ns,
                times[0] if times else None,
                times[-1] if times else None,
                stream.usage.prompt_tokens,
                0,
                min(stream.tokens, stream.next * self._options.chunk_tokens),
                stream.finish,
                [t_ns - stream.received_ns for t_ns in times],
            )
            lines.append(row)
        return b"\n".join(map(msgspec.json.encode, lines)) + b"\n"

    def _begin(self, connection: Connection, request: HttpRequest, now_ns: int, *, chat: bool) -> None:
        body = read_generation(request.body)
        if not body.stream:
            raise BadRequestError("the metronome only streams", "stream")
        if body.model not in (None, MODEL):
            raise BadRequestError(
                f"The model `{body.model}` does not exist.", "model", kind="NotFoundError", code=404
            )
        tokens = body.asked_tokens or _DEFAULT_TOKENS
        options = body.stream_options
        number = self._count
        self._count += 1
        continuous = options is not None and options.continuous_usage_stats
        identifier = f"{'chatcmpl' if chat else 'cmpl'}-{number:032x}"
        renderer = Renderer(
            chat=chat, identifier=identifier, created=self._epoch_s, model=MODEL, continuous_usage=continuous
        )
        prefix, tails = self._parts(renderer, identifier, chat=chat)
        stream = _Stream(
            number=number,
            connection=connection,
            received_ns=now_ns,
            tokens=tokens,
            chunks=-(-tokens // self._options.chunk_tokens),
            renderer=renderer,
            prefix=prefix,
            tails=tails,
            usage=Usage(self._prompt_tokens(body, chat=chat), cached_tokens=0),
            wants_usage=options is not None and options.include_usage,
            continuous=continuous,
            keep_alive=request.keep_alive,
            times=array("q"),
        )
        self._streams[connection.number] = stream
        self._first.append((now_ns + self._options.ttft_ns, stream))
        assert self.sockets is not None
        self.sockets.send(connection, stream_head(keep_alive=request.keep_alive))

    def _parts(self, renderer: Renderer, identifier: str, *, chat: bool) -> tuple[bytes, list[bytes]]:
        """Return what a stream's ordinary chunks begin with, and their ends, which all streams share."""
        usage = Usage(0)
        sample = renderer.text(self._text(0), None, usage)
        split = sample.index(identifier.encode()) + len(identifier)
        if chat not in self._tails:
            chunks = [renderer.text(self._text(index), None, usage) for index in range(64)]
            self._tails[chat] = (split, [data[split:] for data in chunks])
        return sample[:split], self._tails[chat][1]

    def _text(self, index: int) -> str:
        count = self._options.chunk_tokens
        return "".join(_TEXTS[(index * 7 + word * 3) % len(_TEXTS)] for word in range(count))

    def _first_is_next(self) -> bool:
        first, later = self._first, self._later
        return bool(first) and (not later or first[0][0] < later[0][0])

    def _send_plain(self, connection: Connection, data: bytes) -> None:
        if not connection.unsent:
            try:
                sent = connection.sock.send(data)
            except OSError:
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        # What a socket does not take goes the long way round.
        assert self.sockets is not None
        self.sockets.send(connection, data)

    def _send_rendered(self, stream: _Stream, index: int) -> None:
        """Send a first or last chunk, or one that carries usage: those that are not all alike."""
        assert self.sockets is not None
        usage, renderer = stream.usage, stream.renderer
        last = index + 1 == stream.chunks
        data = renderer.role(usage) if index == 0 else b""
        usage.completion_tokens = min(stream.tokens, (index + 1) * self._options.chunk_tokens)
        left = stream.tokens - index * self._options.chunk_tokens
        text = self._text(index) if left >= self._options.chunk_tokens else _TEXTS[0] * left
        data += renderer.text(text, "length" if last else None, usage)
        if not last:
            return self.sockets.send(stream.connection, data)
        if stream.wants_usage:
            data += renderer.usage(usage)
        self._streams.pop(stream.connection.number, None)
        stream.finish = "length"
        self._ended.append(stream)
        return self.sockets.send(
            stream.connection, data + DONE + LAST_CHUNK, done=True, close=not stream.keep_alive
        )

    def _prompt_tokens(self, body: GenerationBody, *, chat: bool) -> int:
        if chat:
            return len(self._template.apply((message.role, message.text) for message in body.messages or ()))
        prompt = prompt_text(body)
        return len(prompt) if isinstance(prompt, list) else len(tokenize(prompt))

    def _page(self, path: str) -> tuple[int, bytes]:
        if path == "/log":
            return 200, self.rows()
        if path == "/health":
            return 200, b""
        if path == "/version":
            return 200, msgspec.json.encode({"version": __version__})
        if path == "/reset_prefix_cache":
            return 200, msgspec.json.encode({"success": not self._streams})
        if path == "/v1/models":
            model = {
                "id": MODEL,
                "object": "model",
                "owned_by": "nameplate-sim",
                "max_model_len": _CONTEXT_TOKENS,
            }
            return 200, msgspec.json.encode({"object": "list", "data": [model]})
        if path == "/metrics":
            running = float(len(self._streams))
            return 200, f"vllm:num_requests_running {running}\nvllm:num_requests_waiting 0.0\n".encode()
        return 404, b'{"detail":"Not Found"}'


def serve_metronome(options: MetronomeOptions, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then write the log; `on_ready` gets the URL. Raises OSError."""
    raise_descriptor_limit()
    listener = listen(options.host, options.port)
    metronome = Metronome(options)
    signals = StopSignals()
    sockets = Sockets(
        listener,
        metronome.on_request,
        metronome.on_lost,
        keep_alive_s=options.keep_alive_s,
        max_connections=options.max_connections,
    )
    metronome.sockets = sockets
    sockets.stop_on(signals.reader)
    if options.until_eof is not None:
        sockets.stop_on(options.until_eof)
    try:
        on_ready(url_of(listener))
        gc.collect()
        gc.freeze()
        gc.disable()  # nothing here makes cycles in the measured part, and a collection would be late chunks
        while sockets.turn(metronome.next_ns()):
            metronome.tick()
    finally:
        gc.enable()
        sockets.close()
        if options.log is not None:
            options.log.write_bytes(metronome.rows())
        signals.close()
