"""From a directory of ours to another program's file: one stream of bytes, or one document a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.exchange.formats_out import Format, TableName, check_format, table_for
from nameplate.exchange.subject import Subject, subject_of
from nameplate.exchange.tables.column import Table

Write = Callable[[IO[bytes]], None]


class Document(Struct, frozen=True):
    """Hold one file of several: its name, and how it is written."""

    name: str
    write: Write


class Export(Struct, frozen=True, kw_only=True):
    """Hold what is written: `write` into one file, or `documents` into a directory; `notes` must be said."""

    write: Write | None = None
    documents: tuple[Document, ...] = ()
    notes: tuple[str, ...] = ()


def export(directory: Path, format_: Format, table: TableName | None = None) -> Export:
    """Return what a format makes of a directory; CallerError, naming the alternatives, where it cannot."""
    subject = subject_of(directory)
    check_format(directory, subject.kind, format_)
    if format_ in ("csv", "parquet"):
        return _table(subject, format_, table_for(directory, subject.kind, format_, table))
    if table is not None:
        raise CallerError(f"--table belongs to csv and parquet, not to {format_}.")
    if format_ == "llm-inference-bench":
        from nameplate.exchange.inference_bench.files import export_directory

        return Export(write=_pieces(lambda: iter([export_directory(directory)])))
    if format_ == "prometheus":
        return Export(write=_pieces(lambda: _openmetrics(subject)), notes=_left_out(subject))
    return _reports(subject, format_)


def _table(subject: Subject, format_: Format, name: TableName) -> Export:
    from nameplate.exchange.tables.as_csv import csv_of
    from nameplate.exchange.tables.as_parquet import load_pyarrow, write_parquet

    notes = _left_out(subject)
    if format_ == "csv":
        return Export(write=_pieces(lambda: csv_of(table_of(subject, name))), notes=notes)
    load_pyarrow()
    return Export(write=lambda out: write_parquet(table_of(subject, name), out), notes=notes)


def table_of(subject: Subject, name: TableName) -> Table:
    """Return one table of a directory."""
    from nameplate.exchange.tables import cells, measures, requests, trials, windows

    if name == "measures":
        from nameplate.exchange.peers.exporting import runs_of

        return measures.measures_of(runs_of(subject.directory), subject.about())
    builders = {
        "requests": requests.requests_of,
        "trials": trials.trials_of,
        "windows": windows.windows_of,
        "cells": cells.cells_of,
    }
    return builders[name](subject)


def _openmetrics(subject: Subject) -> Iterator[bytes]:
    from nameplate.exchange.openmetrics import cells, runs, soak
    from nameplate.exchange.openmetrics.family import text_of
    from nameplate.exchange.peers.exporting import runs_of
    from nameplate.exchange.tables.cells import speed_result
    from nameplate.exchange.tables.windows import soak_record, soak_result

    if subject.kind == "soak":
        record = soak_record(subject)
        return text_of(soak.families_of(soak_result(subject), record.contract.target.model))
    if subject.kind in ("speed", "imported matrix"):
        return text_of(cells.families_of(speed_result(subject)))
    return text_of(runs.families_of(runs_of(subject.directory)))


def _reports(subject: Subject, format_: Format) -> Export:
    """Return a document a trial, in a directory where there may be several; invalid trials have none."""
    from nameplate.exchange.reports import report_of, soak_report_of, why_not

    if subject.kind == "soak":
        return Export(
            write=_pieces(lambda: iter([soak_report_of(subject, format_)])), notes=_left_out(subject)
        )
    refused = {path: why_not(path) for path in subject.trials}
    notes = [
        *_left_out(subject),
        *(f"{path.name} is left out: {why}." for path, why in refused.items() if why),
    ]
    kept = [path for path in subject.trials if not refused[path]]
    if not kept:
        raise CallerError(
            f"{subject.directory} holds no trial that {format_} could carry.",
            why="; ".join(notes)[:500],
            hint="Its requests and reasons can be had as a table: --to csv --table requests, or --table trials.",
        )
    if subject.single:
        return Export(write=_pieces(lambda: iter([report_of(subject, kept[0], format_)])), notes=tuple(notes))

    def document(path: Path) -> Document:
        return Document(f"{path.name}.json", _pieces(lambda: iter([report_of(subject, path, format_)])))

    return Export(documents=tuple(map(document, kept)), notes=tuple(notes))


def _pieces(made: Callable[[], Iterator[bytes]]) -> Write:
    def write(out: IO[bytes]) -> None:
        for piece in made():
            out.write(piece)

    return write


def _left_out(subject: Subject) -> tuple[str, ...]:
    names = subject.unfinished
    if not names:
        return ()
    return (f"without a result, and left out: {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}.",)
