"""`nameplate report`: one page over runs, which opens offline."""

from __future__ import annotations

from pathlib import Path

import click

from nameplate.cli.ending import REPORT


@click.command("report")
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page's file.  [default: report.html in the run, or here for several]",
)
def command(directories: tuple[Path, ...], out: Path | None) -> int:
    """Write one self-contained page over the runs in DIRECTORIES: studies, soaks, trials, imports."""
    from nameplate.pages.gather import gather
    from nameplate.pages.report import report_page
    from nameplate.pages.writing import write_page
    from nameplate.report.console import people

    page = report_page([gather(directory) for directory in directories])
    path = out or (directories[0] / REPORT if len(directories) == 1 else Path(REPORT))
    write_page(path, page)
    people().print(f"{path} ({len(page.encode()) / 1e6:.1f} MB)", markup=False, highlight=False)
    return 0
