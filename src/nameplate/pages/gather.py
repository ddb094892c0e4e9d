"""Reading a directory as a subject: what it is follows from its files, and nothing is measured again."""

from __future__ import annotations

from pathlib import Path

from nameplate.contract.identity import Identity
from nameplate.evidence import layout, manifest
from nameplate.evidence.reader import TrialReader, headers_of
from nameplate.exchange.kind import only_trial, required_kind
from nameplate.exchange.peers.run import decode as decode_import
from nameplate.measure.curve_result import decode_curve
from nameplate.measure.plate import Plate, decode_plate
from nameplate.measure.plate_builder import build_plate
from nameplate.measure.result import decode as decode_result
from nameplate.measure.soak_record import decode_soak_record
from nameplate.measure.speed_result import decode_speed
from nameplate.measure.study_record import StudyRecord, decode_study
from nameplate.measure.trace_on_disk import read_header
from nameplate.pages.subject import (
    CurveSubject,
    ImportedSubject,
    RatedSubject,
    SoakSubject,
    SpeedSubject,
    Subject,
    TrialSubject,
)
from nameplate.verdict.boundary import Status, boundary
from nameplate.verdict.shape import ShapeVerdict


def gather(directory: Path) -> Subject:
    """Read a run's directory; CallerError where it is none, EvidenceError where it is damaged."""
    match required_kind(directory):
        case "trial":
            return _trial(directory)
        case "trials":
            # A single trial is a directory of its own within the one that --out named.
            return _trial(only_trial(directory))
        case "soak":
            return _soak(directory)
        case "rated":
            return _rated(directory)
        case "import":
            return ImportedSubject(
                directory=directory, document=decode_import((directory / layout.RESULT).read_bytes())
            )
        case "curve":
            return CurveSubject(
                directory=directory,
                trials=_trials(directory),
                manifest_sha256=manifest.digest_of(directory),
                result=decode_curve((directory / layout.RESULT).read_bytes()),
            )
        case "speed":
            return SpeedSubject(
                directory=directory,
                trials=_trials(directory),
                manifest_sha256=manifest.digest_of(directory),
                result=decode_speed((directory / layout.RESULT).read_bytes()),
            )


def _trial(directory: Path) -> TrialSubject:
    path = directory / layout.RESULT
    return TrialSubject(
        directory=directory,
        header=read_header(TrialReader(directory)),
        result=decode_result(path.read_bytes()) if path.is_file() else None,
        manifest_sha256=manifest.digest_of(directory),
    )


def _trials(directory: Path) -> tuple[TrialSubject, ...]:
    found = map(_trial, layout.trials(directory))
    return tuple(sorted(found, key=lambda trial: (trial.header.started.wall_ns, trial.name)))


def _rated(directory: Path) -> RatedSubject:
    record = decode_study((directory / layout.STUDY).read_bytes())
    trials = _trials(directory)
    path = directory / layout.PLATE
    plate = decode_plate(path.read_bytes()) if path.is_file() else _so_far(record, trials)
    return RatedSubject(
        directory=directory,
        trials=trials,
        manifest_sha256=manifest.digest_of(directory),
        plate=plate,
        record=record,
        finished=path.is_file(),
    )


def _so_far(record: StudyRecord, trials: tuple[TrialSubject, ...]) -> Plate:
    """Return a plate of what a study has that was not ended: it rates nothing that it did not finish."""
    held = {trial.name: trial.result for trial in trials}
    results = [result for entry in record.trials if (result := held.get(entry.key)) is not None]
    done = {verdict.shape: verdict for verdict in record.shapes}
    verdicts = [
        done.get(shape)
        or ShapeVerdict(
            shape=shape,
            boundary=boundary(Status.interrupted, {}),
            levels=(),
            operate_at=None,
            reason="the study was not ended: its process was killed, or still runs",
            trials=tuple((entry.key, entry.status) for entry in record.trials if entry.shape == shape),
        )
        for shape in record.contract.shapes
    ]
    identity = results[-1].identity_before if results else Identity()
    return build_plate(record.contract, verdicts, results, identity, study_manifest_sha256=None)


def _soak(directory: Path) -> SoakSubject:
    record = decode_soak_record((directory / layout.SOAK).read_bytes())
    headers = headers_of(directory)
    return SoakSubject(
        directory=directory,
        record=record,
        identity=headers[0].identity if headers else Identity(),
        simulated=any(header.clock == "virtual" for header in headers),
        manifest_sha256=manifest.digest_of(directory),
    )
