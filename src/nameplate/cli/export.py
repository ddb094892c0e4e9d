"""`nameplate export`: results of ours as tables and as other tools' files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nameplate.contract.errors import CallerError

if TYPE_CHECKING:
    from nameplate.exchange.exporting import Document, Export, Write
    from nameplate.exchange.formats_out import Format, TableName

# As `nameplate.exchange.formats_out` has them; that it is the same is a test, since the import is not worth its time.
FORMATS = ("csv", "parquet", "prometheus", "aiperf", "llm-d", "llm-inference-bench")
TABLES = ("requests", "trials", "measures", "windows", "cells")


@click.command("export")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--to", "format_", type=click.Choice(FORMATS), required=True, help="Format that is written.")
@click.option(
    "--table",
    type=click.Choice(TABLES),
    help="Of csv and parquet: which table.  [default: measures as csv, requests as parquet; of a soak windows, of a "
    "matrix cells]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write, or directory for a document a trial; it must not exist.  [default: standard output]",
)
def command(directory: Path, format_: Format, table: TableName | None, out: Path | None) -> int:
    """Write what is in DIRECTORY as a table or in another tool's format, with that tool's units and meanings.

    csv and parquet hold the same tables: requests (a row a request, of all trials), trials, measures, windows of a soak
    and cells of a matrix. prometheus is OpenMetrics text. aiperf and llm-d write a document a trial,
    llm-inference-bench a speed study. An imported result goes back with the numbers that it had.
    """
    from nameplate.exchange.exporting import export
    from nameplate.report.console import people
    from nameplate.report.safe import safe_text

    made = export(directory, format_, table)
    _write(made, format_, out)
    for note in made.notes:
        people().print(safe_text(f"note: {note}"))
    return 0


def _write(made: Export, format_: str, out: Path | None) -> None:
    if made.documents:
        if out is None:
            raise CallerError(
                f"There are {len(made.documents)} documents, one a trial.",
                hint="Give a directory for them: --out DIRECTORY. Or export one trial: DIR/trials/TRIAL.",
            )
        _into_directory(made.documents, out)
    elif made.write is not None and out is not None:
        _into_file(made.write, out)
    elif made.write is not None:
        if format_ == "parquet" and sys.stdout.isatty():
            raise CallerError("A Parquet file is no text for a terminal.", hint="Give --out FILE, or a pipe.")
        made.write(sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _into_directory(documents: tuple[Document, ...], out: Path) -> None:
    from nameplate.report.writing import unwritable

    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise _exists(out) from None
    except OSError as error:
        raise unwritable(out, error) from None
    for document in documents:
        _into_file(document.write, out / document.name)


def _into_file(write: Write, out: Path) -> None:
    """Write a file whole or not at all: what fails half way leaves nothing that looks like a result."""
    from nameplate.report.writing import unwritable

    if out.exists() or out.is_symlink():
        raise _exists(out)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        try:
            with part.open("xb") as stream:
                write(stream)
            part.rename(out)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(out, error) from None


def _exists(out: Path) -> CallerError:
    return CallerError(f"{out} exists already.", hint="Choose another --out.")
