"""The book of a soak: what its segments came to, and the record that follows from them."""

from __future__ import annotations

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.evidence import layout
from nameplate.evidence.manifest import digest_file
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import SegmentEntry, SoakRecord, entry_of, exit_code_of, left_of, measured
from nameplate.studies.soak import terms_of
from nameplate.studies.soak_archive import SoakArchive


class SoakBook:
    """Keep a soak's record current: when a segment begins and ends, and after each window of one that runs."""

    def __init__(self, archive: SoakArchive, contract: Contract, command: tuple[str, ...]) -> None:
        self._archive = archive
        self._contract = contract
        before = archive.soak()
        # The command that began it stands; those of later segments are in their headers.
        self._command = before.command if before is not None else command
        self._segments: list[SegmentResult] = []
        self._entries: list[SegmentEntry] = []

    def opened(self) -> None:
        """Write the record of a soak of which nothing is known yet."""
        self._write(None, running=None)

    def ended(self, segment: SegmentResult) -> None:
        """Take a sealed segment, and renew the record."""
        directory = self._archive.trial(segment.plan.key)
        digest = digest_file(directory / layout.MANIFEST).sha256
        self._segments.append(segment)
        self._entries.append(entry_of(segment, directory, digest))
        self._write(None, running=None)

    def runs(self, segment: SegmentResult) -> SoakRecord:
        """Take what a running segment comes to so far, and renew the record."""
        return self._write(None, running=segment)

    def close(self, exit_code: int | None = None) -> SoakRecord:
        """Write the record of a soak that no longer runs; `exit_code` is that of a segment that came to nothing."""
        if exit_code is None:
            record = self._record(None, None)
            last = self._entries[-1] if self._entries else None
            exit_code = exit_code_of(record.result, last, record.left_ns)
        return self._write(exit_code, running=None)

    def _write(self, exit_code: int | None, running: SegmentResult | None) -> SoakRecord:
        record = self._record(exit_code, running)
        self._archive.write_soak(record)
        return record

    def _record(self, exit_code: int | None, running: SegmentResult | None) -> SoakRecord:
        segments, entries = list(self._segments), list(self._entries)
        if running is not None:
            segments.append(running)
            entries.append(entry_of(running, self._archive.trial(running.plan.key), None))
        return SoakRecord(
            contract=self._contract,
            segments=tuple(entries),
            left_ns=left_of(terms_of(self._contract), segments),
            result=measured(segments),
            exit_code=exit_code,
            command=self._command,
            tool_version=__version__,
        )
