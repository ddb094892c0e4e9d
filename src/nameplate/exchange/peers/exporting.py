"""From a directory of ours to another tool's text: a trial, every trial of a study, or an imported file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.peers.aiperf_out import aiperf_of
from nameplate.exchange.peers.own import run_of
from nameplate.exchange.peers.run import SCHEMA, Run, decode
from nameplate.exchange.peers.tables import csv_of, openmetrics_of
from nameplate.measure.result import decode as decode_result

TABLES: Mapping[str, Callable[[Sequence[Run]], bytes]] = {"csv": csv_of, "prometheus": openmetrics_of}


def export_table(directory: Path, kind: str) -> bytes:
    """Return all runs of a directory as `csv` or `prometheus` text."""
    return TABLES[kind](runs_of(directory))


def export_aiperf(directory: Path) -> bytes:
    """Return one trial as AIPerf's summary; CallerError where the directory is none."""
    if not _is_trial(directory):
        raise CallerError(
            f"{directory} is no trial.",
            why="AIPerf's summary holds one run.",
            hint="Name one of its trials: DIR/trials/TRIAL.",
        )
    reader = TrialReader(directory)
    verdict = decode_result((directory / layout.RESULT).read_bytes()).verdict
    return aiperf_of(reader.header(), reader.rows(), reader.timelines(), verdict)


def runs_of(directory: Path) -> tuple[Run, ...]:
    """Return the runs of a trial, of a study's trials, or of an imported file; CallerError where there are none."""
    if _is_trial(directory):
        return (_run(directory),)
    trials = directory / layout.TRIALS
    kept = sorted(path for path in trials.iterdir() if _is_trial(path)) if trials.is_dir() else []
    if kept:
        return tuple(_run(path) for path in kept)
    path = directory / layout.RESULT
    if path.is_file() and SCHEMA.encode() in path.read_bytes()[:200]:
        return decode(path.read_bytes()).runs
    raise CallerError(
        f"{directory} holds no trial with a result, and no imported file.",
        hint="Give the directory of a trial, of a study with trials, or of a nameplate import.",
    )


def _is_trial(directory: Path) -> bool:
    return (directory / layout.HEADER).is_file() and (directory / layout.RESULT).is_file()


def _run(directory: Path) -> Run:
    result = decode_result((directory / layout.RESULT).read_bytes())
    return run_of(result, TrialReader(directory).header(), directory.name)
