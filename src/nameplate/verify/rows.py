"""The recorded rows and timelines, field by field against those that the raw reads give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nameplate import __version__
from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.frames import Torn, read_frames
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline, unpack
from nameplate.schedule.stage import Requests
from nameplate.verify.history import EXPANSION_FLOOR_BYTES, EXPANSION_LIMIT, MOST_MISPLACED, History
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.names import Name
from nameplate.wire.outcome import Outcome

# Whose business each field of a row is; slot, connection and worker are known to the client alone.
_FIELDS: dict[Name, tuple[str, ...]] = {
    Name.times: (
        "scheduled_ns",
        "sent_ns",
        "body_sent_ns",
        "first_output_ns",
        "first_answer_ns",
        "second_output_ns",
        "last_output_ns",
        "finish_ns",
        "end_ns",
        "longest_gap_ns",
    ),
    Name.outcomes: ("outcome", "http_status", "error", "warnings"),
    Name.usage_and_finish: (
        "prompt_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "output_tokens",
        "output_tokens_source",
        "first_event_tokens",
        "finish_reason",
    ),
    Name.outputs: ("output_events", "output_bytes", "output_sha256"),
    Name.loops: ("longest_channel_chars", "loop"),
    Name.plan: ("phase", "class_"),
}
_WITHOUT_BYTES = ("scheduled_ns", "sent_ns", "body_sent_ns")
_OF_STREAMS = (Name.times, Name.outcomes, Name.usage_and_finish, Name.outputs, Name.loops, Name.timelines)


def by_index(rows: Iterable[RequestRow], ledger: Ledger) -> dict[int, RequestRow]:
    """Return rows by index; an index that occurs twice is a failure, and its first row counts."""
    found: dict[int, RequestRow] = {}
    for row in rows:
        if row.index in found:
            ledger.fail(Name.record_count, f"request {row.index} has two rows")
        found.setdefault(row.index, row)
    return found


def check_record_count(
    header: TrialHeader, recorded: Mapping[int, RequestRow], history: History, sealed: bool, ledger: Ledger
) -> None:
    """Hold the rows' indices against the plan and the raw reads."""
    name, requests, plan = Name.record_count, Requests(header.plan), header.plan
    for index in recorded:
        try:
            requests.stage(index)
        except KeyError:
            ledger.fail(name, f"request {index} has a row, and the plan has no such request")
            continue
        if index not in history.rows:
            ledger.fail(name, f"request {index} has a row, and no raw reads")
    missing = [index for index in history.rows if index not in recorded]
    if missing and not sealed:
        ledger.unverified(
            name, f"{len(missing)} requests have no row: the client ended before it was written"
        )
    elif missing and all(history.rows[index].outcome == Outcome.unfinished for index in missing):
        ledger.admit(name, f"{len(missing)} requests have no row: the client ended before them")
    else:
        for index in missing:
            ledger.fail(name, f"request {index} has raw reads, and no row")
    measured = sum(row.measured for row in recorded.values())
    said = f"{len(recorded)} rows, {measured} of {plan.requests} planned measured requests"
    ledger.close(name, said, len(recorded))


def check_rows(
    recorded: Mapping[int, RequestRow], history: History, ledger: Ledger, *, written_by: str
) -> None:
    """Compare each recorded row with its rebuilt one; what was not kept is unverified.

    `written_by` is the version that wrote the rows: what only a later one tells need not stand in them.
    """
    untold = 0
    for index, row in recorded.items():
        rebuilt = history.rows.get(index)
        if rebuilt is not None and rebuilt != row:
            untold += compare_row(row, rebuilt, index in history.bare, ledger, written_by=written_by)
    for name in _OF_STREAMS:
        if history.bare:
            ledger.unverified(name, unkept(history))
    for name in _FIELDS:
        ledger.close(name, f"{len(recorded)} rows agree", len(recorded))
    if untold:
        said = f"{untold} rows are of version {clipped(written_by, 40)}, which did not look for loops"
        ledger.close(Name.loops, said, len(recorded))


