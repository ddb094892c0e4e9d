"""`nameplate export`: a speed result of ours as another tool's result file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

FORMATS = ("llm-inference-bench",)


@click.command("export")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--to", "format_", type=click.Choice(FORMATS), required=True, help="Tool whose format is written."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; it must not exist.  [default: standard output]",
)
def command(directory: Path, format_: str, out: Path | None) -> int:
    """Write the speed result in DIRECTORY in another tool's format, with that tool's units and meanings.

    An imported result goes back with the numbers that it had.
    """
    from nameplate.contract.errors import CallerError
    from nameplate.exchange.inference_bench.files import export_directory

    del format_  # there is one so far
    data = export_directory(directory)
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
