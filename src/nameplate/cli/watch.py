"""`nameplate watch`: a running or finished soak, seen from another terminal."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("watch")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--once", is_flag=True, help="Print what is known now, and end.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document of what is known now, and end."
)
@click.option(
    "--every",
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How often to look, until the soak ends.",
)
def command(directory: Path, once: bool, as_json: bool, every: str) -> int:
    """Show the soak in DIRECTORY, whether it runs, was killed or has ended. Only reads; Ctrl-C ends the watching."""
    from nameplate.cli import watch_run

    return watch_run.watch(directory, once=once, as_json=as_json, every=every)
