"""A soak verified: its segments, that they follow each other, and that the record follows from them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.contract.soak import Soak
from nameplate.evidence import layout
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.manifest import Manifest, digest_file
from nameplate.evidence.reader import TrialReader
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import (
    SoakRecord,
    decode_soak_record,
    entry_of,
    exit_code_of,
    has_begun,
    left_of,
    left_terms,
    measured,
    reads_bytes_of,
    segment_number,
)
from nameplate.verify.check import Counts, Report
from nameplate.verify.compare import differences, told
from nameplate.verify.compared import repeated_in
from nameplate.verify.files import check_manifest, document, regular_file, require_listed
from nameplate.verify.header import contract_implausible
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.names import SOAK, SOAK_VERDICT, Name
from nameplate.verify.prompts import hashes_of_journal
from nameplate.verify.segment import VerifiedSegment, verify_segment

UNFINISHED = "no manifest: the soak runs, or its process was killed; nameplate soak --resume goes on with it"
# Results of other versions may say more or less; the record's own words are compared with the same version's.
_VERDICT = (Name.drift, Name.soak_verdict)


class _Soak(Struct):
    contract: Contract | None = None
    record: SoakRecord | None = None
    journal: list[JournalEntry] = field(default_factory=list)
    segments: dict[str, VerifiedSegment] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)

    @property
    def results(self) -> list[SegmentResult]:
        """Return the recomputed results of sealed segments, in order."""
        return [one.result for one in self.segments.values() if one.result is not None and one.sealed]


def verify_soak(directory: Path) -> Report:
    """Verify a soak's directory with all of its segments; whatever it holds, a report comes back."""
    ledger = Ledger([*SOAK, *SOAK_VERDICT])
    soak = _Soak()
    manifest = check_manifest(directory, ledger, Name.study_manifest, UNFINISHED)
    try:
        _read(directory, soak, ledger)
        _read_segments(directory, soak, ledger)
        _check_manifest_names(directory, soak, manifest, ledger)
        _check_contract(soak, ledger)
        _check_prompts(soak, ledger)
        if soak.contract is not None:
            _check_segments(directory, soak, soak.contract, manifest is not None, ledger)
            _check_record(soak, soak.contract, manifest is not None, ledger)
    except Exception as error:
        # Whatever values hostile files can hold, they end here and not in a traceback.
        ledger.fail(
            Name.study_files, f"nothing can be computed from these values: {type(error).__name__}: {error}"
        )
        ledger.stopped = "the soak cannot be recomputed"
    if any(one.report.exit_code == 3 for one in soak.segments.values()):
        for name in (Name.soak_record, *_VERDICT):
            ledger.unverified(name, "follows from segments that are not verified as a whole")
    recomputed = soak.record.result if soak.record is not None else None
    return Report(
        directory=str(directory),
        kind="soak",
        checks=ledger.checks(),
        counts=sum((one.report.counts for one in soak.segments.values()), Counts()),
        verdict=recomputed.verdict.status if recomputed is not None else None,
        trials=tuple(one.report for one in soak.segments.values()),
    )


