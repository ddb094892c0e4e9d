"""AIPerf's raw export, `profile_export_raw.jsonl`: the events of each answer, read by our own wire code.

Its events carry the monotonic clock of the worker that read them; a row's times are shifted to the wall clock of its
request's start, so that requests of several workers stand on one axis and nothing within a request changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.exchange.formats import AIPERF_RAW
from nameplate.exchange.opening import Line
from nameplate.exchange.peers.aiperf_records import (
    Metadata,
    Problem,
    counts_of,
    outcome_of,
    said_of,
    status_of,
)
from nameplate.exchange.peers.building import harmless, text_in
from nameplate.exchange.peers.lines import Lines
from nameplate.exchange.peers.records import GAPS_LIMIT, REQUESTS_LIMIT, TIME_LIMIT_NS, Read, with_opening
from nameplate.exchange.peers.run import Check, Run
from nameplate.exchange.peers.sources import AIPERF, USAGE, definitions_of, replaced
from nameplate.wire.outcome import Ending, Outcome
from nameplate.wire.tally import Tally

# A clock pair that is further off than this names another request, or a clock that was set.
CLOCKS_AGREE_NS = 1_000_000_000
_HEAD_CHARS = 64
_SHIFT_LIMIT = TIME_LIMIT_NS

_ENDINGS = {
    Outcome.cancelled: Ending.cancelled,
    Outcome.timed_out_total: Ending.deadline_total,
    Outcome.connect_failed: Ending.connect_failed,
    Outcome.reset: Ending.eof,
}


class _Packet(Struct):
    name: str = ""
    value: str | None = None


class _Response(Struct):
    perf_ns: int
    packets: list[_Packet] | None = None
    text: str | None = None
    content_type: str | None = None


class _Record(Struct):
    metadata: Metadata
    start_perf_ns: int
    responses: list[_Response]
    payload: dict[str, msgspec.Raw] | None = None
    status: int | None = None
    error: Problem | None = None


class RawRecords:
    """Collect a raw export line by line: rows as our own client would have written them, and what does not fit."""

    def __init__(self) -> None:
        self.lines = Lines(AIPERF_RAW)
        self.models: set[str] = set()
        self._rows: list[RequestRow] = []
        self._timelines: list[Timeline] = []
        self._events = 0
        self._backwards = 0
        self._clocks = 0
        self._lost_ends = 0
        self._exact_length = 0
        self._called_ok = 0
        self._disputed: dict[str, int] = {}

    def read(self, lines: Iterable[Line]) -> Read:
        """Read all lines; CallerError where none of them is a record."""
        for line in lines:
            if self.lines.take(line):
                self._take(line)
        self.lines.close(len(self._rows))
        rows = with_opening(self._rows)
        names = {"ttft", "first_answer", "e2e", "itl", "per_user", "chunk_gaps"}
        usage = all(row.output_tokens_source == "usage" for row in rows if row.outcome == Outcome.ok)
        definitions = definitions_of(AIPERF, names)
        run = Run(
            tool=AIPERF,
            model=", ".join(sorted(self.models)[:4]) or None,
            counts=counts_of(rows),
            definitions=replaced(definitions, tokens=USAGE) if usage else definitions,
            checks=(*self.lines.checks(), *self._checks()),
            notes=self._notes(),
        )
        timelines = tuple(self._timelines) if 0 < self._events <= GAPS_LIMIT else None
        exact = self._exact_length == len(self._rows)
        return Read(run, rows, timelines, raw=True, exact_lengths=exact)

    def _take(self, line: Line) -> None:
        assert line.value is not None
        try:
            values = {
                name: msgspec.json.decode(line.value[name], type=kind)
                for name, kind in _FIELDS.items()
                if name in line.value
            }
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.lines.unreadable(line.number, str(error))
            return
        if len(self._rows) >= REQUESTS_LIMIT:
            raise CallerError(f"The file has more than {REQUESTS_LIMIT:,} requests; no more can be read.")
        record = _Record(**values)
        times = (record.start_perf_ns, *(response.perf_ns for response in record.responses))
        if not all(0 <= time < TIME_LIMIT_NS for time in times):
            self.lines.unreadable(line.number, "a time of it is none")
            return
        self._add(record)

    def _add(self, record: _Record) -> None:
        index, metadata, payload = len(self._rows), record.metadata, record.payload or {}
        started = metadata.request_start_ns
        shift = started - record.start_perf_ns if started is not None and 0 <= started < _SHIFT_LIMIT else 0
        sent = record.start_perf_ns + shift
        tally = self._tally(record, payload, shift)
        asked, exact = _asked(payload)
        self._exact_length += exact
        model = text_in({"model": _plain(payload.get("model"))}, "model")
        if model and len(self.models) < 8:
            self.models.add(model)
        whole, head = _prompt(payload)
        scheduled = metadata.credit_issued_ns
        row = RequestRow(
            index=index,
            phase="warmup" if metadata.benchmark_phase == "warmup" else "steady",
            class_="imported",
            slot=None,
            scheduled_ns=scheduled if scheduled is not None and scheduled <= sent else sent,
            sent_ns=sent,
            asked_output_tokens=asked or 0,
            prompt_sha256=whole,
            prompt_head_sha256=head,
        ).told(tally)
        self._rows.append(row)
        self._compare(record, row)
        times, tokens = tally.output_times_ns, tally.output_event_tokens
        self._events += len(times or ())
        if times and tokens is not None and self._events <= GAPS_LIMIT:
            self._timelines.append(Timeline.of(index, times, tokens))

    def _tally(self, record: _Record, payload: Mapping[str, msgspec.Raw], shift: int) -> Tally:
        """Fold an answer as our own client does: by the bytes that its events were made of."""
        streamed = _plain(payload.get("stream")) is True or any(r.packets for r in record.responses)
        tally = Tally("chat" if "messages" in payload else "completions", streamed, keep_gaps=True)
        status = record.status if record.status is not None else status_of(record.error)
        if status is None and record.responses:
            status = 200
        ending = _ending(record, status)
        if status is not None:
            first = record.responses[0] if record.responses else None
            sse = first is None or first.packets is not None
            tally.headers(status, "text/event-stream" if sse else (first.content_type or "") if first else "")
        last = record.start_perf_ns
        for response in record.responses:
            self._backwards += response.perf_ns < last
            last = max(last, response.perf_ns)
            tally.body(last + shift, _bytes(response))
        if not record.responses and record.metadata.request_end_ns is not None:
            last = max(last, record.metadata.request_end_ns - shift)
        tally.end(last + shift, ending, said_of(record.error) or "")
        return tally

    def _compare(self, record: _Record, row: RequestRow) -> None:
        """Count where the record's own word on the request, or its other clock, disagrees."""
        metadata = record.metadata
        if (
            metadata.request_end_ns is not None
            and row.end_ns is not None
            and metadata.request_start_ns is not None
        ):
            self._clocks += abs(metadata.request_end_ns - row.end_ns) > CLOCKS_AGREE_NS
        if not row.measured or outcome_of(metadata, record.error) is not Outcome.ok:
            return
        self._called_ok += 1
        if row.outcome != Outcome.ok:
            said = row.error or row.outcome
            if len(self._disputed) < 8 or said in self._disputed:
                self._disputed[said] = self._disputed.get(said, 0) + 1
            self._lost_ends += 1

    def _checks(self) -> tuple[Check, ...]:
        checks = [
            _check("times", self._backwards, "events came before the one before them", "times never go back"),
            _check(
                "clocks",
                self._clocks,
                "requests end more than a second apart by the two clocks of their record",
                "both clocks tell the same of every request",
            ),
        ]
        if self._lost_ends:
            words = "; ".join(f"{count} x {harmless(said)}" for said, count in self._disputed.items())
            said = f"{self._lost_ends} of {self._called_ok} requests that it counts as successes did not end well"
            said += f": {words}"
            checks.append(Check("successes", "contradicted", said))
        else:
            said = f"all {self._called_ok} requests that it counts as successes ended well"
            checks.append(Check("successes", "holds", said))
        return tuple(checks)

    def _notes(self) -> tuple[str, ...]:
        notes = [
            "Times are those at which AIPerf's workers had read an event, not when it arrived at the machine."
        ]
        if self._events > GAPS_LIMIT:
            notes.append(f"It holds {self._events:,} events; gaps are not looked at above {GAPS_LIMIT:,}.")
        return tuple(notes)


