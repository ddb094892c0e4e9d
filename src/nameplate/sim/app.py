"""The simulated server without sockets: parsed requests in, response bytes with their times out.

A transport, real or virtual, calls `handle` for each request, `next_ns` for when to look again, and `advance` for
what is to be sent by now. Times are nanoseconds on the transport's clock and never go back.
"""

import hashlib
import hmac
import math
from array import array
from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

import msgspec
from msgspec import structs

from nameplate import __version__
from nameplate.sim.body import BadRequestError, GenerationBody, Message, prompt_text, read_generation
from nameplate.sim.engine import Engine
from nameplate.sim.faults import FaultPlan
from nameplate.sim.http import End, HttpRequest, Output, error_body, response
from nameplate.sim.metrics_page import CONTENT_TYPE, render_metrics
from nameplate.sim.pages import facts_page, models_page
from nameplate.sim.preset import Preset
from nameplate.sim.replies import Renderer
from nameplate.sim.sequence import Emission, EngineRequest
from nameplate.sim.stream import Reply, ServedRequest
from nameplate.sim.tokens import Answer, ChatTemplate, answer_seed, tokenize

# Natural answers: at least this long, and on average this much longer (chat answers are a few hundred tokens).
_SHORTEST_ANSWER, _MEAN_ANSWER = 8, 150.0
_GENERATING = ("/v1/chat/completions", "/v1/completions")
_METHODS = dict.fromkeys(("/health", "/version", "/metrics", "/v1/models", "/sim"), "GET")
_METHODS |= dict.fromkeys((*_GENERATING, "/reset_prefix_cache", "/tokenize"), "POST")
_T = TypeVar("_T")
_HTML = (
    b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in to continue.</body></html>"
)


class TokenizeBody(msgspec.Struct, frozen=True):
    """Hold the body of /tokenize."""

    prompt: str | None = None
    messages: list[Message] | None = None