def _read(directory: Path, soak: _Soak, ledger: Ledger) -> None:
    name = Name.study_files
    try:
        contract = msgspec.json.decode(document(directory / layout.CONTRACT), type=Contract)
        wrong = contract_implausible(contract)
        if wrong is not None or contract.soak is None or len(contract.shapes) != 1:
            raise EvidenceError(f"{layout.CONTRACT}: {wrong or 'it has no soak'}.")
        soak.contract = contract
    except (NameplateError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        ledger.fail(name, f"{layout.CONTRACT}: {error}")
        ledger.stopped = "the contract cannot be read"
    path = directory / layout.SOAK
    if path.exists() or path.is_symlink():
        try:
            soak.record = decode_soak_record(document(path))
        except (NameplateError, ValueError, RecursionError) as error:
            ledger.fail(name, str(error))
    else:
        ledger.unverified(name, f"there is no {layout.SOAK}: the soak ended before its first window")
    wrong = regular_file(directory / layout.JOURNAL)
    if wrong is not None:
        ledger.fail(name, f"{layout.JOURNAL} {wrong}")
        return
    reader = TrialReader(directory)
    soak.journal = reader.journal()
    for torn in reader.torn:
        # A kill may have cut its last line; the probe's and the calibration's prompts stand before it.
        ledger.admit(name, torn)
    ledger.close(name, "as documented")


def _read_segments(directory: Path, soak: _Soak, ledger: Ledger) -> None:
    root = directory / layout.TRIALS
    if root.is_symlink() or not root.is_dir():
        ledger.fail(Name.study_files, f"{layout.TRIALS}/ is not a directory of this soak")
        return
    for path in sorted(root.iterdir(), key=lambda found: segment_number(found.name)):
        if path.is_symlink():
            ledger.fail(Name.study_files, f"{layout.TRIALS}/{clipped(path.name, 80)} is a link")
        elif path.is_dir() and _came_to_nothing(path):
            soak.empty.append(path.name)
        elif path.is_dir():
            soak.segments[path.name] = verify_segment(path)


def _came_to_nothing(segment: Path) -> bool:
    """Tell whether a segment never submitted anything and was never sealed."""
    if (segment / layout.MANIFEST).exists() and (segment / layout.HEADER).exists():
        return False
    try:
        return not has_begun(segment)
    except (NameplateError, OSError, ValueError, RecursionError):
        return False


def _check_manifest_names(directory: Path, soak: _Soak, manifest: Manifest | None, ledger: Ledger) -> None:
    if manifest is None:
        return
    sealed = [f"{layout.TRIALS}/{key}/{layout.MANIFEST}" for key, one in soak.segments.items() if one.sealed]
    journal = [layout.JOURNAL] if (directory / layout.JOURNAL).exists() else []
    require_listed(manifest, [layout.CONTRACT, layout.SOAK, *journal, *sealed], ledger, Name.study_manifest)


def _check_contract(soak: _Soak, ledger: Ledger) -> None:
    name, contract = Name.study_contract, soak.contract
    if contract is None:
        ledger.unverified(name, f"{layout.CONTRACT} cannot be read")
        return
    held = [(key, one.header.contract) for key, one in soak.segments.items() if one.header is not None]
    if soak.record is not None:
        held.append((layout.SOAK, soak.record.contract))
    ours = msgspec.to_builtins(contract)
    for where, other in held:
        for found in differences(msgspec.to_builtins(other), ours):
            ledger.fail(name, f"{where}: {told(*found)}")
    ledger.close(name, f"the same in {len(held)} places", len(held))


def _check_prompts(soak: _Soak, ledger: Ledger) -> None:
    """Hold that no prompt, and no head of a cold one, occurs in two segments, or in probe and calibration."""
    name, contract = Name.study_prompts, soak.contract
    prompts, heads = array("Q"), array("Q")
    for key, one in soak.segments.items():
        # What occurs twice in one segment is that segment's own finding.
        prompts.extend(set(one.prompts))
        heads.extend(set(one.heads))
        if one.report.check(Name.prompts_as_sent).status == "unverified":
            ledger.unverified(
                name, f"{key}: prompts were not kept: by the recorded digests alone none occurs twice"
            )
    asked = hashes_of_journal(soak.journal)
    if contract is not None and contract.dataset is None:
        if (twice := repeated_in(prompts)) > 0:
            ledger.fail(name, f"{twice} prompts occur in two segments")
        elif contract.cache.cold and (alike := repeated_in(heads)) > 0:
            ledger.fail(name, f"{alike} prompts begin like one of another segment")
        if again := {int(digest[:16], 16) for digest in asked}.intersection(prompts):
            ledger.fail(name, f"{len(again)} prompts are those of the probe or the calibration")
    ledger.close(name, f"{len(prompts)} prompts, and {len(asked)} of probe and calibration", len(prompts))


def _check_segments(directory: Path, soak: _Soak, contract: Contract, sealed: bool, ledger: Ledger) -> None:
    """Hold that each segment was planned for what those before it had left, under the soak's own terms."""
    name, terms = Name.segments, contract.soak
    assert terms is not None
    before: list[SegmentResult] = []
    reads_bytes = 0
    for number, (key, one) in enumerate(soak.segments.items(), 1):
        if one.result is None or one.header is None:
            ledger.unverified(name, f"{key} cannot be recomputed")
            continue
        plan = one.header.plan
        left_ns = left_of(terms, before)
        wanted = left_terms(terms, left_ns, reads_bytes)
        if plan.key != key or plan.name != f"soak.s{number}":
            ledger.fail(name, f"the segment in {key} is {clipped(plan.key, 80)}, the {number}. in order")
        if plan.shape != contract.shapes[0] or plan.arrivals != terms.arrivals:
            ledger.fail(name, f"{key} has another load than the contract")
        if plan.concurrency != terms.concurrency:
            ledger.fail(name, f"{key} has concurrency {plan.concurrency}, the contract {terms.concurrency}")
        if plan.soak != wanted:
            ledger.fail(
                name,
                f"{key} is planned for {_told(plan.soak)}, and those before it left {_told(wanted)}",
            )
        if before and one.result.began_wall_ns < before[-1].observed_wall_ns:
            # The wall clock was set, or time was simulated: nothing says how long the gap was.
            ledger.admit(name, f"{key} begins before the end of the segment before it, by the wall clock")
        before.append(one.result)
        reads_bytes += reads_bytes_of(directory / layout.TRIALS / key)
    for key in soak.empty:
        if (directory / layout.TRIALS / key / layout.MANIFEST).exists():
            ledger.fail(name, f"{key} is sealed, and has no {layout.HEADER}")
    _check_entries(directory, soak, sealed, ledger)
    gaps = max(0, len(before) - 1)
    ledger.close(name, f"{len(before)} segments in order, {gaps} gaps between them", len(before))


def _told(soak: Soak | None) -> str:
    if soak is None:
        return "no submission"
    return f"{soak.duration_ns} ns and {soak.raw_budget_bytes} bytes of raw reads"


def _check_entries(directory: Path, soak: _Soak, sealed: bool, ledger: Ledger) -> None:
    """Hold the record's entries against the segments; that of a soak that does not stand yet may lag behind."""
    name, record = Name.segments, soak.record
    if record is None:
        return
    listed = {entry.key: entry for entry in record.segments}
    for key in listed.keys() - soak.segments.keys():
        ledger.fail(name, f"{clipped(key, 80)} is listed, and there is no such segment")
    for key, one in soak.segments.items():
        if one.result is None:
            continue
        path, entry = directory / layout.TRIALS / key, listed.get(key)
        if entry is None or entry.state == "running":
            if sealed and one.sealed:
                ledger.fail(name, f"{key} is not in the record as a segment that ended")
            else:
                ledger.unverified(
                    name, f"{key} is not in the record as it ended: the process was killed before"
                )
            continue
        ours = entry_of(one.result, path, digest_file(path / layout.MANIFEST).sha256 if one.sealed else None)
        for found in _different(entry, ours, record, (key,)):
            ledger.fail(name, found)


def _check_record(soak: _Soak, contract: Contract, sealed: bool, ledger: Ledger) -> None:
    """Measure the soak again from its recomputed segments, and hold the record against it."""
    record, results = soak.record, soak.results
    assert contract.soak is not None
    names = (Name.soak_record, *_VERDICT)
    if record is None or not sealed:
        for name in names:
            ledger.unverified(name, "the soak was not sealed: its record is of the last window")
        return
    if len(results) != sum(one.sealed for one in soak.segments.values()):
        ledger.stopped = "a segment cannot be recomputed"
        return
    # As each was when the record was written.
    ours = measured([structs.replace(result, sealed=False) for result in results])
    stood = record.result if record.result is None else _unsealed(record)
    for found in _different(stood, ours, record):
        part = found.partition(" ")[0]
        owner = Name.drift if part.startswith(("drift", "warm_up")) else Name.soak_record
        ledger.fail(Name.soak_verdict if part.startswith("verdict") else owner, found)
    left_ns = left_of(contract.soak, results)
    if record.left_ns != left_ns:
        ledger.fail(Name.soak_record, f"left_ns is {record.left_ns}, recomputed {left_ns}")
    last = record.segments[-1] if record.segments else None
    code = exit_code_of(ours, last, left_ns)
    # A soak whose next segment came to nothing has that fault's code, and no segment tells of it.
    if record.exit_code != code and not (soak.empty and left_ns):
        ledger.fail(Name.soak_verdict, f"the exit code is {record.exit_code}, recomputed {code}")
    if ours is not None:
        ledger.close(Name.drift, ours.drift.conclusion, len(ours.drift.series), ours.drift.conclusion)
        said = f"{ours.verdict.status}: {clipped('; '.join(ours.verdict.reasons))}"
        ledger.close(Name.soak_verdict, said, len(ours.verdict.slos), ours.verdict.status)
    else:
        for name in _VERDICT:
            ledger.close(name, "nothing was measured")
    ledger.close(Name.soak_record, "as recomputed", len(results))


def _unsealed(record: SoakRecord) -> object:
    assert record.result is not None
    segments = tuple(structs.replace(segment, sealed=False) for segment in record.result.segments)
    return structs.replace(record.result, segments=segments)


def _different(
    recorded: object, recomputed: object, record: SoakRecord, path: Sequence[str] = ()
) -> list[str]:
    here, there = (msgspec.json.decode(msgspec.json.encode(value)) for value in (recorded, recomputed))
    same = record.tool_version == __version__
    return [told(*found) for found in differences(here, there, tuple(path), same_version=same)]
