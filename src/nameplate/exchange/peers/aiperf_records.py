"""AIPerf's records, `profile_export.jsonl`: a line a request, with its times on the wall clock and its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.exchange.formats import AIPERF_RECORDS
from nameplate.exchange.opening import Line
from nameplate.exchange.peers.building import NS_OF, harmless, whole_number
from nameplate.exchange.peers.lines import Lines
from nameplate.exchange.peers.records import (
    GAPS_LIMIT,
    REQUESTS_LIMIT,
    TIME_LIMIT_NS,
    Read,
    row_of,
    timeline_of,
    with_opening,
)
from nameplate.exchange.peers.run import Counts, Load, Run
from nameplate.exchange.peers.sources import AIPERF, definitions_of
from nameplate.wire.outcome import Outcome


class Metadata(Struct):
    """Hold what a line says of its request; times are wall-clock nanoseconds."""

    benchmark_phase: str = "profiling"
    credit_issued_ns: int | None = None
    request_start_ns: int | None = None
    request_ack_ns: int | None = None
    request_end_ns: int | None = None
    was_cancelled: bool | None = None
    x_request_id: str | None = None
    worker_id: str | None = None


class Problem(Struct):
    """Hold why a request failed; a code is an HTTP status, or 499 for cancelled."""

    code: Any = None
    type: str | None = None
    message: str | None = None


class _Metric(Struct):
    value: float | list[float] | None = None
    unit: str | None = None


_TAGS = (
    "time_to_first_token",
    "time_to_first_output_token",
    "request_latency",
    "inter_chunk_latency",
    "output_sequence_length",
    "input_sequence_length",
)


class Records:
    """Collect the records of a file, line by line; what a line cannot tell is counted in `lines`."""

    def __init__(self) -> None:
        self.lines = Lines(AIPERF_RECORDS)
        self._rows: list[RequestRow] = []
        self._timelines: list[Timeline] = []
        self._gaps = 0
        self._workers: set[str] = set()

    def read(self, lines: Iterable[Line]) -> Read:
        """Read all lines; CallerError where none of them is a record."""
        for line in lines:
            if self.lines.take(line):
                self._take(line)
        self.lines.close(len(self._rows))
        kept = 0 < self._gaps <= GAPS_LIMIT
        rows = with_opening(self._rows)
        names = {"ttft", "e2e", "itl", "per_user", "output_tokens", "prompt_tokens"}
        run = Run(
            tool=AIPERF,
            load=Load(),
            counts=counts_of(rows),
            definitions=definitions_of(AIPERF, names | ({"chunk_gaps"} if kept else set())),
            checks=self.lines.checks(),
            notes=self._notes(),
        )
        return Read(run, rows, tuple(self._timelines) if kept else None)

    def _take(self, line: Line) -> None:
        assert line.value is not None
        try:
            metadata = msgspec.json.decode(line.value.get("metadata", msgspec.Raw(b"null")), type=Metadata)
            told = line.value.get("metrics", msgspec.Raw(b"{}"))
            metrics = msgspec.json.decode(told, type=dict[str, msgspec.Raw] | None) or {}
            values = {tag: msgspec.json.decode(metrics[tag], type=_Metric) for tag in _TAGS if tag in metrics}
            problem = msgspec.json.decode(line.value.get("error", msgspec.Raw(b"null")), type=Problem | None)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.lines.unreadable(line.number, str(error))
            return
        if not all(
            0 <= (time or 0) < TIME_LIMIT_NS for time in (metadata.request_start_ns, metadata.request_end_ns)
        ):
            self.lines.unreadable(line.number, "its times are no times")
            return
        if len(self._rows) >= REQUESTS_LIMIT:
            raise CallerError(f"The file has more than {REQUESTS_LIMIT:,} requests; no more can be read.")
        if metadata.worker_id:
            self._workers.add(metadata.worker_id[:80])
        self._add(metadata, values, problem)

    def _add(self, metadata: Metadata, values: Mapping[str, _Metric], problem: Problem | None) -> None:
        index = len(self._rows)
        sent = metadata.request_start_ns
        ttft, answer, e2e = (
            _ns(values.get(tag))
            for tag in ("time_to_first_token", "time_to_first_output_token", "request_latency")
        )
        gaps = _gaps(values.get("inter_chunk_latency"))
        outcome = outcome_of(metadata, problem)
        base = sent or 0
        # A request without a stream has a latency and no first token.
        last = base + e2e if e2e is not None and ttft is not None else None
        row = row_of(
            index,
            phase="warmup" if metadata.benchmark_phase == "warmup" else "steady",
            sent_ns=base,
            first_ns=base + ttft if ttft is not None else None,
            answer_ns=base + answer if answer is not None else None,
            last_ns=last,
            end_ns=metadata.request_end_ns if metadata.request_end_ns is not None else last,
            outcome=outcome,
            http_status=status_of(problem),
            error=said_of(problem),
            prompt_tokens=_count(values.get("input_sequence_length")),
            output_tokens=_count(values.get("output_sequence_length")),
            events=len(gaps) + 1 if ttft is not None else 0,
            longest_gap_ns=max(gaps, default=None),
        )
        self._rows.append(row)
        self._gaps += len(gaps)
        if gaps and row.first_output_ns is not None and self._gaps <= GAPS_LIMIT:
            self._timelines.append(timeline_of(index, row.first_output_ns, gaps))

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self._gaps > GAPS_LIMIT:
            notes.append(f"It lists {self._gaps:,} gaps; more than {GAPS_LIMIT:,} are not looked at.")
        if any(row.sent_ns == 0 for row in self._rows):
            notes.append("Some records do not say when their request started.")
        return tuple(notes)


def counts_of(rows: Iterable[RequestRow]) -> Counts:
    """Count what became of the measured requests; those of the warm-up are left out."""
    every = list(rows)
    measured = [row for row in every if row.measured]
    ok = sum(row.outcome == Outcome.ok for row in measured)
    cancelled = sum(row.outcome == Outcome.cancelled for row in measured)
    return Counts(
        requests=len(measured),
        completed=ok,
        failed=len(measured) - ok - cancelled,
        cancelled=cancelled,
        left_out=len(every) - len(measured),
    )


def outcome_of(metadata: Metadata, problem: Problem | None) -> Outcome:
    """Name what became of a request by AIPerf's word alone."""
    if problem is None:
        return Outcome.cancelled if metadata.was_cancelled else Outcome.ok
    kind = (problem.type or "").lower()
    if metadata.was_cancelled or problem.code == 499 or "cancel" in kind:
        return Outcome.cancelled
    if "timeout" in kind:
        return Outcome.timed_out_total
    if "connector" in kind or "refused" in kind:
        return Outcome.connect_failed
    if "disconnect" in kind or "reset" in kind:
        return Outcome.reset
    return Outcome.http_error if (status_of(problem) or 0) >= 300 else Outcome.stream_error


