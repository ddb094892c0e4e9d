"""What a server's own log says of a cell, in one form for every server whose log is known, and our cell beside it.

Times are CLOCK_MONOTONIC of one machine, so the log and the evidence share one clock: what the log says of a window is
taken between the same two moments as the evidence's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.cell import Cell
from nameplate.measure.held import Held, held_of
from nameplate.measure.result import decode
from nameplate.statistics.percentile import percentile

# The ramp's first request in the log is received after ours was sent; clocks are the same, so this is only rounding.
ROUNDING_NS = 1_000_000


class Served(Struct, frozen=True):
    """Hold one streamed request by the server's log: when each chunk's write returned, and its tokens."""

    received_ns: int
    ended_ns: int | None
    times_ns: Sequence[int]
    tokens: Sequence[int]

    def part(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """Return the range of chunks that were sent within [begin, end)."""
        return bisect_left(self.times_ns, begin_ns), bisect_left(self.times_ns, end_ns)


class Log(Struct, frozen=True):
    """Hold a server's log: its streamed requests by arrival, and how many ran from when on, if it says so."""

    requests: Sequence[Served]
    ran: Sequence[tuple[int, int]] = ()

    def tokens(self, begin_ns: int, end_ns: int) -> int:
        """Count the tokens sent within [begin, end)."""
        total = 0
        for request in self.requests:
            first, last = request.part(begin_ns, end_ns)
            total += sum(request.tokens[first:last])
        return total

    def chunks(self, begin_ns: int, end_ns: int) -> int:
        return sum(last - first for first, last in (r.part(begin_ns, end_ns) for r in self.requests))

    def itls_ns(self, begin_ns: int, end_ns: int) -> list[float]:
        """Return (last - first chunk) / tokens after the first, of each request's part within [begin, end)."""
        found = []
        for request in self.requests:
            first, last = request.part(begin_ns, end_ns)
            later = sum(request.tokens[first + 1 : last])
            if later:
                found.append((request.times_ns[last - 1] - request.times_ns[first]) / later)
        return found

    def received(self, begin_ns: int, end_ns: int) -> list[Served]:
        return [request for request in self.requests if begin_ns <= request.received_ns < end_ns]

    def in_flight(self, begin_ns: int, end_ns: int) -> float:
        """Return the time-average of requests between receipt and last write."""
        total = 0
        for request in self.requests:
            end = end_ns if request.ended_ns is None else request.ended_ns
            total += max(0, min(end, end_ns) - max(request.received_ns, begin_ns))
        return total / (end_ns - begin_ns)

    def full_ns(self, opening: Sequence[Served], streams: int, before_ns: int) -> int:
        """Return since when, until `before_ns`, all of `opening` had produced and no more than `streams` ran.

        Fewer run only while a stream is between two of its requests.
        """
        full_ns = max(request.times_ns[0] for request in opening)
        following = [*self.ran[1:], (before_ns, 0)][: len(self.ran)]
        for (t_ns, count), (next_ns, _) in zip(self.ran, following, strict=True):
            if t_ns < before_ns and count > streams:
                full_ns = max(full_ns, min(next_ns, before_ns))
        return full_ns


def metronome_log(data: bytes) -> Log:
    """Read the metronome's log."""
    about, *rows = (msgspec.json.decode(line) for line in data.splitlines())
    size = about["chunk_tokens"]
    return _log(_of_metronome(row, size) for row in rows if row["events_ns"])


def own_log(data: bytes) -> Log:
    """Read the log of `bench.server`."""
    rows: list[dict[str, Any]] = [msgspec.json.decode(line) for line in data.splitlines()]
    served = (
        Served(row["received_ns"], row["ended_ns"], row["times_ns"], row["tokens"])
        for row in rows
        if row["kind"] == "request" and row["stream"] and row["times_ns"]
    )
    (ran,) = (row["from"] for row in rows if row["kind"] == "running")
    return _log(served, [(t_ns, count) for t_ns, count in ran])


def _of_metronome(row: dict[str, Any], size: int) -> Served:
    times = [row["received_ns"] + since_ns for since_ns in row["events_ns"]]
    tokens = [min(size, row["tokens"] - size * at) for at in range(len(times))]
    return Served(row["received_ns"], times[-1], times, tokens)


def _log(served: Iterable[Served], ran: Sequence[tuple[int, int]] = ()) -> Log:
    return Log(sorted(served, key=lambda request: request.received_ns), ran)


class Pair(Struct, frozen=True):
    """Hold one figure twice: ours, and the log's."""

    ours: float
    log: float

    @property
    def error(self) -> float:
        """Return (ours - log) / log."""
        return (self.ours - self.log) / self.log if self.log else math.inf if self.ours else 0.0

    @property
    def off(self) -> float:
        return self.ours - self.log


