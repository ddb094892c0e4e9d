"""A study's directory: its contract first, its record after every trial, its manifest and plate last.

====================  =========================================================================================
`contract.json`       everything that was fixed before the first measured request
`journal.jsonl`       probe and calibration requests with their prompts, and what else happened beside the trials
`trials/KEY/`         one directory a trial (`nameplate.evidence.layout`)
`study.json`          every decision with its reason (`nameplate.measure.study_record`)
`manifest.json`       digests of the above, of each trial its manifest
`plate.json`          the rated result (`nameplate.measure.plate`); it names the manifest's digest
`plate.svg` ...       the same as a rating plate (`nameplate.ratingplate`): drawings, and no evidence
====================  =========================================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import msgspec
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.evidence import layout, manifest
from nameplate.evidence.header import PromptLength, TrialHeader
from nameplate.evidence.journal import Journal
from nameplate.evidence.reader import TrialReader
from nameplate.measure.plate import Plate, decode_plate, encode_plate
from nameplate.measure.result import TrialResult, decode
from nameplate.measure.study_record import StudyRecord, encode_study
from nameplate.schedule.stage import prompts_needed
from nameplate.studies.resume import Leftover, leftover

CONTRACT, STUDY, PLATE, TRIALS = layout.CONTRACT, layout.STUDY, layout.PLATE, layout.TRIALS


class StudyArchive:
    """Write and read one study's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def create(cls, directory: Path) -> Self:
        """Make a new study's directory; CallerError where something is there already."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise CallerError(
                    f"{directory} is not empty.",
                    why="A study never overwrites evidence.",
                    hint="Choose another --out, or go on with an interrupted study by --resume.",
                )
            (directory / TRIALS).mkdir()
        except OSError as error:
            raise CallerError(
                f"{directory} cannot be used: {error.strerror}.", hint="Choose another --out."
            ) from None
        return cls(directory)

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open an existing study; CallerError where there is none."""
        if not (directory / CONTRACT).is_file():
            raise CallerError(
                f"{directory} is not a study: it has no {CONTRACT}.",
                hint="Give the directory that --out named.",
            )
        return cls(directory)

    def discard(self) -> None:
        """Remove a study that has no contract yet."""
        if not (self.directory / CONTRACT).exists():
            (self.directory / layout.JOURNAL).unlink(missing_ok=True)
            (self.directory / TRIALS).rmdir()
            self.directory.rmdir()

    def journal(self) -> Journal:
        return Journal(self.directory / layout.JOURNAL)

    def trial(self, key: str) -> Path:
        return self.directory / TRIALS / key

    def write_contract(self, contract: Contract) -> None:
        data = msgspec.json.format(msgspec.json.encode(contract)) + b"\n"
        manifest.write_durably(self.directory / CONTRACT, data)

    def contract(self) -> Contract:
        """Read the contract; EvidenceError where it is damaged."""
        try:
            return msgspec.json.decode((self.directory / CONTRACT).read_bytes(), type=Contract)
        except (OSError, msgspec.MsgspecError) as error:
            raise EvidenceError(f"{self.directory / CONTRACT} cannot be read: {error}.") from error

    def write_record(self, record: StudyRecord) -> None:
        manifest.write_durably(self.directory / STUDY, encode_study(record))

    def seal(self) -> str:
        """Write the study's manifest and return its SHA-256."""
        names = [CONTRACT, layout.JOURNAL, STUDY, layout.SOAK, layout.RESULT]
        names += [
            str(path.relative_to(self.directory))
            for path in sorted((self.directory / TRIALS).glob(f"*/{layout.MANIFEST}"))
        ]
        manifest.seal(self.directory, [name for name in names if (self.directory / name).exists()])
        return manifest.digest_file(self.directory / layout.MANIFEST).sha256

    @property
    def sealed(self) -> bool:
        """Say whether the study came to an end and was sealed."""
        return (self.directory / layout.MANIFEST).exists()

    def write_plate(self, plate: Plate) -> None:
        manifest.write_durably(self.directory / PLATE, encode_plate(plate))

    def reopen(self) -> Leftover:
        """Read what an interrupted study left behind; nothing of it changes before it goes on."""
        results: list[TrialResult] = []
        unsealed: list[str] = []
        for path in sorted((self.directory / TRIALS).iterdir()):
            if not path.is_dir():
                continue
            sealed = manifest.read(path)
            if sealed is None or layout.RESULT not in sealed.files:
                unsealed.append(path.name)
                continue
            wrong = manifest.mismatches(path, sealed)
            if wrong:
                raise EvidenceError(
                    f"The trial {path.name} was changed after it was sealed: {wrong[0]}.",
                    hint="Remove its directory, and it will be run again as its next attempt.",
                )
            results.append(decode((path / layout.RESULT).read_bytes()))
        return leftover(results, unsealed)

    def unseal(self) -> None:
        """Take the manifest and the plates away: the study goes on."""
        for name in (layout.MANIFEST, PLATE, *layout.DRAWN):
            (self.directory / name).unlink(missing_ok=True)

    def reseal(self) -> None:
        """Seal a study that stays what it was once more: its journal has grown by an attempt to go on with it."""
        digest = self.seal()
        path = self.directory / PLATE
        if path.exists():
            plate = decode_plate(path.read_bytes())
            self.write_plate(structs.replace(plate, study_manifest_sha256=digest))

    def headers(self) -> list[TrialHeader]:
        """Read the headers of all trials that have one."""
        return [TrialReader(path).header() for path in layout.trials(self.directory)]

    def prompts_written(self) -> int:
        """Count the prompts that the trials so far took, sent or not."""
        return sum(prompts_needed(header.plan) for header in self.headers())

    def prompt_lengths(self) -> dict[str, PromptLength]:
        """Return how prompts were made, by shape, so that a resumed study makes the same."""
        return {str(header.plan.shape): header.prompt_length for header in self.headers()}
