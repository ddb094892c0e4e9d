"""From a file to its document: recognised, read, checked, computed anew, judged where SLOs are given."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate import __version__
from nameplate.contract.errors import CallerError
from nameplate.contract.slo import Slo
from nameplate.evidence import layout
from nameplate.exchange.directories import kept_name, make_directory
from nameplate.exchange.formats import (
    AIPERF_RAW,
    AIPERF_RECORDS,
    AIPERF_SUMMARY,
    GENAI_PERF,
    GUIDELLM,
    INFERENCE_PERF,
    LLAMA_BENCH,
    LLMD,
    LLMPERF,
    LLMPERF_RESPONSES,
    Format,
)
from nameplate.exchange.opening import Opened, digest, items_of, object_of, objects, read_whole
from nameplate.exchange.peers.aiperf_raw import RawRecords
from nameplate.exchange.peers.aiperf_records import Records
from nameplate.exchange.peers.aiperf_summary import read_genai_perf, read_summary
from nameplate.exchange.peers.bench_serving import read_run
from nameplate.exchange.peers.beside import joined, summary_beside
from nameplate.exchange.peers.beside import summary as summary_run
from nameplate.exchange.peers.checks import checks_of
from nameplate.exchange.peers.guidellm import read_report
from nameplate.exchange.peers.inference_perf import read_lifecycle
from nameplate.exchange.peers.judge import judge
from nameplate.exchange.peers.lines import Lines
from nameplate.exchange.peers.llama_bench import read_test
from nameplate.exchange.peers.llmd_report import read_llmd
from nameplate.exchange.peers.llmperf import read_llmperf, read_responses
from nameplate.exchange.peers.records import Read, recomputed
from nameplate.exchange.peers.run import Check, Imported, Run, encode

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
    checks: list[Check] = []
    runs = tuple(_finished(read, opened, slos, beside) for read in _reads(opened, checks))
    notes += [f"{check.name}: {check.detail}" for check in checks if check.status != "holds"]
    return Imported(
        tool=f"nameplate {__version__}",
        format=kind.key,
        file=kept_name(opened.path),
        sha256=digest(opened.path),
        bytes=opened.bytes,
        summary=f"summary-{kept_name(beside)}" if beside is not None else None,
        summary_sha256=digest(beside) if beside is not None else None,
        runs=runs,
        checks=tuple(checks),
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


def _reads(opened: Opened, checks: list[Check]) -> Iterator[Read]:
    kind, path = opened.format, opened.path
    whole = _WHOLE.get(kind)
    if kind is AIPERF_RAW:
        yield RawRecords().read(objects(path))
    elif kind is AIPERF_RECORDS:
        yield Records().read(objects(path))
    elif kind is LLMPERF_RESPONSES:
        yield read_responses(items_of(opened))
    elif whole is not None:
        yield Read(whole(object_of(read_whole(path), path)))
    elif kind is GUIDELLM:
        yield from read_report(object_of(read_whole(path), path))
    elif opened.single:
        yield _one(object_of(read_whole(path), path), kind, path.name)
    else:
        yield from _appended(opened, checks)


# Kinds whose file is one object that holds one run, without records of requests.
_WHOLE: Mapping[Format, Callable[[Mapping[str, msgspec.Raw]], Run]] = {
    AIPERF_SUMMARY: read_summary,
    GENAI_PERF: read_genai_perf,
    INFERENCE_PERF: read_lifecycle,
    LLMPERF: read_llmperf,
    LLMD: read_llmd,
}


def _one(top: Mapping[str, msgspec.Raw], kind: Format, place: str) -> Read:
    return Read(read_test(top, place)) if kind is LLAMA_BENCH else read_run(top, kind, place)


def _appended(opened: Opened, checks: list[Check]) -> Iterator[Read]:
    """Yield the runs of a file that holds one a line or entry; one that is none is named, and the others count."""
    lines, count = Lines(opened.format), 0
    noun = "entry" if opened.array else "line"
    for line in items_of(opened):
        if not lines.take(line):
            continue
        count += 1
        if count > RUNS_LIMIT:
            raise CallerError(f"{opened.path} holds more than {RUNS_LIMIT:,} runs; no more can be read.")
        assert line.value is not None
        yield _one(line.value, opened.format, f"{opened.path.name}, {noun} {line.number}")
    lines.close(count)
    checks += lines.checks()