class CellCheck(Struct, frozen=True, kw_only=True):
    """Hold one cell beside the log; times in nanoseconds.

    `ready_after_ns` is how long after all streams had produced and exactly ours ran, by the log, the window began.
    `counter` holds the server's own counter between two samples against its log between them, and `counted` our tokens
    between them against the log's. `cpu_share` is the load process's CPU time over the load's wall time.
    """

    streams: int
    status: str
    reason: str
    notes: tuple[str, ...]
    window_ns: int
    tokens: Pair
    itl_p50: Pair
    itl_p99: Pair
    per_user_p50: Pair
    tokens_per_chunk: Pair | None
    ttft_p50: Pair
    ttft_p99: Pair
    ready_after_ns: int
    in_flight: Pair
    restarts: Pair
    counter: Pair | None
    counted: Pair | None
    estimated: bool
    itl_censored: int
    gap_max_ns: float | None
    cpu_share: float
    lateness: str

    @property
    def within(self) -> bool:
        """Say whether the tokens are within 0.5%, or one chunk a stream at the window's edges, of the log's."""
        return abs(self.tokens.error) <= 0.005 or abs(self.tokens.off) <= self.streams


def check_cell(directory: Path, log: Log) -> CellCheck:
    """Compare one cell's trial with its server's log; ValueError where it has no window."""
    result = decode((directory / layout.RESULT).read_bytes())
    reader = TrialReader(directory)
    held = held_of(reader.journal())
    assert result.speed is not None and result.speed.cell is not None
    cell, verdict = result.speed.cell, result.speed.verdict
    if held is None or held.begin_ns is None or held.end_ns is None or cell.window is None:
        raise ValueError(f"{directory.name} has no window: {verdict.status}, {verdict.reason}")
    window = (held.begin_ns, held.end_ns)
    rows = [row for row in reader.rows() if row.phase == "opening" and row.sent_ns is not None]
    sent = [row.sent_ns for row in rows if row.sent_ns is not None]
    opening = log.received(min(sent) - ROUNDING_NS, held.end_ns)[: cell.streams]
    ttfts = [row.ttft_ns for row in rows if row.ttft_ns is not None]
    true_ttfts = [request.times_ns[0] - request.received_ns for request in opening]
    itls = log.itls_ns(*window)
    counter = cell.counter
    between = log.tokens(counter.begin_ns, counter.end_ns) if counter else 0
    ended = next(entry for entry in reader.journal() if entry.what == "load_ended")
    cpu_s = float(ended.detail["cpu_s"]) - float(ended.detail["startup_cpu_s"])
    late = next((gate.detail for gate in result.gates if gate.gate == "client_lateness"), "")
    return CellCheck(
        streams=cell.streams,
        status=verdict.status.value,
        reason=verdict.reason,
        notes=verdict.notes,
        window_ns=cell.window.length_ns,
        tokens=Pair(cell.tokens.tokens if cell.tokens else 0.0, log.tokens(*window)),
        itl_p50=_quantile(cell.itl.p50, itls, 50.0),
        itl_p99=_quantile(cell.itl.p99, itls, 99.0),
        per_user_p50=_quantile(cell.per_user.p50, [1e9 / itl for itl in itls], 50.0),
        tokens_per_chunk=_per_chunk(cell, log, held),
        ttft_p50=_quantile(percentile(sorted(ttfts), 50.0), true_ttfts, 50.0),
        ttft_p99=_quantile(percentile(sorted(ttfts), 99.0), true_ttfts, 99.0),
        ready_after_ns=held.begin_ns - log.full_ns(opening, cell.streams, held.begin_ns),
        in_flight=Pair(cell.in_flight or 0.0, log.in_flight(*window)),
        restarts=Pair(cell.restarts, len(log.received(*window))),
        counter=Pair(counter.server_tokens, between) if counter else None,
        counted=Pair(counter.our_tokens, between) if counter else None,
        estimated=bool(cell.tokens and cell.tokens.estimated),
        itl_censored=cell.itl.censored,
        gap_max_ns=cell.chunk_gaps.max,
        cpu_share=cpu_s / ((ended.t_ns - held.streams_began_ns) / 1e9),
        lateness=late,
    )


def _per_chunk(cell: Cell, log: Log, held: Held) -> Pair | None:
    if cell.tokens_per_chunk is None or held.begin_ns is None or held.end_ns is None:
        return None
    chunks = log.chunks(held.begin_ns, held.end_ns)
    return Pair(cell.tokens_per_chunk, log.tokens(held.begin_ns, held.end_ns) / chunks)


def _quantile(ours: float | None, true: Sequence[float], p: float) -> Pair:
    return Pair(math.nan if ours is None else ours, percentile(sorted(true), p) if true else math.nan)
