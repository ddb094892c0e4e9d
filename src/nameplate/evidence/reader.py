"""Reading a trial back: every file tolerantly, every torn tail said."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec

from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout, records, timeline
from nameplate.evidence.frames import Torn, read_frames
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.manifest import Manifest
from nameplate.evidence.manifest import read as read_manifest
from nameplate.evidence.rows import RequestRow

T = TypeVar("T")

# A row is some hundred bytes, a journal entry a few thousand; what is longer than this was not written by us.
LINE_LIMIT_BYTES = 16 << 20


class TrialReader:
    """Read one trial's directory; `torn` collects what was dropped while reading, a sentence each.

    While a trial runs on several workers, their files carry a suffix (`reads.zst.1`); they are read as one.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.torn: list[str] = []

    def path(self, name: str) -> Path:
        return self.directory / name

    def header(self) -> TrialHeader:
        """Read `trial.json`; EvidenceError where it is missing, damaged or of a later format."""
        try:
            raw = self.path(layout.HEADER).read_bytes()
            header = msgspec.json.decode(raw, type=TrialHeader)
        except FileNotFoundError:
            raise EvidenceError(
                f"{self.directory} is not a trial: it has no {layout.HEADER}.",
                hint="Give the directory of a trial or of a study.",
            ) from None
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            raise EvidenceError(f"{self.path(layout.HEADER)} cannot be read: {error}.") from error
        if header.version > layout.FORMAT_VERSION:
            raise EvidenceError(
                f"{self.directory} has format {header.version}; this program reads up to {layout.FORMAT_VERSION}.",
                hint="Use a newer nameplate.",
            )
        return header

    def manifest(self) -> Manifest | None:
        return read_manifest(self.directory)

    def rows(self) -> list[RequestRow]:
        """Read all request rows, by index."""
        return sorted(self._lines(layout.REQUESTS, RequestRow), key=lambda row: row.index)

    def each_row(self) -> Iterator[RequestRow]:
        """Yield all request rows as they stand, in the order in which their requests ended."""
        return self._lines(layout.REQUESTS, RequestRow)

    def journal(self) -> list[JournalEntry]:
        return list(self._lines(layout.JOURNAL, JournalEntry))

    def records(self) -> Iterator[records.Record]:
        """Yield the wire's records in the order in which they were noted."""
        for frame in self._frames(layout.READS):
            yield from self._unpacked(layout.READS, records.unpack(frame))

    def timelines(self) -> Iterator[timeline.Timeline]:
        for frame in self._frames(layout.EVENTS):
            yield from self._unpacked(layout.EVENTS, timeline.unpack(frame))

    def lines(self, name: str, kind: type[T]) -> list[T]:
        """Read a JSON-lines file of this trial as values of one type, tolerating a torn last line."""
        return list(self._lines(name, kind))

    def _unpacked(self, name: str, entries: Iterator[T]) -> Iterator[T]:
        try:
            yield from entries
        except ValueError as error:
            # The frame's checksum holds, so this is not a torn tail: somebody wrote it like this.
            raise EvidenceError(f"{self.path(name)} holds what is no evidence: {error}.") from error

    def _frames(self, name: str) -> Iterator[bytes]:
        for path in layout.parts(self.directory, name):
            try:
                yield from read_frames(path)
            except Torn as torn:
                self.torn.append(str(torn))

    def _lines(self, name: str, kind: type[T]) -> Iterator[T]:
        decoder = msgspec.json.Decoder(kind)
        for path in layout.parts(self.directory, name):
            with path.open("rb") as stream:
                for number in count(1):
                    line = stream.readline(LINE_LIMIT_BYTES)
                    if not line:
                        break
                    if len(line) == LINE_LIMIT_BYTES:
                        raise EvidenceError(
                            f"{path}, line {number}: longer than {LINE_LIMIT_BYTES >> 20} MiB."
                        )
                    if not line.endswith(b"\n"):
                        self.torn.append(f"{path.name} ends inside line {number}")
                        break
                    try:
                        yield decoder.decode(line)
                    except (msgspec.MsgspecError, RecursionError) as error:
                        raise EvidenceError(f"{path}, line {number}: {error}.") from error


def headers_of(study: Path) -> list[TrialHeader]:
    """Read the headers of a study's trials, the earliest first; EvidenceError where one is damaged."""
    found = [TrialReader(path).header() for path in layout.trials(study)]
    return sorted(found, key=lambda header: header.started.wall_ns)
