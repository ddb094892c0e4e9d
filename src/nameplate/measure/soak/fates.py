"""What became of requests that have no row: read off the wire's history, as far back as they reach and no further.

Most of the history is of requests that ended, and a soak has gigabytes of it. Frames of a file stand in the order of
their time, so the first one that can matter is found by bisection, and only what follows is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from nameplate import zstd
from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.frames import frames_of
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.records import HEADER, LAST_KIND, Kind, Record
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.rebuild import Exchange, rebuilt_from
from nameplate.measure.soak.segment import Fate, Unfinished
from nameplate.measure.soak.tail import decoded
from nameplate.schedule.stage import Requests

# An index is given away when a request is due, and its connection may take this long to open.
SLACK_NS = 60 * 10**9


class Left(Struct, frozen=True):
    """Hold one request without a row, as its records tell: `last_byte_ns` is when anything of an answer last came."""

    row: RequestRow
    timeline: Timeline
    whole: bool
    last_byte_ns: int | None
    reads: int
    wire_bytes: int


class Behind(Struct, frozen=True):
    """Hold all requests without a row: those sent, how many were due and never sent, the last record's moment."""

    left: tuple[Left, ...]
    never_sent: int
    last_ns: int | None
    torn: tuple[str, ...]


def left_behind(
    directory: Path, header: TrialHeader, known: Callable[[int], bool], since_ns: int | None
) -> Behind:
    """Find the measured requests that are not `known`; before `since_ns` every request that was sent is."""
    requests = Requests(header.plan)
    paths = layout.parts(directory, layout.READS)
    # Workers' files were joined one after the other: then time starts again in the middle.
    joined = header.workers > 1 and any(path.name == layout.READS for path in paths)
    start_ns = None if joined or since_ns is None else since_ns - SLACK_NS
    found = _scan(paths, header, requests, known, start_ns)
    if start_ns is not None and any(left.row.sent_ns is None for left in found.left):
        # Its send lies before what was looked at: the order of indices told too little.
        found = _scan(paths, header, requests, known, None)
    return found


def unfinished_of(
    segment: str, row: RequestRow, until_ns: int, wall_offset_ns: int, left: Left | None = None
) -> Unfinished:
    """Name one request that did not come to an end of its own, from its row or from what its records tell."""
    whole = left is None or left.whole
    fate: Fate
    if row.first_output_ns is not None:
        fate = "decoding"
    elif row.http_status is not None or (left is not None and left.last_byte_ns is not None):
        fate = "accepted"
    else:
        fate = "queued"
    until = row.end_ns if row.end_ns is not None else until_ns
    return Unfinished(
        segment=segment,
        index=row.index,
        fate=fate,
        outcome=row.outcome,
        scheduled_ns=row.scheduled_ns,
        sent_ns=row.sent_ns,
        sent_wall_ns=None if row.sent_ns is None else row.sent_ns + wall_offset_ns,
        watched_until_ns=until,
        waited_ns=None if row.sent_ns is None else max(0, until - row.sent_ns),
        first_output_ns=row.first_output_ns,
        last_output_ns=row.last_output_ns,
        last_byte_ns=left.last_byte_ns if left is not None else row.last_output_ns,
        reads=left.reads if left is not None else None,
        wire_bytes=left.wire_bytes if left is not None else None,
        tokens=(row.output_tokens if row.output_tokens is not None else row.output_events) if whole else None,
        counted=row.output_tokens_source == "usage",
        bytes_kept=whole,
        rebuilt=left is not None,
    )