_FIELDS: Mapping[str, Any] = {
    "metadata": Metadata,
    "start_perf_ns": int,
    "responses": list[_Response],
    "payload": dict[str, msgspec.Raw] | None,
    "status": int | None,
    "error": Problem | None,
}


def _check(name: str, wrong: int, bad: str, good: str) -> Check:
    return Check(name, "contradicted", f"{wrong:,} {bad}") if wrong else Check(name, "holds", good)


def _ending(record: _Record, status: int | None) -> Ending:
    """Return how the connection ended, as far as the record tells: without an error it ended well."""
    outcome = outcome_of(record.metadata, record.error)
    if outcome is Outcome.ok or (status is not None and status >= 300):
        return Ending.complete
    if outcome is Outcome.reset and not record.responses:
        return Ending.reset
    # An error of another kind ended a stream that had begun, or is what the stream itself said: the body tells.
    return _ENDINGS.get(outcome, Ending.eof)


def _bytes(response: _Response) -> bytes:
    """Return the bytes that an event was made of, as far as they mean anything."""
    if response.packets is None:
        return (response.text or "").encode("utf-8", "replace")
    lines = []
    for packet in response.packets:
        name = "" if packet.name == "comment" else packet.name
        for part in (packet.value or "").split("\n"):
            lines.append(f"{name}: {part}\n")
    return ("".join(lines) + "\n").encode("utf-8", "replace")


def _asked(payload: Mapping[str, msgspec.Raw]) -> tuple[int | None, bool]:
    """Return how many tokens a request asked for, and whether it must get exactly as many."""
    asked = next(
        (
            value
            for name in ("max_completion_tokens", "max_tokens")
            if isinstance(value := _plain(payload.get(name)), int)
            and not isinstance(value, bool)
            and 0 < value < 1 << 40
        ),
        None,
    )
    least = _plain(payload.get("min_tokens"))
    return asked, asked is not None and (_plain(payload.get("ignore_eos")) is True or least == asked)


def _prompt(payload: Mapping[str, msgspec.Raw]) -> tuple[str, str]:
    """Return the digests of a prompt and of its user text's first characters."""
    raw = payload.get("messages") or payload.get("prompt") or payload.get("input")
    if raw is None:
        return "", ""
    value = _plain(raw)
    text = value
    if isinstance(value, list):
        users = [entry for entry in value if isinstance(entry, dict) and entry.get("role") == "user"]
        text = users[-1].get("content") if users else None
        if isinstance(text, list):
            text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    head = text[:_HEAD_CHARS] if isinstance(text, str) else ""
    return hashlib.sha256(bytes(raw)).hexdigest(), hashlib.sha256(head.encode("utf-8", "replace")).hexdigest()


def _plain(raw: msgspec.Raw | None) -> Any:
    try:
        return None if raw is None else msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
