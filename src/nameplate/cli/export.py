"""`nameplate export`: results of ours as another tool's files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

FORMATS = ("llm-inference-bench", "aiperf", "csv", "prometheus")


@click.command("export")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--to", "format_", type=click.Choice(FORMATS), required=True, help="Format that is written.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; it must not exist.  [default: standard output]",
)
def command(directory: Path, format_: str, out: Path | None) -> int:
    """Write what is in DIRECTORY in another tool's format, with that tool's units and meanings.

    llm-inference-bench takes a speed study, aiperf one trial, csv and prometheus (OpenMetrics) a trial, all trials of a
    study or an imported file. An imported result goes back with the numbers that it had.
    """
    from nameplate.contract.errors import CallerError

    data = _written(directory, format_)
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    try:
        with out.open("xb") as stream:
            stream.write(data)
    except FileExistsError:
        raise CallerError(f"{out} exists already.", hint="Choose another --out.") from None
    except OSError as error:
        raise CallerError(
            f"{out} cannot be written: {error.strerror}.", hint="Choose another --out."
        ) from None
    return 0


def _written(directory: Path, format_: str) -> bytes:
    if format_ == "llm-inference-bench":
        from nameplate.exchange.inference_bench.files import export_directory

        return export_directory(directory)
    from nameplate.exchange.peers.exporting import export_aiperf, export_table

    return export_aiperf(directory) if format_ == "aiperf" else export_table(directory, format_)