def _scan(
    paths: list[Path],
    header: TrialHeader,
    requests: Requests,
    known: Callable[[int], bool],
    start_ns: int | None,
) -> Behind:
    exchanges: dict[int, Exchange] = {}
    came: dict[int, tuple[int, int, int]] = {}
    torn: list[str] = []
    last_ns: int | None = None
    for path in paths:
        for record in _records(path, known, start_ns, torn):
            last_ns = record.t_ns if last_ns is None else max(last_ns, record.t_ns)
            index = record.request
            if index < 0 or known(index) or not requests.measured(index):
                continue
            exchange = exchanges.get(index)
            if exchange is None:
                exchange = exchanges[index] = Exchange(index, header.contract.target.api)
            exchange.take(record)
            if record.kind in (Kind.READ, Kind.BARE):
                _, reads, size = came.get(index, (0, 0, 0))
                came[index] = record.arrival_ns, reads + 1, size + record.size
    left = []
    never_sent = 0
    for index in sorted(exchanges):
        exchange = exchanges[index]
        if exchange.sent_ns is None and not exchange.ended and index not in came:
            never_sent += 1
            continue
        exchange.finish()
        held = rebuilt_from(exchange, requests, {}, {})
        last_byte_ns, reads, size = came.get(index, (None, 0, 0))
        left.append(Left(held.row, held.timeline, held.whole, last_byte_ns, reads, size))
    return Behind(tuple(left), never_sent, last_ns, tuple(torn))


def _records(
    path: Path, known: Callable[[int], bool], start_ns: int | None, torn: list[str]
) -> Iterator[Record]:
    """Yield the records of requests that are not known, and of each frame its last one."""
    frames = [(begin, end) for begin, end, _ in frames_of(path)]
    size = path.stat().st_size
    if size > (frames[-1][1] if frames else 0):
        torn.append(f"{path.name} ends inside the frame at byte {frames[-1][1] if frames else 0}")
    first = 0 if start_ns is None else _first_frame(path, [begin for begin, _ in frames], start_ns)
    if first >= len(frames):
        return
    for begin, _, packed in frames_of(path, frames[first][0]):
        yield from _wanted(decoded(packed, path, begin), known, path)


def _first_frame(path: Path, begins: list[int], start_ns: int) -> int:
    """Return the last frame whose first record is at or before a moment: what was sent since lies there or later."""
    low, high = 0, len(begins)
    while low < high:
        middle = (low + high) // 2
        if _first_time(path, begins[middle]) <= start_ns:
            low = middle + 1
        else:
            high = middle
    return max(0, low - 1)


def _first_time(path: Path, begin: int) -> int:
    """Return the moment of the first record of the frame at a byte; EvidenceError where it holds none."""
    decoder = zstd.ZstdDecompressor()
    head = b""
    with path.open("rb") as stream:
        stream.seek(begin)
        while len(head) < HEADER.size and not decoder.eof:
            data = stream.read(1 << 17) if decoder.needs_input else b""
            try:
                head += decoder.decompress(data, HEADER.size - len(head))
            except zstd.ZstdError as error:
                raise EvidenceError(
                    f"{path} is damaged in the frame that begins at byte {begin}: {error}."
                ) from error
    if len(head) < HEADER.size:
        raise EvidenceError(f"{path} holds no record in the frame that begins at byte {begin}.")
    moment: int = HEADER.unpack_from(head)[2]
    return moment


def _wanted(frame: bytes, known: Callable[[int], bool], path: Path) -> Iterator[Record]:
    at, end, size_of_header = 0, len(frame), HEADER.size
    unpack_from, bare = HEADER.unpack_from, int(Kind.BARE)
    sure: set[int] = set()
    while at < end:
        if at + size_of_header > end:
            raise EvidenceError(f"{path} holds what is no evidence: a record's header is cut.")
        kind, request, t_ns, delay_ns, since_empty_ns, size = unpack_from(frame, at)
        at += size_of_header
        held = 0 if kind == bare else size
        if not 1 <= kind <= LAST_KIND or at + held > end:
            raise EvidenceError(f"{path} holds what is no evidence: a record is cut or of an unknown kind.")
        last = at + held == end
        if request in sure or known(request):
            sure.add(request)
            if not last:
                at += held
                continue
        yield Record(kind, request, t_ns, delay_ns, since_empty_ns, size, frame[at : at + held])
        at += held
