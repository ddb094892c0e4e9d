"""One trial verified: every row, every published number and the verdict again, from raw reads alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.engines.state import ServerSample
from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.from_disk import evidence_of, prefix_of, read_gpu_samples
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.trace_on_disk import read_header
from nameplate.verdict.gate import Gate
from nameplate.verify import prompts as prompt_checks
from nameplate.verify import rows as row_checks
from nameplate.verify.check import Counts, Report
from nameplate.verify.files import check_manifest, decoded, require_listed, require_sealed, trial_files_safe
from nameplate.verify.header import implausible
from nameplate.verify.held import check_hold
from nameplate.verify.history import History
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import GATES, INTEGRITY, VERDICT, Name
from nameplate.verify.published import check_result
from nameplate.verify.shares import replay

UNFINISHED = "no manifest: the trial is unfinished, and nothing seals what is here"
_REQUIRED = (layout.HEADER, layout.JOURNAL, layout.RESULT)
_OF_THE_LOAD = (layout.HEADER, layout.REQUESTS, layout.READS, layout.EVENTS, layout.RESULT)
_FROM_RESULT = (Name.totals, Name.concurrency, Name.identity, Name.published_numbers, *GATES, *VERDICT)


class VerifiedTrial(Struct, frozen=True):
    """Hold a trial's report with what a study needs of it: header, recomputed result, recomputed rows."""

    report: Report
    header: TrialHeader | None = None
    result: TrialResult | None = None
    rows: tuple[RequestRow, ...] = ()


def verify_trial(directory: Path) -> VerifiedTrial:
    """Verify one trial's directory; whatever it holds, a report comes back."""
    ledger = Ledger([*INTEGRITY, *GATES, *VERDICT])
    verified = _verify(directory, ledger)
    result = verified.result if verified is not None else None
    report = Report(
        directory=str(directory),
        kind="trial",
        checks=ledger.checks(),
        counts=verified.counts if verified is not None else Counts(),
        verdict=result.verdict.status if result is not None else None,
    )
    if verified is None:
        return VerifiedTrial(report)
    return VerifiedTrial(report, verified.header, result, tuple(verified.rows))


class _Recomputed(Struct):
    header: TrialHeader
    rows: list[RequestRow]
    counts: Counts
    result: TrialResult | None = None


def _verify(directory: Path, ledger: Ledger) -> _Recomputed | None:
    if not trial_files_safe(directory, ledger):
        ledger.stopped = "the directory holds what must not be opened"
        return None
    manifest = check_manifest(directory, ledger, Name.manifest, UNFINISHED)
    if manifest is not None:
        require_listed(manifest, _REQUIRED, ledger, Name.manifest)
        require_sealed(directory, manifest, ledger, Name.manifest)
    sealed = (directory / layout.MANIFEST).exists()
    if not sealed and not any((directory / name).exists() for name in _OF_THE_LOAD):
        ledger.stopped = "the trial ended before its load began"
        return None
    reader = TrialReader(directory)
    try:
        header = read_header(reader)
        wrong = implausible(header)
        if wrong is not None:
            raise EvidenceError(f"{layout.HEADER}: {wrong}.")
        prefix = prefix_of(header)
        recorded = reader.rows()
        journal = reader.journal()
    except (NameplateError, OSError, ValueError, RecursionError) as error:
        ledger.fail(Name.files, str(error))
        ledger.stopped = "the trial's own files cannot be read"
        return None
    return _recompute(reader, header, prefix, recorded, journal, sealed, ledger)


def _recompute(
    reader: TrialReader,
    header: TrialHeader,
    prefix: str,
    recorded: list[RequestRow],
    journal: list[JournalEntry],
    sealed: bool,
    ledger: Ledger,
) -> _Recomputed:
    rows = row_checks.by_index(recorded, ledger)
    bodies = prompt_checks.read_bodies(reader, header, prefix, ledger)
    history = replay(reader.directory, header, bodies.facts, rows)
    reader.torn += history.torn
    if history.given_up:
        ledger.unverified(Name.raw_reads, history.given_up)
        ledger.stopped = history.given_up
        return _Recomputed(header, [], Counts(requests=len(rows)))
    for fault in history.faults:
        ledger.fail(Name.raw_reads, fault)
    if history.bare:
        ledger.unverified(Name.raw_reads, row_checks.unkept(history))
    ledger.close(
        Name.raw_reads, f"{history.records} records of {len(history.rows)} requests", history.records
    )
    row_checks.check_record_count(header, rows, history, sealed, ledger)
    row_checks.check_rows(rows, history, ledger, written_by=header.tool_version)
    kept = row_checks.check_timelines(reader, rows, history, sealed, ledger)
    prompt_checks.check_bodies(header.plan, bodies, rows, ledger)
    trusted = _trusted(rows, history)
    recomputed = _Recomputed(header, trusted, _counts(trusted, history))
    timelines = {**history.timelines, **kept}
    result = _evaluate(reader, header, journal, recomputed, timelines, history, ledger)
    recomputed.result = result
    admitted = {gate.gate for gate in result.gates if gate.status == "invalid"} if result else set()
    row_checks.check_output(trusted, Gate.empty_output in admitted, ledger)
    prompt_checks.check_disjoint(
        header, prefix, trusted, journal, bodies, Gate.unique_prompts in admitted, ledger
    )
    published = _published(reader, ledger)
    _check_files(reader, published, sealed, ledger)
    if result is not None:
        _check_published(published, result, history, header.tool_version, sealed, ledger)
    return recomputed


