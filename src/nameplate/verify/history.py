"""The wire's history in one pass: every request replayed into its row, and the records themselves audited."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.frames import Torn, read_frames
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.records import HEADER, LAST_KIND, Kind, Record
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.from_disk import ReadTotals
from nameplate.measure.rebuild import Exchange, PromptFacts, Rebuilt, rebuilt_from
from nameplate.schedule.stage import Requests

# Records compress some 15:1, those of reads that were not kept some 30:1. What expands further is made to, or a server
# repeated one byte for minutes: either way it is given up on, and is then unverified and not false.
EXPANSION_LIMIT = 200
EXPANSION_FLOOR_BYTES = 64 << 20
# One machine has some 28,000 ports to one server: more requests at once were never in flight.
OPEN_LIMIT = 50_000
# The kernel's clock and ours are tied together to within 0.1 ms; an answer before its request is no such error.
EARLY_NS = 1_000_000
MOST_FAULTS = 1000
# No record of ours is ever misplaced; after this many the rest is not worth anybody's time.
MOST_MISPLACED = 10_000

_READ, _BARE = int(Kind.READ), int(Kind.BARE)
_SCHEDULED, _SENT, _BODY_SENT = int(Kind.SCHEDULED), int(Kind.SENT), int(Kind.BODY_SENT)


class History(Struct):
    """Hold what the raw reads give: rows and timelines by index, and what the records tell beside them.

    `bare` are the requests whose bytes were not kept; their rows hold only what times alone can tell. `faults` say
    what no sound history holds, `torn` what was dropped while reading, `given_up` why the rest was not replayed.
    """

    rows: dict[int, RequestRow] = field(default_factory=dict)
    timelines: dict[int, Timeline] = field(default_factory=dict)
    bare: set[int] = field(default_factory=set)
    totals: ReadTotals = field(default_factory=ReadTotals)
    records: int = 0
    raw_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    given_up: str = ""

    def fault(self, said: str) -> None:
        """Note a fault; beyond a thousand, the number of them says nothing new."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(said)


class Ended(Protocol):
    """Take each request as it is rebuilt, and know which there were."""

    def __contains__(self, index: object, /) -> bool: ...

    def __len__(self) -> int: ...

    def take(self, rebuilt: Rebuilt) -> None: ...


class _Held:
    """Keep all rebuilt requests in the history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def __contains__(self, index: object) -> bool:
        return index in self._history.rows

    def __len__(self) -> int:
        return len(self._history.rows)

    def take(self, rebuilt: Rebuilt) -> None:
        history, index = self._history, rebuilt.row.index
        history.rows[index] = rebuilt.row
        history.timelines[index] = rebuilt.timeline
        if not rebuilt.whole:
            history.bare.add(index)


class Share(Struct, frozen=True):
    """Name the requests that one process replays: those with `index % shares == share`."""

    share: int = 0
    shares: int = 1


class _Replayed(Exchange):
    """Replay one request, with what the audit must know of it."""

    def __init__(self, index: int, header: TrialHeader, measured: bool, kept: bool) -> None:
        super().__init__(index, header.contract.target.api)
        self.measured = measured
        self.kept = kept


def replay_share(
    directory: Path,
    header: TrialHeader,
    prompts: Mapping[int, PromptFacts],
    recorded: Mapping[int, RequestRow],
    share: Share,
) -> History:
    """Replay one share of the raw reads; what is wrong with them is in the history's faults, and nothing is raised."""
    return _audited(directory, _Audit(header, prompts, recorded, share))


def replay_each(
    directory: Path,
    header: TrialHeader,
    prompts: Mapping[int, PromptFacts],
    recorded: Mapping[int, RequestRow],
    ended: Ended,
    keeps: Callable[[int, int], bool],
    share: Share,
) -> History:
    """Replay raw reads of any length: each request goes to `ended`, and of the reads' lateness nothing is held.

    `keeps(index, scheduled_ns)` says whether the bytes of a request are kept. The history has no rows.
    """
    return _audited(directory, _Audit(header, prompts, recorded, share, ended, keeps))


