"""Orders, answers and a scripted server in invented time, for tests of the load's core."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path

import msgspec

from nameplate.client.counter import Counter
from nameplate.client.flight import Flight
from nameplate.client.load import Load
from nameplate.client.order import Ask, LoadOrder
from nameplate.client.recorder import Recorder
from nameplate.contract.deadlines import Deadlines
from nameplate.contract.plan import TrialPlan
from nameplate.contract.rules import StartPolicy
from nameplate.contract.shape import Shape
from nameplate.contract.target import Credentials, Target
from nameplate.evidence.header import Keeping
from nameplate.evidence.rows import RequestRow
from nameplate.prompts.store import PromptWriter
from nameplate.schedule.stage import prompts_needed, stages_of
from nameplate.wire.outcome import Ending

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":4,"stream":true}'


def plan_of(
    concurrency: int = 4,
    requests: int = 64,
    warmup: int = 0,
    start: StartPolicy = "burst",
    stagger_ns: int = 0,
) -> TrialPlan:
    """Plan a trial of which only the load matters."""
    return TrialPlan(
        "t", "single", Shape(8, 4), concurrency, requests, warmup, start=start, stagger_ns=stagger_ns
    )


def order_of(
    plan: TrialPlan,
    url: str = "http://127.0.0.1:1",
    directory: Path = Path(),
    *,
    deadlines: Deadlines | None = None,
    keeping: Keeping | None = None,
    body: bytes | None = None,
    workers: int = 1,
    new_connections: bool = False,
    ca_file: str | None = None,
    insecure: bool = False,
) -> LoadOrder:
    """Order a load; with `body` the prompt store is written too."""
    needed = prompts_needed(plan)
    prompts = directory / "prompts.zst"
    if body is not None:
        with PromptWriter(prompts) as writer:
            for index in range(needed):
                writer.append(index, body)
    target = msgspec.structs.replace(Target.parse(url), model="m", ca_file=ca_file, insecure=insecure)
    return LoadOrder(
        target=target,
        credentials=Credentials(),
        deadlines=deadlines or Deadlines(),
        stages=stages_of(plan),
        asks=tuple(Ask("8/4", 4, f"p{index}", f"h{index}") for index in range(needed)),
        directory=str(directory),
        prompts_path=str(prompts),
        keeping=keeping or Keeping(),
        new_connections=new_connections,
        workers=workers,
    )


def chunk(data: bytes) -> bytes:
    """Frame bytes as one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(text: str, finish: str | None = None) -> bytes:
    """Write one event of a chat stream."""
    choice: dict[str, object] = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"choices": [choice]}) + b"\n\n"


def answer(tokens: int = 4) -> list[bytes]:
    """Write a whole streamed answer, in the pieces in which a server would send it."""
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": 8 + tokens}
    last = event("", "length") + b"data: " + msgspec.json.encode({"choices": [], "usage": usage})
    return [
        HEAD + chunk(event("t0")),
        *(chunk(event(f" t{n}")) for n in range(1, tokens)),
        chunk(last + b"\n\ndata: [DONE]\n\n") + b"0\r\n\r\n",
    ]


Reply = list[tuple[int, bytes | Ending]]
"""What one request gets back, each with its time after sending."""


def streamed(first_ns: int, gap_ns: int, tokens: int = 4) -> Reply:
    """Answer with a stream on a schedule."""
    return [(first_ns + n * gap_ns, piece) for n, piece in enumerate(answer(tokens))]


class Script:
    """Drive a load against a scripted server in invented time, as a shell would."""

    def __init__(
        self, order: LoadOrder, reply: Callable[[int], Reply], counter: Counter | None = None
    ) -> None:
        self.now_ns = 1_000_000_000
        self.blocks: list[tuple[str, bytes]] = []
        recorder = Recorder(lambda name, block: self.blocks.append((name, block)), order.keeping)
        self.load = Load(order, recorder, counter)
        self.recorder = recorder
        self.starts: list[tuple[int, int]] = []
        self.in_flight_at_most = 0
        self.rows: list[RequestRow] = []
        self._reply = reply
        self._events: list[tuple[int, int, Flight, bytes | Ending]] = []
        self._sequence = 0

    def run(self, until: Callable[[], bool] = lambda: False) -> list[RequestRow]:
        """Run to the end, or until something holds; return the rows in the order in which they were written."""
        load = self.load
        while not load.finished and not until():
            if load.stage_over and not load.unparsed:
                if load.stopping:
                    break
                load.agenda.begin(self.now_ns)
            self.step()
        return self.collect()

    def step(self) -> None:
        """Start what is due, or else let time pass up to the next thing that happens."""
        load = self.load
        if (flight := load.pop_due(self.now_ns)) is not None:
            self._send(flight)
        elif load.unparsed:
            load.parse(2**62, lambda: self.now_ns)
        else:
            times = [
                t
                for t in (load.agenda.next_ns(), self._events[0][0] if self._events else None)
                if t is not None
            ]
            if times:
                self.now_ns = max(self.now_ns, min(times))
                self._deliver()

    def collect(self) -> list[RequestRow]:
        """Parse what is left and take the rows."""
        self.load.parse(2**62, lambda: self.now_ns)
        self.rows += self.load.take_progress(self.now_ns).rows
        return self.rows

    def _send(self, flight: Flight) -> None:
        load = self.load
        self.starts.append((self.now_ns, flight.index))
        self.in_flight_at_most = max(self.in_flight_at_most, len(load.flights))
        load.sent(flight, self.now_ns)
        load.body_sent(flight, self.now_ns)
        for after_ns, what in self._reply(flight.index):
            self._sequence += 1
            heapq.heappush(self._events, (self.now_ns + after_ns, self._sequence, flight, what))

    def _deliver(self) -> None:
        while self._events and self._events[0][0] <= self.now_ns:
            _, _, flight, what = heapq.heappop(self._events)
            if flight.ended:
                continue
            if isinstance(what, bytes):
                self.load.received(flight, self.now_ns, 0, 0, what)
            elif what is Ending.eof:
                self.load.closed(flight, self.now_ns)
            else:
                self.load.failed(flight, self.now_ns, what, "scripted")


MS = 1_000_000
# One reply of each kind, with the outcome that it has.
OUTCOMES: list[tuple[str, Reply]] = [
    ("ok", streamed(MS, MS)),
    ("http_error", [(MS, UNAVAILABLE)]),
    (
        "stream_error",
        [(MS, HEAD + chunk(b'data: {"error":{"message":"boom"}}\n\ndata: [DONE]\n\n') + b"0\r\n\r\n")],
    ),
    ("truncated", [(MS, HEAD + chunk(event("a"))), (2 * MS, Ending.eof)]),
    ("ended_without_marker", [(MS, HEAD + chunk(event("a")) + b"0\r\n\r\n")]),
    ("malformed", [(MS, b"SSH-2.0-OpenSSH\r\n")]),
    ("malformed", [(MS, HEAD + b"zz\r\n")]),
    ("connect_failed", [(MS, Ending.connect_failed)]),
    ("reset", [(MS, Ending.reset)]),
    ("reset", [(MS, Ending.eof)]),
]
