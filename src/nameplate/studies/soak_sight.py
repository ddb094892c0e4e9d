"""A soak seen from outside: files are read, nothing is written, whether it runs, was killed or has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.errors import CallerError, EvidenceError, NameplateError
from nameplate.evidence import layout
from nameplate.evidence.manifest import digest_file
from nameplate.measure.soak.fold import SegmentFold
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import (
    SegmentEntry,
    SoakRecord,
    entry_of,
    has_begun,
    left_of,
    measured,
    segment_number,
)
from nameplate.studies.soak import terms_of
from nameplate.studies.soak_archive import SoakArchive, is_written
from nameplate.trial.segment import read_segment

State = Literal["running", "ended", "killed", "unknown"]

# Where the file system has no locks: a soak writes each second, and its server's samples come each second too.
ALIVE_S = 30.0


class SoakSight(Struct, frozen=True, kw_only=True):
    """Hold what its files tell of a soak.

    `state` is `running` while its process holds it, `ended` once it is sealed, `killed` where neither is so.
    `heartbeat_s` is how long ago anything of it was written. `left_ns` is what is left of its duration. `record` is
    what stands in its files now: of a running one it is newer than `soak.json`.
    """

    directory: str
    state: State
    heartbeat_s: float | None
    left_ns: int
    record: SoakRecord


class SoakSights:
    """Look at one soak again and again: what was read once is not read again."""

    def __init__(self, directory: Path, *, wall_s: Callable[[], float] = time.time) -> None:
        self.directory = soak_directory(directory)
        self._wall_s = wall_s
        self._archive = SoakArchive(self.directory)
        self._contract: Contract | None = None
        self._sealed: dict[str, SegmentResult] = {}
        self._folds: dict[str, SegmentFold] = {}

    def look(self) -> SoakSight:
        """Read what is new. EvidenceError where the contract is damaged."""
        if self._contract is None:
            self._contract = self._archive.contract()
        contract = self._contract
        written = is_written(self.directory)
        results: list[SegmentResult] = []
        entries: list[SegmentEntry] = []
        for path in self._segments():
            result, digest = self._segment(path)
            if result is not None:
                results.append(result)
                entries.append(entry_of(result, path, digest))
        recorded = self._recorded()
        heartbeat_s = self._heartbeat_s()
        state = self._state(written, heartbeat_s)
        left_ns = left_of(terms_of(contract), results)
        record = SoakRecord(
            contract=contract,
            segments=tuple(entries),
            left_ns=left_ns,
            result=measured(results),
            exit_code=recorded.exit_code if recorded is not None and state == "ended" else None,
            command=recorded.command if recorded is not None else (),
            tool_version=recorded.tool_version if recorded is not None else "",
        )
        return SoakSight(
            directory=str(self.directory),
            state=state,
            heartbeat_s=heartbeat_s,
            left_ns=left_ns,
            record=record,
        )

    def _segments(self) -> list[Path]:
        root = self.directory / layout.TRIALS
        found = [path for path in root.iterdir() if _is_there(path)] if root.is_dir() else []
        return sorted(found, key=lambda path: segment_number(path.name))

    def _segment(self, path: Path) -> tuple[SegmentResult | None, str | None]:
        """Return a segment's result so far, and its manifest's digest once it is sealed; None before its first row."""
        if (path / layout.MANIFEST).exists() and (path / layout.RESULT).exists():
            if path.name not in self._sealed:
                self._sealed[path.name] = read_segment(path)
                self._folds.pop(path.name, None)
            return self._sealed[path.name], digest_file(path / layout.MANIFEST).sha256
        try:
            fold = self._folds.get(path.name)
            if fold is None:
                fold = self._folds[path.name] = SegmentFold(path)
            return fold.finish(), None
        except (EvidenceError, OSError):
            # Damaged, or just being sealed: the next look tells.
            return None, None

    def _recorded(self) -> SoakRecord | None:
        try:
            return self._archive.soak()
        except NameplateError:
            return None

    def _heartbeat_s(self) -> float | None:
        newest = [_newest(path) for path in (self.directory, *self._segments()[-1:])]
        last = max((moment for moment in newest if moment is not None), default=None)
        return None if last is None else max(0.0, self._wall_s() - last)

    def _state(self, written: bool | None, heartbeat_s: float | None) -> State:
        if written:
            return "running"
        if (self.directory / layout.MANIFEST).exists():
            return "ended"
        if written is None:
            return "running" if heartbeat_s is not None and heartbeat_s < ALIVE_S else "unknown"
        return "killed"


def _is_there(segment: Path) -> bool:
    """Tell whether there is anything of a segment to be seen."""
    try:
        return has_begun(segment)
    except (NameplateError, OSError):
        return False


def _newest(directory: Path) -> float | None:
    """Return when the newest file of a directory was written, by the wall clock."""
    try:
        return max(
            (entry.stat().st_mtime for entry in os.scandir(directory) if entry.is_file()), default=None
        )
    except OSError:
        return None


def soak_directory(path: Path) -> Path:
    """Return the soak that a path means: itself, the one that it is a segment of, or the newest one below it."""
    if _is_soak(path):
        return path
    if (path / layout.HEADER).exists() and _is_soak(path.parent.parent):
        return path.parent.parent
    below = [entry for entry in path.iterdir() if entry.is_dir() and _is_soak(entry)]
    if below:
        return max(below, key=lambda entry: (_newest(entry) or 0.0, entry.name))
    raise CallerError(
        f"{path} holds no soak.",
        hint="Give the directory that --out named, or the one above it, such as runs/.",
    )


def _is_soak(path: Path) -> bool:
    try:
        contract = msgspec.json.decode((path / layout.CONTRACT).read_bytes(), type=_Contract)
    except (OSError, msgspec.MsgspecError):
        return False
    return contract.soak is not None


class _Contract(Struct):
    soak: dict[str, object] | None = None
