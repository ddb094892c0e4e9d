"""AIPerf's own summary beside the records of the same run: its numbers, its definitions, and where the two disagree."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from nameplate.contract.errors import CallerError, NameplateError
from nameplate.exchange.formats import AIPERF_SUMMARY
from nameplate.exchange.opening import object_of, open_result, read_whole
from nameplate.exchange.peers.aiperf_summary import read_summary
from nameplate.exchange.peers.records import Read
from nameplate.exchange.peers.run import Check, Run

# AIPerf names the files of a run alike; what is found so is recognised by its content all the same.
_SUMMARY = "profile_export_aiperf.json"
_ENDINGS = ("_raw.jsonl", ".jsonl")


def summary_beside(path: Path, given: Path | None) -> tuple[Path | None, str]:
    """Return where the summary is, the one given or the one beside the records; and what is to be said of it."""
    if given is not None:
        opened = open_result(given)
        if opened.format is not AIPERF_SUMMARY:
            raise CallerError(f"{given} is {opened.format.says}, not AIPerf's summary.")
        return given, ""
    names = [path.name.removesuffix(end) + "_aiperf.json" for end in _ENDINGS if path.name.endswith(end)]
    for name in dict.fromkeys((*names, _SUMMARY)):
        beside = path.with_name(name)
        if beside == path or not beside.is_file():
            continue
        try:
            if open_result(beside).format is AIPERF_SUMMARY:
                summary(beside)
                return beside, f"{name} stands beside it, and is taken for the summary of the same run."
        except NameplateError as error:
            return None, f"{name} stands beside it, and cannot be read: {error.what}"
    return None, ""


def summary(path: Path) -> Run:
    """Read a summary."""
    return read_summary(object_of(read_whole(path), path))


def joined(read: Read, summary: Run) -> Read:
    """Return the records with the summary's numbers and load, and a check of what both count."""
    ours, theirs = read.run.counts, summary.counts
    check = Check(
        "summary",
        "holds" if (ours.requests, ours.completed) == (theirs.requests, theirs.completed) else "contradicted",
        f"the summary counts {_count(theirs.completed)} of {_count(theirs.requests)} requests as successes, "
        f"the records {_count(ours.completed)} of {_count(ours.requests)} by our rules",
    )
    run = structs.replace(
        summary,
        model=summary.model or read.run.model,
        counts=theirs,
        checks=(*read.run.checks, check),
        notes=(*summary.notes, *read.run.notes),
    )
    return structs.replace(read, run=run)


def _count(value: int | None) -> str:
    return "an unknown number" if value is None else f"{value:,}"
