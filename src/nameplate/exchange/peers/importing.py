"""From a file to its document: recognised, read, checked, computed anew, judged where SLOs are given."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from nameplate import __version__
from nameplate.contract.errors import CallerError
from nameplate.contract.slo import Slo
from nameplate.evidence import layout
from nameplate.exchange.directories import kept_name, make_directory
from nameplate.exchange.formats import AIPERF_RAW, AIPERF_RECORDS, AIPERF_SUMMARY, GUIDELLM
from nameplate.exchange.opening import Opened, digest, object_of, objects, read_whole
from nameplate.exchange.peers.aiperf_raw import RawRecords
from nameplate.exchange.peers.aiperf_records import Records
from nameplate.exchange.peers.aiperf_summary import read_summary
from nameplate.exchange.peers.bench_serving import read_run
from nameplate.exchange.peers.beside import joined, summary_beside
from nameplate.exchange.peers.beside import summary as summary_run
from nameplate.exchange.peers.checks import checks_of
from nameplate.exchange.peers.guidellm import read_report
from nameplate.exchange.peers.judge import judge
from nameplate.exchange.peers.lines import Lines
from nameplate.exchange.peers.records import Read, recomputed
from nameplate.exchange.peers.run import Imported, Run, encode

# More than anybody appends to one file.
RUNS_LIMIT = 1_000
# A larger original is named by its digest and not copied.
KEPT_LIMIT_BYTES = 32 << 20
_WITH_RECORDS = (AIPERF_RAW, AIPERF_RECORDS)


def import_runs(opened: Opened, slos: Sequence[Slo] = (), summary: Path | None = None) -> Imported:
    """Read all runs of a file; CallerError where it cannot be read, or where SLOs cannot be judged from it."""
    kind = opened.format
    if slos and kind not in _WITH_RECORDS:
        raise CallerError(
            f"{opened.path} is {kind.says}: no SLO can be judged from it.",
            why="A verdict needs the events of every request, failures included; from aggregates, or from another "
            "meaning of the first token, it would be a guess.",
            hint="Give AIPerf's profile_export_raw.jsonl (--export-level raw) or its profile_export.jsonl; or measure "
            "with nameplate trial.",
        )
    if summary is not None and kind not in _WITH_RECORDS:
        raise CallerError(f"--summary belongs to AIPerf's records; {opened.path} is {kind.says}.")
    notes: list[str] = []
    beside, said = summary_beside(opened.path, summary) if kind in _WITH_RECORDS else (None, "")
    notes += [said] if said else []
    runs = tuple(_finished(read, opened, slos, beside) for read in _reads(opened, notes))
    return Imported(
        tool=f"nameplate {__version__}",
        format=kind.key,
        file=kept_name(opened.path),
        sha256=digest(opened.path),
        bytes=opened.bytes,
        summary=f"summary-{kept_name(beside)}" if beside is not None else None,
        summary_sha256=digest(beside) if beside is not None else None,
        runs=runs,
        notes=tuple(notes),
    )


def write_import(
    document: Imported, opened: Opened, directory: Path, summary: Path | None = None
) -> tuple[str, ...]:
    """Write the document and, unless it is large, the file itself into a new directory; return what must be said."""
    make_directory(directory)
    (directory / layout.RESULT).write_bytes(encode(document))
    beside, _ = summary_beside(opened.path, summary) if document.summary is not None else (None, "")
    if beside is not None and document.summary is not None:
        shutil.copyfile(beside, directory / document.summary)
    if opened.bytes <= KEPT_LIMIT_BYTES:
        shutil.copyfile(opened.path, directory / document.file)
        return ()
    size = f"{opened.bytes >> 20:,} MiB"
    return (f"{opened.path.name} has {size} and is not copied; {layout.RESULT} names its SHA-256.",)


def _finished(read: Read, opened: Opened, slos: Sequence[Slo], beside: Path | None) -> Run:
    """Judge a run by its own records, then set the summary beside them, and check and compute all of it."""
    judged = judge(read, slos) if opened.format in _WITH_RECORDS else None
    if beside is not None:
        read = joined(read, summary_run(beside))
    return structs.replace(
        read.run,
        recomputed=recomputed(read),
        checks=(*read.run.checks, *checks_of(read)),
        judged=judged,
    )


def _reads(opened: Opened, notes: list[str]) -> Iterator[Read]:
    kind, path = opened.format, opened.path
    if kind is AIPERF_RAW:
        yield RawRecords().read(objects(path))
    elif kind is AIPERF_RECORDS:
        yield Records().read(objects(path))
    elif kind is AIPERF_SUMMARY:
        yield Read(read_summary(object_of(read_whole(path), path)))
    elif kind is GUIDELLM:
        yield from read_report(object_of(read_whole(path), path))
    elif opened.single:
        yield read_run(object_of(read_whole(path), path), kind, path.name)
    else:
        yield from _appended(opened, notes)


def _appended(opened: Opened, notes: list[str]) -> Iterator[Read]:
    """Yield the runs of a file that holds one a line; a line that is none is named, and the others count."""
    lines, count = Lines(opened.format), 0
    for line in objects(opened.path):
        if not lines.take(line):
            continue
        count += 1
        if count > RUNS_LIMIT:
            raise CallerError(f"{opened.path} holds more than {RUNS_LIMIT:,} runs; no more can be read.")
        assert line.value is not None
        yield read_run(line.value, opened.format, f"{opened.path.name}, line {line.number}")
    lines.close(count)
    notes += [f"{check.name}: {check.detail}" for check in lines.checks() if check.status != "holds"]
