"""Rows again from raw reads: the wire's history is parsed anew, as the client parsed it while it came.

Requests whose raw bytes were not kept cannot be rebuilt; they are named, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from nameplate.contract.plan import TrialPlan
from nameplate.contract.target import Api
from nameplate.evidence.records import Kind, Record
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.schedule.stage import Phase, Requests
from nameplate.wire.errors import WireError
from nameplate.wire.http import ResponseReader
from nameplate.wire.outcome import Ending
from nameplate.wire.tally import Tally

_DEADLINES = {ending.value: ending for ending in Ending if ending.value.startswith("deadline_")}


class PromptFacts(Struct, frozen=True):
    """Hold what a prompt's body tells: its hashes and the output length it asks for."""

    sha256: str
    head_sha256: str
    output_tokens: int


class Rebuilt(Struct, frozen=True):
    """Hold one request rebuilt from raw reads; `whole` is False where some of its bytes were not kept."""

    row: RequestRow
    timeline: Timeline
    tally: Tally
    whole: bool


class Exchange:
    """Replay one request's records into its row."""

    def __init__(self, index: int, api: Api) -> None:
        self.index = index
        self.scheduled_ns: int | None = None
        self.sent_ns: int | None = None
        self.body_sent_ns: int | None = None
        self.last_ns = 0
        self.whole = True
        self.ended = False
        self.tally = Tally(api, streaming=True, keep_gaps=True)
        self._reader = ResponseReader()

    def take(self, record: Record) -> None:
        """Take the next record of this request."""
        kind = record.kind
        self.last_ns = max(self.last_ns, record.t_ns)
        if kind == Kind.SCHEDULED:
            self.scheduled_ns = record.t_ns
        elif kind == Kind.SENT:
            self.sent_ns = record.t_ns
        elif kind == Kind.BODY_SENT:
            self.body_sent_ns = record.t_ns
        elif kind == Kind.BARE:
            self.whole = False
        elif self.ended:
            return
        elif kind == Kind.READ:
            self.read(record.arrival_ns, record.payload)
        else:
            self._end_without_answer(record)

    def finish(self) -> None:
        """End a request whose end was never recorded: it is unfinished."""
        if not self.ended:
            self._end(self.last_ns, Ending.unfinished)
            self.tally.end_ns = None

    def read(self, arrival_ns: int, data: bytes) -> None:
        """Take the bytes of one read; the hot path of every recomputation."""
        reader = self._reader
        headed = reader.status is not None
        try:
            body = reader.feed(data)
        except WireError as error:
            self._head(headed)
            self.tally.body(arrival_ns, error.body)
            self._end(arrival_ns, Ending.malformed, error.message)
            return
        if not headed:
            self._head(headed)
        if body:
            self.tally.body(arrival_ns, body)
        if reader.complete:
            self._end(arrival_ns, Ending.complete)

    def _head(self, headed: bool) -> None:
        reader = self._reader
        if not headed and reader.status is not None:
            self.tally.headers(reader.status, reader.content_type, reader.content_encoding)

    def _end_without_answer(self, record: Record) -> None:
        detail = record.payload.decode("utf-8", "replace")
        if record.kind == Kind.EOF:
            self._end(record.t_ns, Ending.complete if self._reader.eof() else Ending.eof, detail)
        elif record.kind == Kind.RESET:
            self._end(record.t_ns, Ending.reset, detail)
        elif record.kind == Kind.CONNECT_FAILED:
            self._end(record.t_ns, Ending.connect_failed, detail)
        elif record.kind == Kind.BROKEN:
            self._end(record.t_ns, Ending.malformed, self.tally.broken or detail)
        elif record.kind == Kind.CANCEL:
            self._end(record.t_ns, Ending.cancelled)
        else:
            name, _, said = detail.partition(": ")
            self._end(record.t_ns, _DEADLINES.get(name, Ending.deadline_total), said)

    def _end(self, t_ns: int, ending: Ending, detail: str = "") -> None:
        self.ended = True
        self.tally.end(t_ns, ending, detail)

    def row(
        self, phase: Phase, class_name: str, prompt: PromptFacts, recorded: RequestRow | None
    ) -> RequestRow:
        """Build the row; what only the client knew (slot, connection, worker) is taken from the recorded one."""
        return RequestRow(
            index=self.index,
            phase=phase,
            class_=class_name,
            slot=recorded.slot if recorded else None,
            scheduled_ns=self.scheduled_ns
            if self.scheduled_ns is not None
            else (self.sent_ns or self.last_ns),
            sent_ns=self.sent_ns,
            body_sent_ns=self.body_sent_ns,
            asked_output_tokens=prompt.output_tokens,
            prompt_sha256=prompt.sha256,
            prompt_head_sha256=prompt.head_sha256,
            connect_ns=recorded.connect_ns if recorded else None,
            idle_ns=recorded.idle_ns if recorded else None,
            worker=recorded.worker if recorded else 0,
        ).told(self.tally)


def rebuild(
    records: Iterable[Record],
    plan: TrialPlan,
    api: Api,
    prompts: Mapping[int, PromptFacts],
    recorded: Mapping[int, RequestRow],
) -> Iterator[Rebuilt]:
    """Rebuild every request that was scheduled, in order of their ends; unfinished ones come last.

    A prompt that was not kept is taken from the recorded row. Memory is bounded by what was in flight at once.
    """
    requests = Requests(plan)
    open_exchanges: dict[int, Exchange] = {}
    finished: set[int] = set()
    for record in records:
        exchange = open_exchanges.get(record.request)
        if exchange is None:
            if record.request in finished:
                continue
            exchange = open_exchanges[record.request] = Exchange(record.request, api)
        exchange.take(record)
        if exchange.ended and exchange.body_sent_ns is not None:
            finished.add(record.request)
            yield rebuilt_from(open_exchanges.pop(record.request), requests, prompts, recorded)
    for exchange in list(open_exchanges.values()):
        exchange.finish()
        yield rebuilt_from(exchange, requests, prompts, recorded)


def rebuilt_from(
    exchange: Exchange,
    requests: Requests,
    prompts: Mapping[int, PromptFacts],
    recorded: Mapping[int, RequestRow],
) -> Rebuilt:
    """Close one replayed request; KeyError for an index that the plan does not have."""
    index = exchange.index
    row, shape = recorded.get(index), requests.shape(index)
    prompt = prompts.get(requests.prompt(index))
    if prompt is None:
        prompt = (
            PromptFacts(row.prompt_sha256, row.prompt_head_sha256, row.asked_output_tokens)
            if row is not None
            else PromptFacts("", "", shape.output_tokens)
        )
    times, tokens = exchange.tally.output_times_ns, exchange.tally.output_event_tokens
    assert times is not None and tokens is not None
    timeline = Timeline.of(index, times, tokens)
    rebuilt = exchange.row(requests.phase(index), requests.class_name(index), prompt, row)
    return Rebuilt(rebuilt, timeline, exchange.tally, exchange.whole)
