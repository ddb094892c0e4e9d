"""`nameplate catalogue`: a static site of many runs, for any file server or none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nameplate.pages.catalogue.site import Progress

# How often a log hears of it.
_EVERY_S = 10.0


@click.command("catalogue")
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("site"),
    show_default=True,
    help="The site's folder.",
)
@click.option("--title", default="Catalogue", show_default=True, help="What the site is called.")
@click.option("--pages/--no-pages", default=True, help="Each run's own page, too.  [default: pages]")
@click.option("--rebuild", is_flag=True, help="Make everything again, not only what changed.")
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many runs are read at a time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to standard output.")
def command(
    runs: tuple[Path, ...], out: Path, title: str, pages: bool, rebuild: bool, processes: int, as_json: bool
) -> int:
    """Write a site of all runs in or below the folders RUNS: search, filter, sort by like numbers, compare.

    It opens from any file server, and without one. The next time only what changed is made again.
    """
    from nameplate.cli.output import print_json
    from nameplate.pages.catalogue.site import INDEX, make_site
    from nameplate.report import numbers
    from nameplate.report.console import people
    from nameplate.report.safe import safe_text

    with _progress() as progress:
        made = make_site(
            runs, out, title=title, pages=pages, rebuild=rebuild, processes=processes, progress=progress
        )
    if as_json:
        print_json(made.catalogue)
        return 0
    told = people()
    for one in made.catalogue.unreadable:
        told.print(safe_text(f"left out: {one.path}: {one.what}"))
    entries = len(made.catalogue.entries)
    told.print(
        safe_text(
            f"{out / INDEX}: {numbers.count(entries, 'run')}, {made.made:,} made anew"
            + (f", {made.removed:,} removed" if made.removed else "")
            + (f", {len(made.catalogue.unreadable):,} left out" if made.catalogue.unreadable else "")
        )
    )
    return 0


@contextmanager
def _progress() -> Iterator[Progress]:
    """Give what tells how far it is: a bar with the time left for a person, a line every ten seconds for a log."""
    from rich import progress as bars

    from nameplate.report import numbers
    from nameplate.report.console import animated, people

    console = people()
    first = last = time.monotonic()
    columns = (
        bars.TextColumn("runs"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True, disable=not animated(console)) as bar:
        task = bar.add_task("runs", total=None)

        def tell(done: int, total: int) -> None:
            nonlocal first, last
            bar.update(task, completed=done, total=total)
            now = time.monotonic()
            if done == 1:
                # Until then processes were started: that says nothing of the others.
                first = last = now
            elif bar.disable and done < total and now - last >= _EVERY_S:
                last = now
                left = numbers.rough((now - first) / (done - 1) * (total - done))
                console.print(f"{done:,} of {total:,} runs, {left} left")

        yield tell
