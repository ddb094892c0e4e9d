"""The record of a soak, `soak.json`: its terms, its segments, and what they come to so far or in the end.

A JSON object with

`schema`        `nameplate.soak_study/1`
`contract`      everything that was fixed before the first request
`segments`      one entry a segment, in order: what was planned, what was covered, how it ended, its manifest's digest
`left_ns`       how much of the duration no segment has covered
`result`        the measurement and verdict over all segments (`nameplate.measure.soak.result`); of one that runs
                what was known at the last window's end
`exit_code`     null while the soak runs
`command`       the command line that began it, redacted
`tool_version`  the program that wrote this

It is written when a segment begins and ends, and after each window. Version history: 1 - first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import ClientError, EvidenceError, Interrupted, ServerError
from nameplate.contract.soak import SECOND_NS, Soak
from nameplate.contract.soak_terms import SoakTerms
from nameplate.evidence import layout
from nameplate.evidence.header import Keeping
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.soak_events import RAW_KEPT, SUBMIT_BEGAN, RawKept
from nameplate.measure.from_disk import INTERRUPTED
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.study_record import check_schema

SOAK_SCHEMA = "nameplate.soak_study/1"
# What is left below this is no load worth another segment; the client looks at its clock each 0.2 s.
LEAST_LEFT_NS = SECOND_NS

State = Literal["running", "ended", "killed"]


class Fault(Struct, frozen=True):
    """Hold what ended a segment through a fault: whose it was, and what happened."""

    fault: str
    what: str


class Kept(Struct, frozen=True, kw_only=True):
    """Say what was kept of the raw reads of requests that started `from_s` seconds after the segment's first on.

    `why` is the keeping that was asked for, or what made less of it.
    """

    from_s: float
    reads: Literal["all", "sample", "none"]
    sample_every: int
    why: Literal["asked", "budget", "disk"]


class SegmentEntry(Struct, frozen=True, kw_only=True):
    """Hold one segment's part in the soak; `key` is also its directory's name.

    `planned_ns` is what was left of the duration when it began, `covered_ns` for how long it really submitted.
    `state` is `killed` where the process did not live to end it: it was sealed later, as it was found. `ended_by` says
    why nothing more was submitted, `kept` what of the raw reads there is. `manifest_sha256` is null while it is not
    sealed.
    """

    key: str
    planned_ns: int
    covered_ns: int
    state: State
    ended_by: str | None = None
    fault: Fault | None = None
    kept: tuple[Kept, ...] = ()
    manifest_sha256: str | None = None


class SoakRecord(Struct, frozen=True, kw_only=True):
    """Hold a soak as it stands; the module's text is the format."""

    schema: str = SOAK_SCHEMA
    contract: Contract
    segments: tuple[SegmentEntry, ...]
    left_ns: int
    result: SoakResult | None
    exit_code: int | None
    command: tuple[str, ...]
    tool_version: str

    @property
    def finished(self) -> bool:
        """Say whether the whole duration was submitted."""
        return self.exit_code is not None and self.left_ns == 0


def covered_ns(segment: SegmentResult) -> int:
    """Return for how long a segment really submitted.

    From its first submission to its last by plan or by a person's interrupt; of a segment that was killed, to the
    last moment that its evidence speaks of.
    """
    end_ns = segment.submit_ended_ns if segment.submit_ended_ns is not None else segment.observed_ns
    return max(0, end_ns - segment.submitted_ns)


def left_of(terms: SoakTerms, segments: Iterable[SegmentResult]) -> int:
    """Return how much of the duration no segment has covered; 0 where that is no load worth a segment."""
    done = list(segments)
    if done and done[-1].ended_by == "duration":
        return 0
    left_ns = terms.soak.duration_ns - sum(map(covered_ns, done))
    return left_ns if left_ns >= LEAST_LEFT_NS else 0


