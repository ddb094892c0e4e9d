"""A soak's directory: that of every study, with a record of its own and segments for trials.

====================  =========================================================================================
`contract.json`       the terms: everything that was fixed before the first request
`journal.jsonl`       probe and calibration requests with their prompts
`trials/soak.sN/`     one directory a segment (`nameplate.evidence.layout`), each sealed for itself
`soak.json`           segments, measurement and verdict (`nameplate.measure.soak_record`), renewed after each window
`manifest.json`       digests of the above, of each segment its manifest
====================  =========================================================================================

The process that runs a soak holds a lock on `contract.json`; the kernel takes it away with the process, however that
ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from nameplate.contract.errors import CallerError, EvidenceError
from nameplate.evidence import layout, manifest
from nameplate.evidence.reader import TrialReader
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import (
    SoakRecord,
    decode_soak_record,
    encode_soak_record,
    has_begun,
    left_of,
    reads_bytes_of,
    segment_number,
)
from nameplate.prompts.store import PromptStore
from nameplate.studies.archive import StudyArchive
from nameplate.studies.soak import terms_of
from nameplate.trial.segment import read_segment, seal_segment

# An orphaned load process writes what it holds and ends; it flushes each second.
STILL_S = 3.0
STILL_LIMIT_S = 120.0
LOCK_TRIES = 10


class Before(Struct, frozen=True):
    """Hold what a soak that goes on has: its sealed segments by key, in order, and keys that came to nothing.

    `killed` are the keys of those that were sealed only now, `reads_bytes` how much raw reads each segment keeps.
    """

    segments: Mapping[str, SegmentResult]
    spoiled: frozenset[str]
    killed: frozenset[str]
    left_ns: int
    reads_bytes: tuple[int, ...]


class SoakArchive(StudyArchive):
    """Write and read one soak's directory."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the soak as the one process that writes it; CallerError where another one does."""
        descriptor = os.open(self.directory / layout.CONTRACT, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Somebody who watches looks at the lock for a moment.
                time.sleep(0.05)
            except OSError:
                return  # A file system without locks: then nobody can hold one either.
            else:
                return
        raise CallerError(
            f"The soak in {self.directory} is still running.",
            why="Two processes would write one soak.",
            hint=f"Look on with nameplate watch {self.directory}, or end that process first.",
        )

    def wait_until_still(self) -> None:
        """Wait until what a killed process left behind writes no more; CallerError if that never ends."""
        deadline = time.monotonic() + STILL_LIMIT_S
        while (age_s := self._age_s()) < STILL_S:
            if time.monotonic() > deadline:
                raise CallerError(
                    f"{self.directory} is still written to.",
                    why="What is written belongs to the segment before.",
                    hint="Is a load process of the soak alive? End it, and try again.",
                )
            time.sleep(STILL_S - age_s)

    def _age_s(self) -> float:
        """Return how long ago the last file of an unsealed segment changed."""
        files = [
            path
            for segment in self._segments()
            if not (segment / layout.MANIFEST).exists()
            for path in segment.iterdir()
        ]
        newest = max((path.stat().st_mtime for path in files), default=0.0)
        # A clock that was set back makes files of the future: they are as good as new.
        return max(0.0, time.time() - newest)

    def _segments(self) -> list[Path]:
        root = self.directory / layout.TRIALS
        return sorted(
            (path for path in root.iterdir() if path.is_dir()), key=lambda path: segment_number(path.name)
        )

    def reopen_soak(self) -> Before:
        """Read the segments so far, and seal as it is the one that was killed; nothing of it is thrown away.

        EvidenceError where a sealed one was changed since.
        """
        segments: dict[str, SegmentResult] = {}
        spoiled: set[str] = set()
        killed: set[str] = set()
        for path in self._segments():
            sealed = manifest.read(path)
            if sealed is not None and layout.RESULT in sealed.files:
                wrong = manifest.mismatches(path, sealed)
                if wrong:
                    raise EvidenceError(
                        f"The segment {path.name} was changed after it was sealed: {wrong[0]}.",
                        hint="A soak goes on only from whole evidence; nameplate verify tells more.",
                    )
                segments[path.name] = read_segment(path)
            elif has_begun(path):
                segments[path.name] = seal_segment(path)
                killed.add(path.name)
            else:
                spoiled.add(path.name)
        left_ns = left_of(terms_of(self.contract()), segments.values())
        reads_bytes = tuple(reads_bytes_of(self.trial(key)) for key in segments)
        return Before(segments, frozenset(spoiled), frozenset(killed), left_ns, reads_bytes)

    def write_soak(self, record: SoakRecord) -> None:
        manifest.write_durably(self.directory / layout.SOAK, encode_soak_record(record))

    def soak(self) -> SoakRecord | None:
        """Read the record; None where there is none yet."""
        try:
            return decode_soak_record((self.directory / layout.SOAK).read_bytes())
        except FileNotFoundError:
            return None

    def prompts_written(self) -> int:
        """Count the prompts that the segments so far took, sent or not."""
        return sum(_prompts(path) for path in self._segments())


def _prompts(segment: Path) -> int:
    """Count a segment's prompts: those that were kept, or else the requests that have a row."""
    path = segment / layout.PROMPTS
    if path.exists():
        with PromptStore.open(path) as store:
            return len(store)
    return sum(1 for _ in TrialReader(segment).rows())


def is_written(directory: Path) -> bool | None:
    """Say whether a process holds the soak in a directory; None where the file system does not tell."""
    try:
        descriptor = os.open(directory / layout.CONTRACT, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        os.close(descriptor)
