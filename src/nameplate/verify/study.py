"""One study verified: its trials, what they share, and the rated result that follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError, NameplateError
from nameplate.contract.identity import compare
from nameplate.contract.levels import levels_of, told_rated
from nameplate.evidence import layout
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.manifest import Manifest, digest_file
from nameplate.evidence.manifest import read as read_manifest
from nameplate.evidence.reader import TrialReader
from nameplate.measure.curve_result import CurveResult
from nameplate.measure.plate import Plate, decode_plate
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_result import SpeedResult
from nameplate.measure.study_record import StudyRecord, decode_study, entry_of
from nameplate.verdict.boundary import Status
from nameplate.verify.check import Counts, Report
from nameplate.verify.compare import differences, told
from nameplate.verify.curve import check_curve
from nameplate.verify.files import check_manifest, document, regular_file, require_listed
from nameplate.verify.header import contract_implausible
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.matrix import check_matrix
from nameplate.verify.names import CURVE_VERDICT, SPEED_VERDICT, STUDY_INTEGRITY, STUDY_VERDICT, Name
from nameplate.verify.prompts import hashes_of_journal
from nameplate.verify.rated import check_rated
from nameplate.verify.trial import VerifiedTrial, verify_trial

UNFINISHED = "no manifest: the study is unfinished, and nothing seals what is here"
# A directory of trials that nobody decided by: it has no record, no levels and no plate.
OF_SINGLE_TRIALS = [name for name in STUDY_INTEGRITY if name is not Name.study_trials]
T = TypeVar("T")


class _Study(Struct):
    """Hold what was read of a study; trials by their directory's name."""

    decides: bool
    contract: Contract | None = None
    record: StudyRecord | None = None
    plate: Plate | None = None
    matrix: SpeedResult | None = None
    curve: CurveResult | None = None
    journal: list[JournalEntry] = field(default_factory=list)
    trials: dict[str, VerifiedTrial] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, TrialResult]:
        return {key: trial.result for key, trial in self.trials.items() if trial.result is not None}


def verify_study(directory: Path) -> Report:
    """Verify a study's directory with all of its trials; whatever it holds, a report comes back."""
    decides = any((directory / name).exists() for name in (layout.STUDY, layout.PLATE)) or _was_sealed(
        directory
    )
    kind = _kind(directory)
    names = [*OF_SINGLE_TRIALS, *(CURVE_VERDICT if kind == "curve" else SPEED_VERDICT if kind else ())]
    ledger = Ledger([*STUDY_INTEGRITY, *STUDY_VERDICT] if decides else names)
    study = _Study(decides=decides)
    manifest = check_manifest(directory, ledger, Name.study_manifest, UNFINISHED)
    _read(directory, study, ledger)
    _read_trials(directory, study, ledger)
    _check_manifest_names(directory, study, manifest, ledger)
    spoiled = set(study.record.spoiled) if study.record is not None else set()
    counting = {key: trial for key, trial in study.trials.items() if key not in spoiled}
    _check_contract(study, ledger)
    _check_prompts(study, ledger)
    _check_identity(study, ledger)
    if study.record is not None:
        finished = (directory / layout.MANIFEST).exists()
        _check_trials(study.record, counting, finished, ledger)
        check_rated(directory, study.record, study.plate, study.results, ledger)
        if any(trial.report.exit_code == 3 for trial in counting.values()):
            for name in STUDY_VERDICT:
                ledger.unverified(name, "follows from trials that are not verified themselves")
    elif kind and study.contract is not None:
        _check_result(directory, study, study.contract, ledger)
    elif decides:
        ledger.stopped = f"{layout.STUDY} cannot be read"
    return Report(
        directory=str(directory),
        kind="study",
        checks=ledger.checks(),
        counts=sum((trial.report.counts for trial in counting.values()), Counts()),
        verdict=_verdict(study),
        trials=tuple(trial.report for trial in counting.values()),
    )


def _check_result(directory: Path, study: _Study, contract: Contract, ledger: Ledger) -> None:
    """Check the result of a study that has no record beside it: a speed matrix, or a curve."""
    # What a kill left unsealed is no trial of the study: a cell or level is measured again as its next attempt.
    sealed = {
        key: result
        for key, result in study.results.items()
        if (directory / layout.TRIALS / key / layout.MANIFEST).exists()
    }
    if contract.curve is not None:
        rows = {key: study.trials[key].rows for key in sealed}
        study.curve = check_curve(directory, contract, sealed, rows, study.journal, ledger)
        name = Name.curve
    elif contract.speed is not None:
        study.matrix = check_matrix(directory, contract, sealed, ledger)
        name = Name.matrix
    else:
        return
    if any(study.trials[key].report.exit_code == 3 for key in sealed):
        ledger.unverified(name, "rests on trials that are not verified themselves")


def _kind(directory: Path) -> str | None:
    """Tell by its contract whether the study is a `curve` or a `speed` matrix; one with a result alone is a matrix."""
    try:
        contract = msgspec.json.decode(document(directory / layout.CONTRACT))
    except (NameplateError, OSError, ValueError, RecursionError, msgspec.MsgspecError):
        contract = None
    if isinstance(contract, dict):
        for kind in ("curve", "speed"):
            if contract.get(kind) is not None:
                return kind
    return "speed" if (directory / layout.RESULT).exists() else None


