"""One trial of ours as another tool's report: AIPerf's summary or the llm-d benchmark report."""

from __future__ import annotations

from pathlib import Path

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.formats_out import Format
from nameplate.exchange.subject import Subject
from nameplate.measure.curve_result import decode_curve
from nameplate.measure.result import decode


def why_not(directory: Path) -> str:
    """Say why a trial has no report; empty where it has one.

    An invalid one has no numbers, and such a report no place for its status.
    """
    result = decode((directory / layout.RESULT).read_bytes())
    if result.plan.cut:
        return "its load was held and cut as planned, so that it has no requests of a load test"
    verdict = result.verdict
    if verdict.status != "invalid":
        return ""
    return f"its verdict is invalid ({'; '.join(verdict.reasons)[:200]})"


def report_of(subject: Subject, directory: Path, format_: Format) -> bytes:
    """Return one trial's report."""
    reader = TrialReader(directory)
    result = decode((directory / layout.RESULT).read_bytes())
    if format_ == "aiperf":
        from nameplate.exchange.peers.aiperf_out import aiperf_of

        return aiperf_of(reader.header(), reader.rows(), reader.timelines(), result.verdict)
    from nameplate.exchange.llmd.report import report_of as llmd_of

    stage = stage_of(subject, directory.name)
    return llmd_of(reader.header(), reader.rows(), reader.timelines(), result, stage)


def stage_of(subject: Subject, trial: str) -> int | None:
    """Return which level of a curve a trial is of, counted from 0; None elsewhere: a search has no order of levels."""
    if subject.kind != "curve":
        return None
    rows = decode_curve((subject.directory / layout.RESULT).read_bytes()).rows
    return next((at for at, row in enumerate(rows) if trial in row.trials), None)


def soak_report_of(subject: Subject, format_: Format) -> bytes:
    """Return a soak's report, from its windows and sketches: its raw data are not read again."""
    from nameplate.exchange.tables.windows import soak_record, soak_result

    record, result = soak_record(subject), soak_result(subject)
    if format_ == "aiperf":
        from nameplate.exchange.peers.aiperf_soak import aiperf_of_soak

        return aiperf_of_soak(record, result)
    from nameplate.exchange.llmd.soak import report_of_soak

    return report_of_soak(record, result)
