"""Soaks for tests of pages: subjects made of measured segments, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nameplate.contract.identity import Identity
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak_record import SegmentEntry, SoakRecord, covered_ns
from nameplate.pages.subject import SoakSubject


def subject(segments: Sequence[SegmentResult], *, exit_code: int | None = 0, left_ns: int = 0) -> SoakSubject:
    """Return the subject of a soak of these segments, at least one."""
    result = measure_soak(segments)
    entries = tuple(
        SegmentEntry(key=one.segment, planned_ns=covered_ns(one), covered_ns=covered_ns(one), state="ended")
        for one in segments
    )
    record = SoakRecord(
        contract=segments[0].contract,
        segments=entries,
        left_ns=left_ns,
        result=result,
        exit_code=exit_code,
        command=("nameplate", "soak", "sim:demo"),
        tool_version="1",
    )
    return SoakSubject(
        directory=Path("runs/soak"),
        record=record,
        identity=Identity(),
        simulated=False,
        manifest_sha256=None,
    )
