"""What a directory of ours holds, whichever command made it: its kind, its trials, and what evidence it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.peers.run import SCHEMA as IMPORT_SCHEMA
from nameplate.measure.curve_result import CURVE_SCHEMA
from nameplate.measure.speed_result import SPEED_SCHEMA
from nameplate.measure.study_record import decode_study

Kind = Literal["trial", "capacity", "rate", "curve", "speed", "soak", "imported runs", "imported matrix"]

_NONE = "Give the directory of a trial, of a study, or of a nameplate import."


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
        for name, path in (
            ("contract_sha256", study / layout.CONTRACT),
            ("manifest_sha256", self.directory / layout.MANIFEST),
        ):
            if path.is_file():
                said[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return said


def subject_of(directory: Path) -> Subject:
    """Say what a directory holds; CallerError where it is nothing of ours."""
    if (directory / layout.HEADER).is_file():
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
    kind = _kind(directory)
    if kind in ("imported runs", "imported matrix"):
        return Subject(directory=directory, kind=kind)
    held = directory / layout.TRIALS
    found = (
        sorted(path for path in held.iterdir() if (path / layout.HEADER).is_file()) if held.is_dir() else []
    )
    # A segment that runs has no result yet; its windows and rows are evidence all the same.
    trials = tuple(path for path in found if kind == "soak" or (path / layout.RESULT).is_file())
    unfinished = tuple(path.name for path in found if path not in trials)
    if kind is None and len(trials) != 1:
        raise CallerError(
            f"{directory} holds no study, no trial with a result and no imported file: it has no {layout.RESULT}.",
            hint=_NONE,
        )
    return Subject(directory=directory, kind=kind or "trial", trials=trials, unfinished=unfinished)


def _kind(directory: Path) -> Kind | None:
    if (directory / layout.SOAK).is_file():
        return "soak"
    if (directory / layout.STUDY).is_file():
        study = decode_study((directory / layout.STUDY).read_bytes()).study
        return "rate" if study == "rate" else "capacity"
    path = directory / layout.RESULT
    if not path.is_file():
        return None
    try:
        head = msgspec.json.decode(path.read_bytes(), type=_Head)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{path} cannot be read: {error}.") from error
    family = head.schema.partition("/")[0]
    if family == IMPORT_SCHEMA.partition("/")[0]:
        return "imported runs"
    if family == CURVE_SCHEMA.partition("/")[0]:
        return "curve"
    if family == SPEED_SCHEMA.partition("/")[0]:
        return "speed" if head.origin is None else "imported matrix"
    said = (
        f"it has the schema {head.schema!r}, which is not known here" if head.schema else "it names no schema"
    )
    raise EvidenceError(f"{path} cannot be read: {said}.", hint=_NONE)


class _Head(Struct):
    schema: str = ""
    origin: dict[str, Any] | None = None
