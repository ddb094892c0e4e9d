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
@click.option(
    "--verify",
    is_flag=True,
    help="Recompute everything from raw evidence first and show every check.  [default: digests alone]",
)
def command(directories: tuple[Path, ...], out: Path | None, verify: bool) -> int:
    """Write one self-contained page over the runs in DIRECTORIES: studies, soaks, trials, imports.

    Where evidence was changed after it was sealed the page says so, and the exit code is 4.
    """
    from nameplate.pages.checks import check
    from nameplate.pages.gather import gather
    from nameplate.pages.report import report_page
    from nameplate.pages.writing import write_page
    from nameplate.report.console import people
    from nameplate.report.safe import safe
    from nameplate.report.style import style_of

    subjects = [gather(directory) for directory in directories]
    checks = [check(subject.directory, full=verify) for subject in subjects]
    page = report_page(subjects, checks)
    path = out or (directories[0] / REPORT if len(directories) == 1 else Path(REPORT))
    write_page(path, page)
    people().print(f"{path} ({len(page.encode()) / 1e6:.1f} MB)", markup=False, highlight=False)
    for checked in checks:
        for one in checked.failures:
            said = f"{checked.directory}: {one.of or 'the whole'}: {one.name}: {one.detail}"
            people().print(safe(said, 1000), style=style_of("failed"), markup=False, highlight=False)
    return max(checked.exit_code for checked in checks)
