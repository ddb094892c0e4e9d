"""What a directory of ours holds, whichever command made it: its kind, its trials, and what evidence it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout, manifest
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.kind import RunKind, only_trial, required_kind
from nameplate.measure.speed_result import decode_speed
from nameplate.measure.study_record import decode_study

Kind = Literal["trial", "capacity", "rate", "curve", "speed", "soak", "imported runs", "imported matrix"]


class Subject(Struct, frozen=True, kw_only=True):
    """Hold a directory: `trials` are those with a result, by name; `unfinished` names those without one.

    `single` says that it is one trial's directory, or that of a run of one trial.
    """

    directory: Path
    kind: Kind
    trials: tuple[Path, ...] = ()
    unfinished: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        return self.kind == "trial"

    def about(self) -> Mapping[str, str]:
        """Return what its tables were made of: the kind, and digests of the contract and of the manifest."""
        said = {"kind": self.kind.replace(" ", "-")}
        study = self.directory
        if (study / layout.HEADER).exists() and study.resolve().parent.name == layout.TRIALS:
            study = study.resolve().parent.parent
        if (study / layout.CONTRACT).is_file():
            said["contract_sha256"] = manifest.digest_file(study / layout.CONTRACT).sha256
        if (digest := manifest.digest_of(self.directory)) is not None:
            said["manifest_sha256"] = digest
        return said


def subject_of(directory: Path) -> Subject:
    """Say what a directory holds; CallerError where it is nothing of ours."""
    held = required_kind(directory)
    if held == "trial":
        return _trial(directory)
    kind = _kind(directory, held)
    if kind in ("imported runs", "imported matrix"):
        return Subject(directory=directory, kind=kind)
    found = layout.trials(directory)
    # A segment that runs has no result yet; its windows and rows are evidence all the same.
    trials = tuple(path for path in found if kind == "soak" or (path / layout.RESULT).is_file())
    unfinished = tuple(path.name for path in found if path not in trials)
    if kind == "trial" and len(trials) != 1:
        return _trial(only_trial(directory))
    return Subject(directory=directory, kind=kind, trials=trials, unfinished=unfinished)


def _trial(directory: Path) -> Subject:
    if not (directory / layout.RESULT).is_file():
        raise CallerError(
            f"{directory} is a trial without a result: it was cut short.",
            hint="Give the directory of its study, or of a trial that ended.",
        )
    if TrialReader(directory).header().plan.soak is not None:
        raise CallerError(
            f"{directory} is a segment of a soak.",
            why="Its numbers are those of its soak.",
            hint="Give the directory of the soak.",
        )
    return Subject(directory=directory, kind="trial", trials=(directory,))


def _kind(directory: Path, held: RunKind) -> Kind:
    match held:
        case "rated":
            study = decode_study((directory / layout.STUDY).read_bytes()).study
            return "rate" if study == "rate" else "capacity"
        case "speed":
            origin = decode_speed((directory / layout.RESULT).read_bytes()).origin
            return "speed" if origin is None else "imported matrix"
        case "import":
            return "imported runs"
        case "trials":
            return "trial"
    return held