class App:
    """Serve the OpenAI API from a simulated engine.

    `epoch_s` is the wall-clock second of time 0: the app has no clock of its own. When an output says `exit`, its
    process ends; `away_ns` is after how long it is to be started again, by `restart`, None for never.
    """

    def __init__(
        self,
        preset: Preset,
        *,
        api_key: str | None = None,
        faults: FaultPlan | None = None,
        seed: int = 0,
        epoch_s: int = 0,
        started_ns: int = 0,
    ) -> None:
        self.preset = preset
        self.engine = Engine(structs.replace(preset.engine, seed=preset.engine.seed ^ seed))
        self.served: list[
            ServedRequest
        ] = []  # finished ones, for a transport that keeps a log: it empties the list
        self._template = ChatTemplate(preset.template_tokens)
        self._api_key = api_key
        self._faults = (faults or FaultPlan()).and_then(preset.faults)
        self._seed = seed
        self._epoch_s = epoch_s
        self._started_s = epoch_s + started_ns * 1e-9
        self._requests = 0
        self._first_ns: int | None = None
        self._replies: dict[int, Reply] = {}  # by engine request
        self._open: dict[int, int] = {}  # connection -> engine request
        self._ready: list[Output] = []
        self._held: list[tuple[int, int, Output]] = []  # outputs of a later time
        self._order = count()
        self._others_ns: deque[int] = deque()  # when somebody else's requests come
        self._others = 0
        self.away_ns: int | None = None

    @property
    def model(self) -> str:
        """Return the served model's name, as the server states it."""
        return self.preset.model + ("-other" if self._faults.any("wrong_model") is not None else "")

    @property
    def phantom_running(self) -> int:
        """Return how many running requests of somebody else the server pretends to have."""
        return int(self._faults.since("phantom", self._requests) or 0)

    @property
    def started_s(self) -> float:
        """Return the wall-clock second at which the server's process seems to have started."""
        return self._started_s + self._changed(1.0, 0.0)

    def restart(self, now_ns: int) -> None:
        """Begin anew as another process: nothing is held, cached or counted any more; faults go on counting."""
        self.engine = Engine(self.engine.parameters)
        self._replies, self._open = {}, {}
        self._ready, self._held = [], []
        self._others_ns.clear()
        self._started_s = self._epoch_s + now_ns * 1e-9
        self.away_ns = None
        self._run(now_ns)

    def handle(self, connection: int, request: HttpRequest, now_ns: int) -> None:
        """Take one request; its response comes out of `advance`, perhaps at once."""
        self._run(now_ns)
        path = request.path.partition("?")[0]
        if path in _GENERATING and request.method == "POST" and self._authorised(request):
            self._generate(connection, request, now_ns, chat=path.endswith("chat/completions"))
            return
        status, body, kind = self._page(request, path)
        data = response(status, body, kind, keep_alive=request.keep_alive)
        self._send(connection, now_ns, data, "done" if request.keep_alive else "close")

    def next_ns(self) -> int | None:
        """Return when something will next come out; None when nothing will without a request."""
        if self._ready:
            return self._ready[0].t_ns
        next_ns = self.engine.next_ns()
        if self._held and (next_ns is None or self._held[0][0] < next_ns):
            next_ns = self._held[0][0]
        if self._others_ns and (next_ns is None or self._others_ns[0] < next_ns):
            next_ns = self._others_ns[0]
        return next_ns

    def advance(self, to_ns: int) -> list[Output]:
        """Let time pass and return what is to be sent by then, in order of time."""
        self._run(to_ns)
        ready, self._ready = self._ready, []
        if self._held and self._held[0][0] <= to_ns:
            held = []
            while self._held and self._held[0][0] <= to_ns:
                held.append(heappop(self._held)[2])
            # What was held back is older: it goes before what became ready in the same nanosecond.
            return sorted(held + ready, key=lambda output: output.t_ns)
        return ready

    def cancel(self, connection: int, now_ns: int) -> None:
        """Forget a connection that the client closed, and stop generating for it."""
        self._run(now_ns)
        request_id = self._open.pop(connection, None)
        if request_id is not None:
            self._replies[request_id].served.finish = "cancelled"
            self.served.append(self._replies.pop(request_id).served)
            self.engine.cancel(request_id, now_ns)
        self._ready = [output for output in self._ready if output.connection != connection]
        if self._held:
            kept = [entry for entry in self._held if entry[2].connection != connection]
            self._held = sorted(kept, key=lambda entry: entry[:2])

    def _run(self, to_ns: int) -> None:
        while self._others_ns and self._others_ns[0] <= to_ns:
            at_ns = self._others_ns.popleft()
            self._answer(self.engine.advance(at_ns))
            self._disturb(at_ns)
        self._answer(self.engine.advance(to_ns))

    def _disturb(self, now_ns: int) -> None:
        """Submit a request of somebody else's, whose answer goes nowhere."""
        other = self.preset.neighbour
        assert other is not None
        self._others += 1
        # Token ids have 32 bits, so above them no prompt is ever like one of a client's.
        first = (1 << 32) + self._others * other.prompt_tokens
        prompt = range(first, first + other.prompt_tokens)
        self.engine.submit(EngineRequest(-self._others, prompt, other.output_tokens), now_ns)

    def _answer(self, emissions: list[Emission]) -> None:
        replies, ready = self._replies, self._ready
        for emission in emissions:
            reply = replies.get(emission.id)
            if reply is None:
                continue
            served = reply.served
            served.output_tokens, served.cached_tokens = emission.total, emission.cached_tokens
            data, end = reply.take(emission)
            t_ns = emission.t_ns
            if t_ns < reply.not_before_ns:
                if data or end != "more":
                    self._send(
                        served.connection, reply.not_before_ns, data, end, served.number, emission.tokens
                    )
            elif data or end != "more":
                ready.append(Output(served.connection, t_ns, data, end, served.number, emission.tokens))
            if emission.finish is not None or end != "more":
                served.finish = served.finish or emission.finish
                self._close(emission.id)
                # A broken stream is not generated further.
                self.engine.cancel(emission.id, self.engine.now_ns)

    def _close(self, request_id: int) -> None:
        reply = self._replies.pop(request_id)
        self._open.pop(reply.served.connection, None)
        self.served.append(reply.served)

    def _send(
        self, connection: int, t_ns: int, data: bytes, end: End = "done", number: int = -1, tokens: int = 0
    ) -> None:
        output = Output(connection, t_ns, data, end, number, tokens)
        if t_ns > self.engine.now_ns:
            heappush(self._held, (t_ns, next(self._order), output))
        else:
            self._ready.append(output)

    def _authorised(self, request: HttpRequest) -> bool:
        if self._api_key is None:
            return True
        given = request.headers.get("authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self._api_key}".encode())

    def _page(self, request: HttpRequest, path: str) -> tuple[int, bytes, str]:
        """Answer everything that generates nothing: status, body, content type."""
        kind = "application/json"
        if self._faults.any("html") is not None:
            return 200, _HTML, "text/html; charset=utf-8"
        if path not in _METHODS:
            return 404, b'{"detail":"Not Found"}', kind
        if path.startswith("/v1/") and not self._authorised(request):
            return 401, b'{"error":"Unauthorized"}', kind
        if request.method != _METHODS[path]:
            return 405, b'{"detail":"Method Not Allowed"}', kind
        if path == "/health":
            return 200, b"", kind
        if path == "/version":
            return 200, msgspec.json.encode({"version": __version__ + self._changed("+changed", "")}), kind
        if path == "/metrics":
            page = render_metrics(
                self.engine, model=self.model, started_s=self.started_s, phantom_running=self.phantom_running
            )
            return 200, page, CONTENT_TYPE
        if path == "/v1/models":
            page = models_page(self.model, self.preset.name, self._epoch_s, self._context_tokens())
            return 200, page, kind
        if path == "/sim":
            return 200, facts_page(self.preset, self._seed), kind
        if path == "/reset_prefix_cache":
            flushed = self._faults.any("refuse_flush") is None and self.engine.flush()
            return 200, msgspec.json.encode({"success": flushed}), kind
        return self._tokenize(request.body)

    def _changed(self, changed: _T, usual: _T) -> _T:
        limit = self._faults.any("identity_change")
        return usual if limit is None or self._requests < limit else changed

    def _context_tokens(self) -> int:
        context = self.preset.engine.context_tokens
        return self._changed(context // 2, context)

    def _tokenize(self, body: bytes) -> tuple[int, bytes, str]:
        kind = "application/json"
        try:
            value = msgspec.json.decode(body, type=TokenizeBody)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return 400, error_body(f"Invalid request body: {error}", "BadRequestError", None, 400), kind
        if value.messages is not None:
            tokens = self._template.apply((message.role, message.text) for message in value.messages)
        else:
            tokens = tokenize(value.prompt or "")
        page = {
            "count": len(tokens),
            "max_model_len": self._context_tokens(),
            "tokens": tokens.tolist(),
            "token_strs": None,
        }
        return 200, msgspec.json.encode(page), kind

    def _generate(self, connection: int, request: HttpRequest, now_ns: int, *, chat: bool) -> None:
        index = self._requests
        self._requests += 1
        self._first_ns = now_ns if self._first_ns is None else self._first_ns
        self.engine.pace = self._faults.pace(self._requests, now_ns - self._first_ns)
        other = self.preset.neighbour
        if other is not None and self._requests % other.every == 0:
            self._others_ns.append(now_ns + other.delay_ns)
        end: End = "done" if request.keep_alive else "close"
        away_s = self._faults.of("restart", index)
        if away_s is not None:
            self.away_ns = round(away_s * 1e9)
            return self._send(connection, now_ns, b"", "exit", index)
        late = self._faults.of("slow_headers", index)
        at_ns = now_ns + int((late or 0.0) * 1e9)
        for name in ("429", "503"):
            retry = self._faults.of("429" if name == "429" else "503", index)
            if retry is not None:
                body = error_body("The server is overloaded.", "ServerOverloaded", None, int(name))
                headers = (("retry-after", f"{retry:g}"),)
                data = response(int(name), body, headers=headers, keep_alive=request.keep_alive)
                return self._send(connection, at_ns, data, end)
        if self._faults.of("html", index) is not None:
            data = response(200, _HTML, "text/html; charset=utf-8", keep_alive=request.keep_alive)
            return self._send(connection, at_ns, data, end)
        try:
            reply, engine_request = self._admit(connection, request, now_ns, index, chat=chat)
        except BadRequestError as error:
            page = error_body(error.message, error.kind, error.param, error.code)
            return self._send(
                connection, at_ns, response(error.code, page, keep_alive=request.keep_alive), end
            )
        reply.not_before_ns = at_ns
        self._replies[index] = reply
        self._open[connection] = index
        self.engine.submit(engine_request, now_ns)
        if reply.streaming:
            self._send(connection, at_ns, reply.head(), "more", index)
        return None

    def _admit(
        self, connection: int, request: HttpRequest, now_ns: int, index: int, *, chat: bool
    ) -> tuple[Reply, EngineRequest]:
        """Read and check a body; raise BadRequestError for what a vLLM server would refuse."""
        body = read_generation(request.body)
        if body.model is not None and body.model != self.preset.model:
            raise BadRequestError(
                f"The model `{body.model}` does not exist.", "model", kind="NotFoundError", code=404
            )
        prompt = self._prompt(body, chat=chat)
        limit = self._output_limit(body, len(prompt))
        greedy = body.temperature == 0
        salt = 0 if greedy else 1 + (index if body.seed is None else body.seed) % (1 << 62)
        seed = answer_seed(prompt, salt ^ self._seed)
        length, finish = limit, "length"
        if not body.ignore_eos:
            # An exponential length from the seed's own bits.
            natural = _SHORTEST_ANSWER + int(-math.log1p(-(seed % 2**32) / 2**32) * _MEAN_ANSWER)
            natural = max(natural, body.min_tokens or 0)
            if natural < limit:
                length, finish = natural, "stop"
        early = self._faults.of("early_stop", index)
        if early is not None and early < length:
            length, finish = max(1, int(early)), "stop"
        options = body.stream_options
        digest = hashlib.blake2b(f"{self._seed}:{index}".encode(), digest_size=16).hexdigest()
        usage_known = self._faults.of("no_usage", index) is None
        renderer = Renderer(
            chat=chat,
            identifier=("chatcmpl-" if chat else "cmpl-") + digest,
            created=self._epoch_s + now_ns // 1_000_000_000,
            model=self.model,
            continuous_usage=usage_known and options is not None and options.continuous_usage_stats,
        )
        reply = Reply(
            ServedRequest(index, connection, now_ns, len(prompt)),
            renderer,
            Answer(seed, looping=self._faults.of("loop", index) is not None),
            self._faults,
            streaming=body.stream,
            include_usage=usage_known
            and (not body.stream or (options is not None and options.include_usage)),
            keep_alive=request.keep_alive,
        )
        return reply, EngineRequest(index, prompt, length, finish, seed)

    def _prompt(self, body: GenerationBody, *, chat: bool) -> "array[int]":
        if chat:
            if not body.messages:
                raise BadRequestError("messages must hold at least one message", "messages")
            return self._template.apply((message.role, message.text) for message in body.messages)
        prompt = prompt_text(body)
        tokens = array("I", prompt) if isinstance(prompt, list) else tokenize(prompt)
        if not tokens:
            raise BadRequestError("The prompt must hold at least one token", "prompt")
        return tokens

    def _output_limit(self, body: GenerationBody, prompt_tokens: int) -> int:
        context = self._context_tokens()
        asked = body.asked_tokens
        wanted = asked or 0
        if prompt_tokens + max(1, wanted) > context:
            raise BadRequestError(
                f"This model's maximum context length is {context} tokens. However, you requested {wanted} output "
                f"tokens and your prompt contains at least {prompt_tokens} input tokens, for a total of at least "
                f"{prompt_tokens + wanted} tokens. Please reduce the length of the input prompt or the number of "
                f"requested output tokens. (parameter=input_tokens, value={prompt_tokens})",
                "input_tokens",
            )
        return asked or context - prompt_tokens
