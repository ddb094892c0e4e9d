"""What a page is about: one run, read from its directory once, with everything that its pages show."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.evidence.header import TrialHeader
from nameplate.exchange.peers.run import Imported
from nameplate.measure.curve_result import CurveResult
from nameplate.measure.plate import Plate
from nameplate.measure.result import TrialResult
from nameplate.measure.soak_record import SoakRecord
from nameplate.measure.speed_result import SpeedResult
from nameplate.measure.study_record import StudyRecord


class TrialSubject(Struct, frozen=True, kw_only=True):
    """Hold one trial: its header and result; `result` is null where it was not sealed."""

    directory: Path
    header: TrialHeader
    result: TrialResult | None
    manifest_sha256: str | None = None

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def began(self) -> datetime:
        """Return when it began, in UTC, by the wall clock of the client."""
        return datetime.fromtimestamp(self.header.started.wall_ns / 1e9, UTC)

    @property
    def ended(self) -> datetime | None:
        """Return when it ended, by the wall clock of its beginning and its own length; None where it was not sealed."""
        if self.result is None:
            return None
        return datetime.fromtimestamp(self.began.timestamp() + self.result.elapsed_s, UTC)

    @property
    def contract(self) -> Contract:
        return self.header.contract

    @property
    def identity(self) -> Identity:
        return self.header.identity


class StudySubject(Struct, frozen=True, kw_only=True):
    """Hold what every study has: a directory with trials, in the order in which they ran."""

    directory: Path
    trials: tuple[TrialSubject, ...]
    manifest_sha256: str | None

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def began(self) -> datetime | None:
        """Return when the first trial began; None where none did."""
        return min((trial.began for trial in self.trials), default=None)

    @property
    def ended(self) -> datetime | None:
        """Return when the last trial ended, by the wall clock of its beginning and its own length."""
        return max((trial.ended or trial.began for trial in self.trials), default=None)

    @property
    def simulated(self) -> bool:
        """Tell whether its time was simulated: such evidence is of a model of a server."""
        return any(trial.header.clock == "virtual" for trial in self.trials)

    @property
    def results(self) -> tuple[TrialResult, ...]:
        return tuple(trial.result for trial in self.trials if trial.result is not None)

    def trial(self, key: str) -> TrialSubject | None:
        """Return a trial by its key."""
        return next((trial for trial in self.trials if trial.name == key), None)


class RatedSubject(StudySubject, frozen=True, kw_only=True):
    """Hold a capacity or rate study; `finished` is false where its plate was built from what there is so far."""

    plate: Plate
    record: StudyRecord
    finished: bool


class SpeedSubject(StudySubject, frozen=True, kw_only=True):
    """Hold a speed matrix, our own or an imported one, which has no trials."""

    result: SpeedResult


class CurveSubject(StudySubject, frozen=True, kw_only=True):
    """Hold a curve study."""

    result: CurveResult


class SoakSubject(Struct, frozen=True, kw_only=True):
    """Hold a soak: its record has windows, drift and fates; its segments' raw data are never read again."""

    directory: Path
    record: SoakRecord
    identity: Identity
    simulated: bool
    manifest_sha256: str | None

    @property
    def name(self) -> str:
        return self.directory.name


class ImportedSubject(Struct, frozen=True, kw_only=True):
    """Hold a result of another tool, as it was imported."""

    directory: Path
    document: Imported

    @property
    def name(self) -> str:
        return self.directory.name


Subject = RatedSubject | SpeedSubject | CurveSubject | SoakSubject | TrialSubject | ImportedSubject