def _forget(_value: int) -> None:
    pass


def _audited(directory: Path, audit: _Audit) -> History:
    try:
        for frame in _bounded_frames(directory, audit.history):
            audit.take(frame)
    except _TooLong as end:
        audit.history.given_up = str(end)
    except EvidenceError as error:
        audit.history.fault(str(error))
    audit.finish()
    return audit.history


class _TooLong(Exception):  # noqa: N818 - says where replaying ends, and is no fault
    pass


def _bounded_frames(directory: Path, history: History) -> Iterator[bytes]:
    for path in layout.parts(directory, layout.READS):
        limit = EXPANSION_FLOOR_BYTES + EXPANSION_LIMIT * path.stat().st_size
        try:
            for frame in read_frames(path):
                limit -= len(frame)
                if limit < 0:
                    raise _TooLong(
                        f"{path.name} expands to over {EXPANSION_LIMIT} times its size, and is not replayed further"
                    )
                yield frame
        except Torn as torn:
            history.torn.append(str(torn))


class _Audit:
    def __init__(
        self,
        header: TrialHeader,
        prompts: Mapping[int, PromptFacts],
        recorded: Mapping[int, RequestRow],
        share: Share,
        ended: Ended | None = None,
        keeps: Callable[[int, int], bool] | None = None,
    ) -> None:
        self.history = History()
        self._ended = ended if ended is not None else _Held(self.history)
        totals, every = self.history.totals, ended is not None
        self._since = _forget if every else totals.since_empty_ns.append
        self._doubt = _forget if every else totals.arrival_doubt_ns.append
        self._keeps = keeps if keeps is not None else lambda index, _t_ns: header.keeping.keeps(index)
        self._share = share
        self._header = header
        self._requests = Requests(header.plan)
        self._prompts = prompts
        self._recorded = recorded
        self._open: dict[int, _Replayed] = {}
        self._strays: set[int] = set()
        self._misplaced_records = 0

    def take(self, frame: bytes) -> None:
        """Replay one frame's records; EvidenceError where they cannot be told apart."""
        history, opened = self.history, self._open
        since_append, doubt_append = self._since, self._doubt
        unpack_from, head = HEADER.unpack_from, HEADER.size
        at, end = 0, len(frame)
        share, shares = self._share.share, self._share.shares
        count = user_stamped = t_ns = 0
        while at < end:
            if at + head > end:
                raise EvidenceError(f"{layout.READS}: a record's header is cut")
            kind, request, t_ns, delay_ns, since_ns, size = unpack_from(frame, at)
            at += head
            count += 1
            if request % shares != share:
                # Another process's; only its length matters here.
                if kind != _BARE:
                    at += size
                continue
            exchange = opened.get(request)
            if kind == _READ:
                stop = at + size
                if stop > end:
                    raise EvidenceError(f"{layout.READS}: a record's payload is cut")
                data = frame[at:stop]
                at = stop
                if exchange is None or exchange.sent_ns is None:
                    self._misplaced(request, kind)
                    continue
                if exchange.measured:
                    since_append(since_ns)
                    if delay_ns >= 0 and data.count(b"data:") <= 1:
                        doubt_append(0)
                    else:
                        doubt_append(since_ns)
                    if delay_ns < 0:
                        user_stamped += 1
                arrival_ns = t_ns - delay_ns if delay_ns > 0 else t_ns
                if (
                    t_ns < exchange.last_ns
                    or since_ns < 0
                    or delay_ns < -1
                    or arrival_ns + EARLY_NS < exchange.sent_ns
                    or not size
                ):
                    self._implausible(request, t_ns, exchange, arrival_ns, size)
                exchange.last_ns = t_ns
                exchange.read(arrival_ns, data)
                if exchange.ended:
                    self._close(exchange)
                continue
            if not 1 <= kind <= LAST_KIND:
                raise EvidenceError(f"{layout.READS}: unknown record kind {kind}")
            payload = b""
            if kind != _BARE:
                if at + size > end:
                    raise EvidenceError(f"{layout.READS}: a record's payload is cut")
                payload = frame[at : at + size]
                at += size
            self._other(Record(kind, request, t_ns, delay_ns, since_ns, size, payload), exchange)
        if at > end:
            raise EvidenceError(f"{layout.READS}: a record's payload is cut")
        history.records += count
        history.raw_bytes += end
        history.totals.user_stamped += user_stamped
        if count:
            history.totals.last_ns = t_ns

    def finish(self) -> None:
        """End what was still open when the records end."""
        for exchange in list(self._open.values()):
            exchange.finish()
            self._close(exchange)

    def _other(self, record: Record, exchange: _Replayed | None) -> None:
        kind, request = record.kind, record.request
        if kind == _SCHEDULED and exchange is None:
            exchange = self._begin(request, record.t_ns)
            if exchange is None:
                return
        elif exchange is None or kind == _SCHEDULED:
            self._misplaced(request, kind)
            return
        if kind != _SCHEDULED and record.t_ns < exchange.last_ns:
            self._implausible(request, record.t_ns, exchange, record.t_ns, 1)
        if (kind == _SENT and exchange.sent_ns is not None) or (
            kind == _BODY_SENT and exchange.body_sent_ns is not None
        ):
            self._misplaced(request, kind)
            return
        if kind == _BARE:
            self._bare(record, exchange)
        exchange.take(record)
        if exchange.ended:
            self._close(exchange)

    def _begin(self, request: int, t_ns: int) -> _Replayed | None:
        try:
            self._requests.phase(request)
        except KeyError:
            self._misplaced(request, _SCHEDULED)
            return None
        if request in self._ended:
            self._misplaced(request, _SCHEDULED)
            return None
        if len(self._open) >= OPEN_LIMIT or len(self._ended) > len(self._recorded) + OPEN_LIMIT:
            raise EvidenceError(f"{layout.READS}: more requests than can have been in flight or have a row")
        kept = self._keeps(request, t_ns)
        exchange = _Replayed(request, self._header, self._requests.measured(request), kept)
        self._open[request] = exchange
        return exchange

    def _bare(self, record: Record, exchange: _Replayed) -> None:
        totals = self.history.totals
        if exchange.measured:
            self._since(record.since_empty_ns)
            self._doubt(record.since_empty_ns)
            totals.user_stamped += record.delay_ns < 0
        if exchange.kept and exchange.whole:
            self.history.fault(
                f"bytes of request {record.request} are missing, and the header says that they are kept"
            )

    def _close(self, exchange: _Replayed) -> None:
        self._open.pop(exchange.index, None)
        rebuilt = rebuilt_from(exchange, self._requests, self._prompts, self._recorded)
        self._ended.take(rebuilt)

    def _misplaced(self, request: int, kind: int) -> None:
        """Say once a request that a record of it stands where none can."""
        self._misplaced_records += 1
        if self._misplaced_records > MOST_MISPLACED:
            raise EvidenceError(f"{layout.READS}: more than {MOST_MISPLACED} records stand where none can")
        if request in self._strays:
            return
        self._strays.add(request)
        name = Kind(kind).name
        if request in self._ended:
            where = "a second time" if kind == _SCHEDULED else "after its end"
        else:
            try:
                self._requests.phase(request)
                where = "before it was sent" if request in self._open else "before it was scheduled"
                if request in self._open and kind in (_SCHEDULED, _SENT, _BODY_SENT):
                    where = "a second time"
            except KeyError:
                where = "which the plan does not have"
        self.history.fault(f"a record {name} of request {request} {where}")

    def _implausible(self, request: int, t_ns: int, exchange: _Replayed, arrival_ns: int, size: int) -> None:
        if t_ns < exchange.last_ns:
            why = f"stands {exchange.last_ns - t_ns} ns before the one that it follows"
        elif not size:
            why = "is empty"
        elif exchange.sent_ns is not None and arrival_ns + EARLY_NS < exchange.sent_ns:
            why = "arrived before the request was sent"
        else:
            why = "has a negative delay"
        self.history.fault(f"a record of request {request} {why}")
