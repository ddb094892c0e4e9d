"""One segment of a soak verified: every request again from its raw reads, every number again from its files.

Memory is bounded by what was in flight at once and some forty bytes a request. What a kill cut short is stated by the
segment itself, and is then no contradiction.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from nameplate import __version__
from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.evidence import layout
from nameplate.evidence.header import Keeping, TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.soak_events import RAW_KEPT, RawKept
from nameplate.measure.from_disk import prefix_of
from nameplate.measure.soak.fold import measure_segment
from nameplate.measure.soak.segment import SegmentResult
from nameplate.prompts.store import PromptStore
from nameplate.verify.check import Counts, Report
from nameplate.verify.compare import differences, told
from nameplate.verify.compared import BodyFile, Compared, repeated_in
from nameplate.verify.files import check_manifest, decoded, require_listed, require_sealed, trial_files_safe
from nameplate.verify.header import implausible
from nameplate.verify.history import History, Share, replay_each
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import SEGMENT, Name
from nameplate.verify.row_file import RowFile
from nameplate.verify.rows import listed

UNSEALED = "no manifest: the segment was not sealed; nameplate soak --resume seals it as it is"
_REQUIRED = (layout.HEADER, layout.JOURNAL, layout.RESULT)
_FROM_READS = (
    Name.times, Name.outcomes, Name.usage_and_finish, Name.outputs, Name.loops, Name.timelines, Name.unfinished,
)  # fmt: skip
# An entry that less is kept is written beside requests that start in the same moment.
KEPT_SLACK_NS = 5 * 10**9
# Which check a part of the result belongs to; the rest are published numbers.
_OWNERS = {
    "counts": Name.totals,
    "plan": Name.plan,
    "unfinished": Name.unfinished,
    "server_at_end": Name.unfinished,
}


class VerifiedSegment(Struct, frozen=True):
    """Hold a segment's report with what a soak needs of it: recomputed result, first bytes of prompts and heads."""

    report: Report
    sealed: bool = False
    header: TrialHeader | None = None
    result: SegmentResult | None = None
    prompts: array[int] = field(default_factory=lambda: array("Q"))
    heads: array[int] = field(default_factory=lambda: array("Q"))


def verify_segment(directory: Path) -> VerifiedSegment:
    """Verify one segment's directory; whatever it holds, a report comes back."""
    ledger = Ledger(SEGMENT)
    counts, header, result, compared = Counts(), None, None, None
    try:
        header = _header(directory, ledger)
        if header is not None:
            counts, compared = _requests(directory, header, ledger)
            result = _result(directory, header, ledger)
    except Exception as error:
        # Whatever values hostile files can hold, they end here and not in a traceback.
        ledger.fail(Name.files, f"{type(error).__name__}: {error}")
        ledger.stopped = "the segment's files cannot be read"
    report = Report(directory=str(directory), kind="segment", checks=ledger.checks(), counts=counts)
    sealed = (directory / layout.MANIFEST).exists()
    if compared is None:
        return VerifiedSegment(report, sealed, header, result)
    return VerifiedSegment(report, sealed, header, result, compared.prompts, compared.heads)


def _header(directory: Path, ledger: Ledger) -> TrialHeader | None:
    if not trial_files_safe(directory, ledger):
        ledger.stopped = "the directory holds what must not be opened"
        return None
    manifest = check_manifest(directory, ledger, Name.manifest, UNSEALED)
    if manifest is not None:
        require_listed(manifest, _REQUIRED, ledger, Name.manifest)
        require_sealed(directory, manifest, ledger, Name.manifest)
    header = TrialReader(directory).header()
    wrong = implausible(header)
    if wrong is not None or header.plan.soak is None:
        raise EvidenceError(f"{layout.HEADER}: {wrong or 'it is of no soak'}.")
    return header


def _requests(directory: Path, header: TrialHeader, ledger: Ledger) -> tuple[Counts, Compared]:
    """Replay every request and hold it against its row, its body and its timeline."""
    reader = TrialReader(directory)
    journal = reader.journal()
    ended = any(entry.what == "drain_ended" for entry in journal)
    rows = RowFile(directory)
    if rows.repeated:
        ledger.fail(Name.record_count, f"requests {listed(rows.repeated)} have two rows")
    bodies = _bodies(directory, header, ledger, ended)
    compared = Compared(header, rows, bodies, ledger)
    history = replay_each(
        directory,
        header,
        {} if bodies is None else bodies,
        rows,
        compared,
        keeps_of(header.keeping, journal),
        Share(),
    )
    _check_history(history, compared, rows, ended, ledger)
    compared.check_timelines(reader, ended)
    _check_rows(history, compared, rows, ledger)
    _check_prompts(header, compared, bodies is not None, ledger)
    rows.close()
    return compared.counted(history.records, history.raw_bytes), compared


def keeps_of(keeping: Keeping, journal: Sequence[JournalEntry]) -> Callable[[int, int], bool]:
    """Return whether the bytes of a request that was scheduled at a moment are kept for certain."""
    # Whichever worker a request was: each of them decides for itself, and less and less is kept.
    changes = [
        (entry.t_ns, Keeping(kept.reads, kept.sample_every, keeping.prompts))
        for entry in journal
        if entry.what == RAW_KEPT and (kept := msgspec.convert(entry.detail, RawKept))
    ]

    def keeps(index: int, scheduled_ns: int) -> bool:
        held = [changed for t_ns, changed in changes if scheduled_ns >= t_ns - KEPT_SLACK_NS]
        return keeping.keeps(index) and all(changed.keeps(index) for changed in held)

    return keeps