def left_terms(terms: SoakTerms, left_ns: int, reads_bytes: int) -> Soak:
    """Return the bounds of a segment that has `left_ns` left, after others that keep `reads_bytes` of raw reads."""
    budget = terms.soak.raw_budget_bytes
    left_bytes = None if budget is None else max(0, budget - reads_bytes)
    return structs.replace(terms.soak, duration_ns=left_ns, raw_budget_bytes=left_bytes)


def reads_bytes_of(directory: Path) -> int:
    """Return how many bytes of raw reads a segment's directory holds, compressed as they are."""
    return sum(path.stat().st_size for path in layout.parts(directory, layout.READS))


def entry_of(segment: SegmentResult, directory: Path, manifest_sha256: str | None) -> SegmentEntry:
    """Return the entry of the segment in a directory; without a manifest it is one that runs."""
    soak = segment.plan.soak
    reader = TrialReader(directory)
    journal = reader.journal()
    state: State = "ended" if segment.ended else "killed"
    return SegmentEntry(
        key=segment.plan.key,
        planned_ns=soak.duration_ns if soak is not None else 0,
        covered_ns=covered_ns(segment),
        state="running" if manifest_sha256 is None else state,
        ended_by=segment.ended_by,
        fault=_fault(journal),
        kept=_kept(reader.header().keeping, journal, segment.submitted_ns),
        manifest_sha256=manifest_sha256,
    )


def _fault(journal: Sequence[JournalEntry]) -> Fault | None:
    for entry in journal:
        fault, what = entry.detail.get("fault"), entry.detail.get("error")
        if entry.what == INTERRUPTED and isinstance(fault, str):
            return Fault(fault, str(what))
    return None


def _kept(keeping: Keeping, journal: Sequence[JournalEntry], began_ns: int) -> tuple[Kept, ...]:
    kept = [Kept(from_s=0.0, reads=keeping.reads, sample_every=keeping.sample_every, why="asked")]
    for entry in journal:
        if entry.what == RAW_KEPT:
            told = msgspec.convert(entry.detail, RawKept)
            from_s = (entry.t_ns - began_ns) / 1e9
            kept.append(
                Kept(from_s=from_s, reads=told.reads, sample_every=told.sample_every, why=told.reason)
            )
    return tuple(kept)


def measured(segments: Sequence[SegmentResult]) -> SoakResult | None:
    """Measure and judge a soak from its segments; None where there are none."""
    return measure_soak(segments) if segments else None


def has_begun(directory: Path) -> bool:
    """Tell whether a segment ever submitted anything; one that did not came to nothing, whatever else it wrote."""
    if not (directory / layout.HEADER).exists():
        return False
    if reads_bytes_of(directory):
        return True
    return any(entry.what == SUBMIT_BEGAN for entry in TrialReader(directory).journal())


def segment_number(key: str) -> tuple[int, str]:
    """Order segments by their number: the tenth comes after the ninth."""
    number = key.partition(".s")[2].partition(".")[0]
    return (int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 1 << 30, key)


def exit_code_of(result: SoakResult | None, last: SegmentEntry | None, left_ns: int) -> int:
    """Return the exit code of a soak that does not run.

    What ended its last segment comes first: a fault of the server or of this machine, a person before the time was
    over, a server that was lost and did not come back. Else it is that of the verdict.
    """
    if last is not None and last.fault is not None:
        return _FAULTS.get(last.fault.fault, ClientError.exit_code)
    if result is None or last is None or (left_ns and last.ended_by == "interrupted"):
        return Interrupted.exit_code
    outages = result.segments[-1].outages
    if outages and outages[-1].back_ns is None:
        return ServerError.exit_code
    return result.verdict.exit_code


_FAULTS = {kind.fault: kind.exit_code for kind in (ServerError, ClientError, EvidenceError, Interrupted)}


def encode_soak_record(record: SoakRecord) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(record)) + b"\n"


def decode_soak_record(data: bytes) -> SoakRecord:
    """Decode `soak.json`; EvidenceError where it is damaged or of a schema that this program does not know."""
    check_schema(data, SOAK_SCHEMA, "soak.json")
    try:
        return msgspec.json.decode(data, type=SoakRecord)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"soak.json cannot be read: {error}.") from error
