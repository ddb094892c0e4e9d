"""Trials of ours, and imported runs, as runs that stand beside each other: what tables and texts are made of."""

from __future__ import annotations

from pathlib import Path

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.peers.own import run_of
from nameplate.exchange.peers.run import Run, decode
from nameplate.exchange.subject import subject_of
from nameplate.measure.result import decode as decode_result


def runs_of(directory: Path) -> tuple[Run, ...]:
    """Return the runs of a trial, of a study's trials, or of an imported file; CallerError where there are none."""
    subject = subject_of(directory)
    if subject.kind == "imported runs":
        return decode((directory / layout.RESULT).read_bytes()).runs
    if subject.kind in ("soak", "speed", "imported matrix") or not subject.trials:
        raise CallerError(
            f"{directory} holds no load test with a result.",
            hint="Give the directory of a trial, of a study with trials, or of a nameplate import.",
        )
    return tuple(_run(path) for path in subject.trials)


def _run(directory: Path) -> Run:
    result = decode_result((directory / layout.RESULT).read_bytes())
    return run_of(result, TrialReader(directory).header(), directory.name)