def _was_sealed(directory: Path) -> bool:
    """Tell whether the study's manifest names a record, whatever became of it."""
    if not (directory / layout.MANIFEST).exists():
        return False
    try:
        document(directory / layout.MANIFEST)
        manifest = read_manifest(directory)
    except (NameplateError, ValueError, RecursionError):
        return True
    return manifest is not None and layout.STUDY in manifest.files


def _verdict(study: _Study) -> str | None:
    if study.record is not None and study.record.shapes:
        levels = levels_of(study.record.contract)
        return ", ".join(
            f"{v.shape}: {v.boundary.status}, rated {told_rated(levels, v.boundary.rated)}"
            for v in study.record.shapes
        )
    if study.matrix is not None:
        counted = Counter(row.status.value.replace("_", " ") for row in study.matrix.rows)
        return f"{len(study.matrix.rows)} cells: " + ", ".join(
            f"{n} {word}" for word, n in counted.most_common()
        )
    if study.curve is not None:
        return _said_of_curve(study.curve)
    verdicts = [trial.report.verdict for trial in study.trials.values()]
    return verdicts[0] if not study.decides and len(verdicts) == 1 else None


def _said_of_curve(result: CurveResult) -> str:
    counted = Counter(row.status.value.replace("_", " ") for row in result.rows)
    knees = [
        curve.knee.status.replace("_", " ") if curve.knee.level is None else f"at {curve.knee.level:g}"
        for curve in result.curves
        if curve.knee.status != "unknown"
    ]
    said = f"{len(result.rows)} levels: " + ", ".join(f"{n} {word}" for word, n in counted.most_common())
    return said + (f"; knee {', '.join(knees)}" if knees else "")


# -- reading -----------------------------------------------------------------------------------------------------


