"""The seals alone: is every file what its manifest says, and the plate what the sealed trials give?

This is what can be held in a moment. It finds evidence that was changed after it was sealed, and says nothing of
evidence that was sealed false: for that `verify` rebuilds everything from raw reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from nameplate.contract.errors import NameplateError
from nameplate.evidence import layout
from nameplate.measure.plate import decode_plate
from nameplate.measure.result import TrialResult
from nameplate.measure.result import decode as decode_result
from nameplate.measure.study_record import decode_study
from nameplate.verify.check import Counts, Report
from nameplate.verify.files import check_manifest, document, require_sealed, trial_files_safe
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.names import STUDY_VERDICT, Name
from nameplate.verify.rated import check_rated

# Larger files are raw reads and prompts of hours; what pages show is in smaller ones.
HASHED_BYTES = 16 << 20
UNFINISHED = "no manifest: it is unfinished, and nothing seals what is here"


def verify_seals(directory: Path) -> Report:
    """Hold a directory, and those of its trials, against their manifests; whatever they hold, a report comes back."""
    if (directory / layout.HEADER).exists():
        return _trial(directory)
    rated = (directory / layout.STUDY).exists()
    ledger = Ledger([Name.study_manifest, *(STUDY_VERDICT if rated else ())])
    check_manifest(directory, ledger, Name.study_manifest, UNFINISHED, HASHED_BYTES)
    trials = tuple(_trial(path) for path in _directories(directory, ledger))
    if rated:
        _plate(directory, ledger)
    kind: Literal["soak", "study"] = "soak" if (directory / layout.SOAK).exists() else "study"
    return Report(directory=str(directory), kind=kind, checks=ledger.checks(), counts=Counts(), trials=trials)


def _directories(directory: Path, ledger: Ledger) -> list[Path]:
    root = directory / layout.TRIALS
    if root.is_symlink() or not root.is_dir():
        return []
    found = []
    for path in sorted(root.iterdir()):
        if path.is_symlink():
            ledger.fail(Name.study_manifest, f"{layout.TRIALS}/{clipped(path.name, 80)} is a link")
        elif path.is_dir():
            found.append(path)
    return found


def _trial(directory: Path) -> Report:
    ledger = Ledger([Name.files, Name.manifest])
    if trial_files_safe(directory, ledger):
        ledger.close(Name.files, "regular files of sane size")
        manifest = check_manifest(directory, ledger, Name.manifest, UNFINISHED, HASHED_BYTES)
        if manifest is not None:
            require_sealed(directory, manifest, ledger, Name.manifest)
    return Report(directory=str(directory), kind="trial", checks=ledger.checks(), counts=Counts())


def _plate(directory: Path, ledger: Ledger) -> None:
    """Hold levels, boundary and plate against the results as they are sealed."""
    try:
        record = decode_study(document(directory / layout.STUDY))
        results: dict[str, TrialResult] = {}
        for entry in record.trials:
            path = directory / layout.TRIALS / entry.key / layout.RESULT
            results[entry.key] = decode_result(document(path))
        path = directory / layout.PLATE
        plate = decode_plate(document(path)) if path.exists() else None
        check_rated(directory, record, plate, results, ledger)
    except (NameplateError, OSError, ValueError, RecursionError) as error:
        ledger.stopped = f"it cannot be read: {error}"
