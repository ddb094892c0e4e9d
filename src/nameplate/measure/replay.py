"""One request of a trial again, event by event, for a person's eyes."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind, Record
from nameplate.evidence.rows import RequestRow
from nameplate.wire.body import BodyDecoder
from nameplate.wire.errors import WireError
from nameplate.wire.events import Event
from nameplate.wire.http import ResponseReader


class TimedEvent(Struct, frozen=True):
    """Hold one event of the stream and when it arrived, in monotonic nanoseconds."""

    t_ns: int
    event: Event


class ReplayedRequest(Struct, frozen=True):
    """Hold one request's row with its events; `bytes_kept` is False where its raw reads were not kept."""

    row: RequestRow
    events: tuple[TimedEvent, ...]
    reads: int
    bytes_kept: bool
    headers: tuple[tuple[str, str], ...]


def replay_request(directory: Path, index: int) -> ReplayedRequest:
    """Replay one request from a trial's raw reads; CallerError where the trial has no such request."""
    reader = TrialReader(directory)
    reader.header()
    row = next((row for row in reader.rows() if row.index == index), None)
    if row is None:
        raise CallerError(
            f"{directory} has no request {index} that ended.",
            hint=f"It has {len(reader.rows())}, counted from 0.",
        )
    try:
        records = [record for record in reader.records() if record.request == index]
    except ValueError as error:
        raise EvidenceError(f"The raw reads of {directory} are damaged: {error}.") from error
    reads = [record for record in records if record.kind in (Kind.READ, Kind.BARE)]
    kept = bool(reads) and all(record.kind == Kind.READ for record in reads)
    response = ResponseReader()
    api = reader.header().contract.target.api
    events = _events(response, reads, api == "chat") if kept else []
    return ReplayedRequest(row, tuple(events), len(reads), kept, tuple(response.headers))


def _events(response: ResponseReader, reads: list[Record], chat: bool) -> list[TimedEvent]:
    events: list[TimedEvent] = []
    decoder: BodyDecoder | None = None
    t_ns = 0
    for record in reads:
        t_ns = record.arrival_ns
        try:
            body = response.feed(record.payload)
        except WireError as error:
            body = error.body
        if decoder is None and response.status is not None:
            decoder = BodyDecoder(
                response.content_type, response.content_encoding, "chat" if chat else "completions"
            )
        if decoder is not None and body:
            events += [TimedEvent(t_ns, event) for event in decoder.feed(body)]
    if decoder is not None:
        events += [TimedEvent(t_ns, event) for event in decoder.finish()]
    return events