def _read(directory: Path, study: _Study, ledger: Ledger) -> None:
    """Read contract, record, plate and journal; what is damaged is said and left out."""
    name = Name.study_files
    try:
        data = document(directory / layout.CONTRACT)
        contract = msgspec.json.decode(data, type=Contract)
        wrong = contract_implausible(contract)
        if wrong is not None:
            raise EvidenceError(f"{layout.CONTRACT}: {wrong}.")
        study.contract = contract
    except (NameplateError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        ledger.fail(name, f"{layout.CONTRACT}: {error}")
    if study.decides:
        study.record = _decoded(directory / layout.STUDY, decode_study, ledger)
        study.plate = _decoded(directory / layout.PLATE, decode_plate, ledger)
    if study.record is not None and (wrong := contract_implausible(study.record.contract)) is not None:
        ledger.fail(name, f"{layout.STUDY}: {wrong}")
        study.record = None
    wrong = regular_file(directory / layout.JOURNAL)
    if wrong is not None:
        ledger.fail(name, f"{layout.JOURNAL} {wrong}")
        return
    reader = TrialReader(directory)
    try:
        study.journal = reader.journal()
    except (NameplateError, OSError, ValueError, RecursionError) as error:
        ledger.fail(name, str(error))
    for torn in reader.torn:
        ledger.fail(name, torn)
    ledger.close(name, "as documented")


def _decoded(path: Path, decode: Callable[[bytes], T], ledger: Ledger) -> T | None:
    if not path.exists() and not path.is_symlink():
        ledger.unverified(Name.study_files, f"there is no {path.name}: the study is unfinished")
        return None
    try:
        return decode(document(path))
    except (NameplateError, ValueError, RecursionError) as error:
        ledger.fail(Name.study_files, str(error))
        return None


def _read_trials(directory: Path, study: _Study, ledger: Ledger) -> None:
    """Verify every directory below `trials/`, in the order of their names."""
    root = directory / layout.TRIALS
    if root.is_symlink() or not root.is_dir():
        ledger.fail(Name.study_files, f"{layout.TRIALS}/ is not a directory of this study")
        return
    for path in sorted(root.iterdir()):
        if path.is_symlink():
            ledger.fail(Name.study_files, f"{layout.TRIALS}/{clipped(path.name, 80)} is a link")
        elif path.is_dir():
            study.trials[path.name] = verify_trial(path)


def _check_manifest_names(directory: Path, study: _Study, manifest: Manifest | None, ledger: Ledger) -> None:
    """Hold that the manifest seals contract, record and every sealed trial, and that the plate names it."""
    if manifest is None:
        return
    name = Name.study_manifest
    sealed = [
        f"{layout.TRIALS}/{key}/{layout.MANIFEST}"
        for key in study.trials
        if (directory / layout.TRIALS / key / layout.MANIFEST).exists()
    ]
    journal = [layout.JOURNAL] if (directory / layout.JOURNAL).exists() else []
    record = [layout.STUDY] if study.decides else []
    if (directory / layout.RESULT).exists():
        record.append(layout.RESULT)
    require_listed(manifest, [layout.CONTRACT, *record, *journal, *sealed], ledger, name)
    digest = digest_file(directory / layout.MANIFEST).sha256
    if study.plate is not None and study.plate.study_manifest_sha256 != digest:
        ledger.fail(name, f"{layout.PLATE} names another manifest than the study has")


# -- what the trials share ---------------------------------------------------------------------------------------


def _check_trials(
    record: StudyRecord, trials: Mapping[str, VerifiedTrial], finished: bool, ledger: Ledger
) -> None:
    """Hold the record's entries against the trials that are there; an unfinished study's last one may be unlisted."""
    name = Name.study_trials
    listed: set[str] = set()
    for entry in record.trials:
        if entry.key in listed:
            ledger.fail(name, f"{entry.key} is listed twice")
        listed.add(entry.key)
        trial = trials.get(entry.key)
        if trial is None:
            ledger.fail(name, f"{entry.key} is listed, and there is no such trial that counts")
        elif trial.result is None:
            ledger.unverified(name, f"{entry.key} cannot be recomputed")
        elif entry_of(trial.result) != entry:
            ours = msgspec.to_builtins(entry_of(trial.result))
            same = record.tool_version == __version__
            for found in differences(msgspec.to_builtins(entry), ours, (entry.key,), same_version=same):
                ledger.fail(name, told(*found))
    for key, trial in trials.items():
        if trial.header is not None and trial.header.plan.key != key:
            ledger.fail(name, f"the trial in {key} is {clipped(trial.header.plan.key, 80)}")
        interrupted = trial.result is None or trial.result.interrupted
        if key not in listed and not interrupted:
            if finished:
                ledger.fail(name, f"{key} counts, and the record does not list it")
            else:
                ledger.unverified(name, f"{key} is not in the record: the study ended before it was")
    for decision in record.decisions:
        if decision.trial is not None and decision.step == "judge" and decision.trial in trials:
            result = trials[decision.trial].result
            if result is not None and decision.what != f"{decision.trial}: {result.verdict.status}":
                ledger.fail(
                    name, f"a decision says {clipped(decision.what, 80)}, recomputed {result.verdict.status}"
                )
    ledger.close(name, f"{len(record.trials)} trials listed", len(record.trials))


def _check_contract(study: _Study, ledger: Ledger) -> None:
    name = Name.study_contract
    contract = study.contract
    if contract is None:
        ledger.unverified(name, f"{layout.CONTRACT} cannot be read")
        return
    held: list[tuple[str, Contract]] = []
    if study.record is not None:
        held.append((layout.STUDY, study.record.contract))
    if study.plate is not None:
        held.append((layout.PLATE, study.plate.contract))
    held += [(key, trial.header.contract) for key, trial in study.trials.items() if trial.header is not None]
    ours = msgspec.to_builtins(contract)
    for where, other in held:
        for found in differences(msgspec.to_builtins(other), ours):
            ledger.fail(name, f"{where}: {told(*found)}")
    ledger.close(name, f"the same in {len(held)} places", len(held))


def _check_prompts(study: _Study, ledger: Ledger) -> None:
    """Hold that no prompt, and no head of a cold one, occurs in two trials, or in probe and calibration."""
    name = Name.study_prompts
    contract = study.contract
    heads_differ = contract is not None and contract.cache.cold and contract.dataset is None
    asked = hashes_of_journal(study.journal)
    owners: dict[str, str] = dict.fromkeys(asked, "the probe or the calibration")
    heads: dict[str, str] = {}
    prompts = 0
    for key, trial in study.trials.items():
        for row in trial.rows:
            prompts += 1
            owner = owners.setdefault(row.prompt_sha256, key)
            head = heads.setdefault(row.prompt_head_sha256, key)
            if owner != key:
                ledger.fail(name, f"request {row.index} of {key} has a prompt of {owner}")
            elif heads_differ and head != key:
                ledger.fail(name, f"request {row.index} of {key} begins like a prompt of {head}")
        if trial.rows and trial.report.check(Name.prompts_as_sent).status == "unverified":
            ledger.unverified(name, "prompts were not kept: by the recorded digests alone none occurs twice")
    ledger.close(name, f"{prompts} prompts, and {len(asked)} of probe and calibration", prompts)


def _check_identity(study: _Study, ledger: Ledger) -> None:
    name, results = Name.study_identity, study.results
    record = study.record
    keys = list(results) if record is None else [e.key for e in record.trials if e.key in results]
    ordered: Sequence[TrialResult] = [results[key] for key in keys]
    admitted = record is not None and any(v.boundary.status is Status.invalid for v in record.shapes)
    # Levels under different limits are different curves, and its result says so.
    admitted = admitted or (study.contract is not None and study.contract.curve is not None)
    for result in ordered[1:]:
        for change in compare(ordered[0].identity_before, result.identity_before):
            if change.kind == "changed":
                (ledger.admit if admitted else ledger.fail)(name, f"{result.plan.key}: {change}")
            else:
                ledger.admit(name, f"{result.plan.key}: {change}")
    ledger.close(name, f"the same in {len(ordered)} trials", len(ordered))