def status_of(problem: Problem | None) -> int | None:
    code = problem.code if problem is not None else None
    return (
        code
        if isinstance(code, int) and not isinstance(code, bool) and 100 <= code < 600 and code != 499
        else None
    )


def said_of(problem: Problem | None) -> str | None:
    """Return an error's words, bounded and without keys."""
    if problem is None:
        return None
    words = " ".join(str(word) for word in (problem.code, problem.type, problem.message) if word is not None)
    return harmless(words)[:200] or "an error without words"


def _ns(metric: _Metric | None) -> int | None:
    if metric is None or not isinstance(metric.value, int | float):
        return None
    factor = NS_OF.get(metric.unit or "ms")
    if factor is None or not 0 <= metric.value * factor < TIME_LIMIT_NS:
        return None
    return round(metric.value * factor)


def _gaps(metric: _Metric | None) -> list[int]:
    if metric is None or not isinstance(metric.value, list):
        return []
    factor = NS_OF.get(metric.unit or "ms")
    if factor is None:
        return []
    return [round(gap * factor) for gap in metric.value if 0 <= gap * factor < TIME_LIMIT_NS]


def _count(metric: _Metric | None) -> int | None:
    return (
        whole_number(metric.value) if metric is not None and isinstance(metric.value, int | float) else None
    )
