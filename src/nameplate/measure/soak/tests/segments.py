"""Write segments of soaks for tests, file by file as a client does: rows, timelines, the wire's history, samples."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.plan import TrialPlan
from nameplate.contract.shape import Shape
from nameplate.contract.slo import Slo
from nameplate.contract.soak import SOAK_REQUESTS, Soak
from nameplate.contract.target import Target
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout, timeline
from nameplate.evidence.client_sample import ClientSample
from nameplate.evidence.frames import FrameFile
from nameplate.evidence.header import ClockPair, PromptLength, TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.records import HEADER, Kind
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.tests.trials import S, identity, ok_row, timeline_of

WALL = 1_800_000_000 * S
BEGAN = 1000 * S
SMALL = Shape(1000, 11)


class Writing:
    """Collect what one segment's files hold and write them, whole or up to a moment."""

    def __init__(
        self,
        directory: Path,
        *,
        shape: Shape = SMALL,
        concurrency: int = 4,
        duration_s: int = 3600,
        window_s: int = 300,
        slos: Sequence[str] = (),
        wall_ns: int = WALL,
        held: Identity | None = None,
    ) -> None:
        self.directory = directory
        self.header = TrialHeader(
            contract=Contract(
                target=Target.parse("http://127.0.0.1:8000"),
                shapes=(shape,),
                slos=tuple(Slo.parse(text) for text in slos),
                nonce="n0",
            ),
            plan=TrialPlan(
                directory.name,
                "soak",
                shape,
                concurrency,
                SOAK_REQUESTS,
                0,
                soak=Soak(duration_ns=duration_s * S, window_ns=window_s * S),
            ),
            clock="live",
            started=ClockPair(BEGAN - S, wall_ns - S),
            command=("nameplate", "soak"),
            identity=held or identity(engine="vllm", model="m", kv_tokens=100_000, process_start_time_s=1.0),
            prompt_length=PromptLength(method="usage"),
        )
        self.rows: list[RequestRow] = []
        self.timelines: list[Timeline] = []
        self.records: list[tuple[int, bytes]] = []
        self.journal: list[JournalEntry] = []
        self.samples: list[ServerSample] = []
        self.client: list[ClientSample] = []

    def note(self, t_ns: int, what: str, **detail: object) -> None:
        self.journal.append(JournalEntry(t_ns, what, detail))

    def sent(self, index: int, t_ns: int) -> None:
        for kind in (Kind.SCHEDULED, Kind.SENT, Kind.BODY_SENT):
            self.record(kind, index, t_ns)

    def record(
        self, kind: Kind, index: int, t_ns: int, payload: bytes = b"", size: int | None = None
    ) -> None:
        packed = HEADER.pack(kind, index, t_ns, 0, 0, len(payload) if size is None else size) + payload
        self.records.append((t_ns, packed))

    def request(self, row: RequestRow, *, counted: bool = True) -> None:
        """Add a request that has a row, with its timeline and the little of its history that matters here."""
        self.rows.append(row)
        if row.sent_ns is not None:
            self.sent(row.index, row.sent_ns)
        if row.output_events:
            self.timelines.append(timeline_of(row, counted=counted))
        if row.end_ns is not None:
            self.record(Kind.EOF, row.index, row.end_ns)

    def orderly(
        self, submit_ended_ns: int, drained_ns: int, *, cancelled: int = 0, reason: str = "duration"
    ) -> None:
        """Note an orderly course of the load."""
        self.note(BEGAN, "submit_began")
        self.note(submit_ended_ns, "submit_ended", reason=reason, in_flight=0)
        self.note(submit_ended_ns, "drain_began")
        self.note(drained_ns, "drain_ended", cancelled=cancelled)

    def sampled(self, moments: Iterable[int], **values: object) -> None:
        for t_ns in moments:
            self.samples.append(ServerSample(t_ns=t_ns, **values))  # type: ignore[arg-type]

    def write(self, *, sealed: bool = True) -> Path:
        """Write all files."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / layout.HEADER).write_bytes(msgspec.json.encode(self.header))
        rows = sorted(self.rows, key=lambda row: row.end_ns or row.scheduled_ns)
        order = {row.index: at for at, row in enumerate(rows)}
        self.timelines.sort(key=lambda held: order[held.index])
        self.records.sort(key=lambda record: record[0])
        _lines(self.directory / layout.JOURNAL, self.journal)
        _lines(self.directory / layout.REQUESTS, rows)
        _lines(self.directory / layout.SERVER, self.samples)
        _lines(self.directory / layout.CLIENT, self.client)
        _frames(self.directory / layout.EVENTS, [timeline.pack(held) for held in self.timelines])
        _frames(self.directory / layout.READS, [packed for _, packed in self.records])
        if sealed:
            (self.directory / layout.MANIFEST).write_bytes(b"{}")
        return self.directory


def _lines(path: Path, values: Sequence[object]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(value) + b"\n" for value in values))


def _frames(path: Path, entries: Sequence[bytes], *, a_frame: int = 40) -> None:
    frames = FrameFile(path)
    for at in range(0, len(entries), a_frame):
        frames.append(b"".join(entries[at : at + a_frame]))
    frames.close()


def head() -> bytes:
    """Return the head of a streamed answer."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def output(text: str, tokens: int) -> bytes:
    """Return one output event as it comes over the wire, with the tokens so far."""
    event = {
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": tokens, "total_tokens": 1000 + tokens},
    }
    return chunk(b"data: " + msgspec.json.encode(event) + b"\n\n")


def loop(
    writing: Writing,
    *,
    until_ns: int,
    ttft_ns: int = 2 * S,
    itl_ns: int = S // 10,
    running: int | None = None,
    counted: bool = True,
    tokens: int = SMALL.output_tokens,
) -> int:
    """Add a closed loop whose server works on `running` requests at once; return when the last one ended.

    Requests are sent until `until_ns`, and all of them end.
    """
    plan = writing.header.plan
    running = running or plan.concurrency
    slots = [(BEGAN, slot) for slot in range(plan.concurrency)]
    free = [BEGAN] * running
    index, last = 0, BEGAN
    while True:
        sent, slot = heapq.heappop(slots)
        if sent >= until_ns:
            break
        began = max(sent, heapq.heappop(free))
        row = ok_row(
            index,
            sent,
            phase="opening" if index < plan.concurrency else "steady",
            slot=slot,
            ttft_ns=began - sent + ttft_ns,
            itl_ns=itl_ns,
            tokens=tokens,
        )
        row = structs.replace(row, prompt_tokens=plan.shape.input_tokens)
        writing.request(row, counted=counted)
        assert row.end_ns is not None
        heapq.heappush(free, row.end_ns)
        heapq.heappush(slots, (row.end_ns, slot))
        last, index = max(last, row.end_ns), index + 1
    return last