def _trusted(recorded: dict[int, RequestRow], history: History) -> list[RequestRow]:
    """Return the rows that count: rebuilt ones; recorded ones only where bytes were not kept or no reads are."""
    chosen = dict(recorded)
    for index, row in history.rows.items():
        if index not in history.bare or index not in recorded:
            chosen[index] = row
    return [chosen[index] for index in sorted(chosen)]


def _evaluate(
    reader: TrialReader,
    header: TrialHeader,
    journal: list[JournalEntry],
    recomputed: _Recomputed,
    timelines: dict[int, Timeline],
    history: History,
    ledger: Ledger,
) -> TrialResult | None:
    try:
        samples = reader.lines(layout.SERVER, ServerSample)
    except (NameplateError, OSError, ValueError, RecursionError) as error:
        ledger.fail(Name.files, str(error))
        samples = []
    try:
        evidence = evidence_of(
            header,
            journal,
            samples,
            recomputed.rows,
            [timelines[index] for index in sorted(timelines)],
            history.totals,
            reader.torn,
            read_gpu_samples(reader),
        )
        check_hold(evidence, ledger)
        return evaluate(evidence)
    except Exception as error:
        # Whatever values a hostile journal or header can hold, they end here and not in a traceback.
        ledger.fail(Name.files, f"nothing can be computed from these values: {type(error).__name__}: {error}")
        ledger.stopped = "the evidence cannot be evaluated"
        return None


def _published(reader: TrialReader, ledger: Ledger) -> dict[str, Any] | None:
    """Read `result.json` as it stands; None where there is none, or none that can be read."""
    path = reader.path(layout.RESULT)
    if not path.exists():
        return None
    try:
        document = decoded(path)
        if isinstance(document, dict):
            return document
        ledger.fail(Name.files, f"{layout.RESULT} is not a JSON object")
    except EvidenceError as error:
        ledger.fail(Name.files, str(error))
    ledger.stopped = f"{layout.RESULT} cannot be read"
    return None


def _check_files(reader: TrialReader, published: dict[str, Any] | None, sealed: bool, ledger: Ledger) -> None:
    """Close the check of files: a torn tail is expected where nothing was sealed, or where the result tells of it."""
    facts = published.get("facts") if published is not None else None
    told = facts.get("damage") if isinstance(facts, dict) else None
    for torn in dict.fromkeys(reader.torn):
        if not sealed:
            ledger.unverified(Name.files, f"{torn}: dropped, as the trial is unfinished")
        elif isinstance(told, list) and torn in told:
            ledger.admit(Name.files, torn)
        else:
            ledger.fail(Name.files, torn)
    present = [name for name in layout.SEALED if reader.path(name).exists()]
    ledger.close(Name.files, f"{', '.join(present)}", len(present))


def _check_published(
    published: dict[str, Any] | None,
    result: TrialResult,
    history: History,
    written_by: str,
    sealed: bool,
    ledger: Ledger,
) -> None:
    if published is None:
        if not ledger.failed(Name.files):
            for name in _FROM_RESULT:
                lacking = ledger.fail if sealed and name is Name.published_numbers else ledger.unverified
                lacking(name, f"there is no {layout.RESULT}")
        return
    check_result(published, result, ledger, written_by=written_by)
    if history.bare:
        for name in _FROM_RESULT:
            ledger.unverified(name, f"agrees with the recorded rows, but {row_checks.unkept(history)}")


def _counts(rows: list[RequestRow], history: History) -> Counts:
    return Counts(
        requests=len(rows),
        records=history.records,
        raw_bytes=history.raw_bytes,
        streams=sum(row.output_events > 0 for row in rows),
        output_events=sum(row.output_events for row in rows),
        output_tokens=sum(row.output_tokens or 0 for row in rows),
        output_bytes=sum(row.output_bytes for row in rows),
        unique_outputs=len({row.output_sha256 for row in rows if row.output_sha256 is not None}),
        unique_prompts=len({row.prompt_sha256 for row in rows}),
    )