def _bodies(directory: Path, header: TrialHeader, ledger: Ledger, ended: bool) -> BodyFile | None:
    path = directory / layout.PROMPTS
    if not path.exists():
        if header.keeping.prompts:
            ledger.unverified(Name.prompts_as_sent, f"{layout.PROMPTS} is not there")
        return None
    store = PromptStore.open(path)
    if store.torn:
        told_of = f"{layout.PROMPTS}: {store.torn}"
        (ledger.fail if ended else ledger.admit)(Name.files, told_of)
    if store.repeated:
        ledger.fail(Name.prompts_as_sent, f"{store.repeated} indices have two bodies")
    return BodyFile(store, header, prefix_of(header), ledger)


def _check_history(history: History, compared: Compared, rows: RowFile, ended: bool, ledger: Ledger) -> None:
    name = Name.raw_reads
    if history.given_up:
        ledger.unverified(name, history.given_up)
    for fault in history.faults:
        ledger.fail(name, fault)
    if compared.bare:
        for one in (name, *_FROM_READS):
            ledger.unverified(
                one, f"the raw reads of {compared.bare} of {len(compared)} requests were not kept"
            )
    ledger.close(name, f"{history.records} records of {len(compared)} requests", history.records)
    name = Name.record_count
    without = [index for index in rows if index not in compared]
    if without:
        said = f"requests {listed(without)} have a row, and no raw reads"
        # The reads of the last second were with the killed process; the row of a request that ended was not.
        (ledger.fail if ended else ledger.admit)(name, said)
    if compared.rowless:
        said = f"{compared.rowless} requests have no row, {compared.rowless_ended} of which had ended"
        (ledger.fail if ended else ledger.admit)(name, f"{said}: the client was killed before it was written")
    ledger.close(name, f"{len(rows)} rows, {len(compared)} requests in the raw reads", len(rows))


def _check_rows(history: History, compared: Compared, rows: RowFile, ledger: Ledger) -> None:
    for name in (Name.times, Name.outcomes, Name.usage_and_finish, Name.outputs, Name.loops, Name.plan):
        if not history.given_up:
            ledger.close(name, f"{len(rows)} rows agree", len(rows))
    if compared.empty:
        # The segment counts them itself as answers that break the contract.
        ledger.admit(Name.non_empty_output, f"ok streams without output: requests {listed(compared.empty)}")
    ledger.close(Name.non_empty_output, "all ok streams have output", len(compared) - len(compared.empty))


def _check_prompts(header: TrialHeader, compared: Compared, kept: bool, ledger: Ledger) -> None:
    name, contract = Name.prompts_disjoint, header.contract
    if not kept:
        ledger.unverified(Name.prompts_as_sent, "prompts were not kept")
        ledger.unverified(name, "prompts were not kept: by the recorded digests alone none occurs twice")
    if contract.dataset is None:
        if (twice := repeated_in(compared.prompts)) > 0:
            ledger.fail(name, f"{twice} prompts occur twice")
        elif contract.cache.cold and (alike := repeated_in(compared.heads)) > 0:
            ledger.fail(name, f"{alike} prompts begin like another")
    ledger.close(Name.prompts_as_sent, f"{len(compared)} requests name their bodies", len(compared))
    ledger.close(name, f"{len(compared)} prompts, none twice", len(compared))


def _result(directory: Path, header: TrialHeader, ledger: Ledger) -> SegmentResult | None:
    """Measure the segment again, and hold what was published against it."""
    try:
        ours = measure_segment(directory)
    except NameplateError as error:
        ledger.fail(Name.files, str(error))
        ledger.stopped = "the segment cannot be measured"
        return None
    published = _published(directory, ledger)
    if published is not None:
        _check_published(published, ours, header.tool_version, ledger)
    held = ours.counts
    said = (
        f"sent {held.sent} = ok {held.ok} + failed {held.failed} + cancelled {held.cancelled} + "
        f"unfinished {held.unfinished}"
    )
    if not held.balanced:
        ledger.fail(Name.totals, f"not so: {said}")
    for torn in ours.torn:
        (ledger.admit if published is not None else ledger.unverified)(Name.files, torn)
    if published is not None:
        ledger.close(Name.totals, said, held.sent)
        ledger.close(Name.unfinished, f"{len(ours.unfinished)} requests without an end", len(ours.unfinished))
        ledger.close(Name.published_numbers, "as recomputed", _leaves(msgspec.to_builtins(ours)))
    present = [name for name in layout.SEALED if (directory / name).exists()]
    ledger.close(Name.files, ", ".join(present), len(present))
    return ours


def _published(directory: Path, ledger: Ledger) -> dict[str, Any] | None:
    path = directory / layout.RESULT
    if not path.exists():
        for name in (Name.totals, Name.unfinished, Name.published_numbers):
            ledger.unverified(name, f"there is no {layout.RESULT}")
        return None
    document = decoded(path)
    if not isinstance(document, dict):
        raise EvidenceError(f"{layout.RESULT} is not a JSON object.")
    return document


def _check_published(published: dict[str, Any], ours: SegmentResult, written_by: str, ledger: Ledger) -> None:
    recomputed = msgspec.json.decode(msgspec.json.encode(ours))
    for key in published.keys() | recomputed.keys():
        if key == "sealed":
            continue  # When the result was written its manifest could not be there yet.
        here, there = published.get(key, "<absent>"), recomputed.get(key, "<absent>")
        for found in differences(here, there, (key,), same_version=written_by == __version__):
            ledger.fail(_OWNERS.get(key, Name.published_numbers), told(*found))


def _leaves(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_leaves, value))
    return 1