def compare_row(row: RequestRow, rebuilt: RequestRow, bare: bool, ledger: Ledger, *, written_by: str) -> bool:
    """Compare one recorded row with its rebuilt one; return whether its writer did not yet look for loops."""
    index = row.index
    silent = written_by != __version__ and row.longest_channel_chars is None and row.loop is None
    for name, fields in _FIELDS.items():
        if silent and name is Name.loops:
            continue
        for field in fields:
            if bare and name is not Name.plan and field not in _WITHOUT_BYTES:
                continue
            here, there = getattr(row, field), getattr(rebuilt, field)
            if here != there:
                said = field.rstrip("_")
                ledger.fail(name, f"request {index}: {said} is {_told(here)}, raw reads say {_told(there)}")
    return silent


def unkept(history: History) -> str:
    """Say how much was not kept."""
    return f"the raw reads of {len(history.bare)} of {len(history.rows)} requests were not kept"


def check_output(rows: Sequence[RequestRow], admitted: bool, ledger: Ledger) -> None:
    """Hold that every ok stream has output; `admitted` says that the trial was judged invalid for it."""
    ok = [row for row in rows if row.outcome == Outcome.ok]
    empty = [row.index for row in ok if not row.output_events or not row.output_bytes]
    if empty:
        said = f"{len(empty)} ok streams without output: requests {listed(empty)}"
        (ledger.admit if admitted else ledger.fail)(Name.non_empty_output, said)
    ledger.close(Name.non_empty_output, f"all {len(ok)} ok streams have output", len(ok))


def check_timelines(
    reader: TrialReader, recorded: Mapping[int, RequestRow], history: History, sealed: bool, ledger: Ledger
) -> dict[int, Timeline]:
    """Compare the kept timelines with the rebuilt ones; return those of requests whose bytes were not kept."""
    name = Name.timelines
    seen: set[int] = set()
    kept: dict[int, Timeline] = {}
    events = entries = 0
    try:
        for timeline in _timelines(reader):
            index, rebuilt = timeline.index, history.timelines.get(timeline.index)
            entries += 1
            if entries > len(history.timelines) + MOST_MISPLACED:
                raise EvidenceError(f"{layout.EVENTS} holds far more timelines than there were requests")
            events += len(timeline.times_ns)
            if index in seen:
                ledger.fail(name, f"request {index} has two timelines")
            elif rebuilt is None:
                ledger.fail(name, f"request {index} has a timeline, and no raw reads")
            elif index in history.bare:
                kept[index] = timeline
            elif timeline.times_ns != rebuilt.times_ns:
                ledger.fail(name, f"request {index}: its events' times are not those of the raw reads")
            elif timeline.tokens != rebuilt.tokens:
                ledger.fail(name, f"request {index}: its events' tokens are not those of the raw reads")
            seen.add(index)
    except EvidenceError as error:
        ledger.fail(name, str(error))
    missing = [index for index in recorded if index in history.timelines and index not in seen]
    if missing and sealed:
        ledger.fail(name, f"{len(missing)} requests have no timeline: {listed(missing)}")
    elif missing:
        ledger.unverified(name, f"{len(missing)} requests have no timeline: the client ended before them")
    ledger.close(name, f"{events} events of {len(seen)} requests agree", events)
    return kept


def _timelines(reader: TrialReader) -> Iterable[Timeline]:
    for path in layout.parts(reader.directory, layout.EVENTS):
        limit = EXPANSION_FLOOR_BYTES + EXPANSION_LIMIT * path.stat().st_size
        try:
            for frame in read_frames(path):
                limit -= len(frame)
                if limit < 0:
                    raise EvidenceError(f"{path.name} expands to more than {EXPANSION_LIMIT} times its size")
                yield from unpack(frame)
        except Torn as torn:
            reader.torn.append(str(torn))
        except ValueError as error:
            raise EvidenceError(f"{path.name}: {error}") from error


def listed(indices: Sequence[int], limit: int = 8) -> str:
    """Return indices as people read them, the first few."""
    return ", ".join(map(str, indices[:limit])) + (", ..." if len(indices) > limit else "")


def _told(value: object) -> str:
    return clipped(repr(value), 80)
