"""A site of many runs, written so that a second time only what changed is made again."""

from __future__ import annotations

import multiprocessing
import re
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from nameplate import __version__
from nameplate.contract.errors import CallerError
from nameplate.pages.catalogue.build import ENTRY, PAGE, RUNS, Job, held, jobs_of, make
from nameplate.pages.catalogue.entry import Catalogue, Entry, Unreadable, encode_catalogue
from nameplate.pages.catalogue.index import CHARTS, index_page
from nameplate.pages.catalogue.walk import find_runs
from nameplate.pages.document import asset
from nameplate.pages.writing import write_page
from nameplate.report.safe import safe

INDEX = "index.html"
DOCUMENT = "catalogue.json"
# Starting a process costs as much as some pages do.
_WORTH_A_PROCESS = 8
_SLUG = re.compile(r"[a-z0-9-]+-[0-9a-f]{12}")

# Called with how many runs are done, and how many there are to make.
Progress = Callable[[int, int], None]


class Made(Struct, frozen=True, kw_only=True):
    """Say what a site came to: all it shows, how many runs were made anew, and how many files changed or went."""

    catalogue: Catalogue
    made: int
    written: int
    removed: int


def make_site(
    roots: Sequence[Path],
    site: Path,
    *,
    title: str = "Catalogue",
    pages: bool = True,
    rebuild: bool = False,
    processes: int = 2,
    progress: Progress | None = None,
) -> Made:
    """Write the site of all runs in or below these folders; CallerError where it cannot be written.

    Runs that are no longer there are taken out of the site, with their pages.
    """
    if site.exists() and not site.is_dir():
        raise CallerError(f"{site} is a file.", hint="Give a folder for the site with --out.")
    found = find_runs(roots, leave_out=site)
    jobs, damaged = jobs_of(found.runs, site, pages)
    ready = {} if rebuild else {job.slug: entry for job in jobs if (entry := held(job)) is not None}
    wanted = [job for job in jobs if job.slug not in ready]
    entries, unreadable = (
        list(ready.values()),
        [*found.unreadable, *(_damaged(path, why) for path, why in damaged)],
    )
    # Closed at once where it is interrupted: a traceback would keep it, and its processes, at work.
    with closing(_made(wanted, processes)) as results:
        for done, (job, result) in enumerate(results, 1):
            if isinstance(result, Entry):
                entries.append(result)
            else:
                unreadable += [Unreadable(path, result) for path in job.paths]
            if progress is not None:
                progress(done, len(wanted))
    catalogue = Catalogue(
        title=safe(title, 120),
        entries=tuple(sorted(entries, key=_newest_first)),
        unreadable=tuple(sorted(unreadable, key=lambda one: (one.path, one.what))),
        tool_version=__version__,
    )
    removed = _remove_others(site, {entry.slug for entry in entries})
    written = sum(
        _write_if_changed(site / name, text)
        for name, text in (
            (f"assets/{CHARTS}", asset(CHARTS)),
            (DOCUMENT, encode_catalogue(catalogue).decode()),
            (INDEX, index_page(catalogue)),
        )
    )
    return Made(catalogue=catalogue, made=len(entries) - len(ready), written=written, removed=removed)


def _newest_first(entry: Entry) -> tuple[bool, tuple[int, ...], str]:
    # Dates are text of one form: its letters, turned round, order from new to old.
    return entry.began is None, tuple(-ord(letter) for letter in entry.began or ""), entry.slug


def _damaged(path: Path, why: str) -> Unreadable:
    return Unreadable(safe(path, None), why)


def _made(jobs: Sequence[Job], processes: int) -> Generator[tuple[Job, Entry | str], None, None]:
    """Make runs, some at a time; one that takes its process down with it is tried alone, and then named."""
    if processes < 2 or len(jobs) < _WORTH_A_PROCESS:
        yield from ((job, make(job)) for job in jobs)
        return
    broken: list[Job] = []
    with _pool(processes) as pool:
        with _interrupts_held_back():
            waiting = {pool.submit(make, job): job for job in jobs}
        try:
            for future in as_completed(waiting):
                try:
                    yield waiting[future], future.result()
                except BrokenProcessPool:
                    broken.append(waiting[future])
        finally:
            # Whoever stops it waits for the runs in hand alone: they are whole, and are not made again.
            pool.shutdown(cancel_futures=True)
    for job in broken:
        with _pool(1) as pool:
            with _interrupts_held_back():
                future = pool.submit(make, job)
            try:
                yield job, future.result()
            except BrokenProcessPool:
                yield (
                    job,
                    "the process that read it was killed: this machine's memory may not be enough for it",
                )


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that a Ctrl-C in their terminal does not reach: the parent gets it, afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write_if_changed(path: Path, text: str) -> bool:
    try:
        if path.read_bytes() == text.encode("utf-8", "replace"):
            return False
    except OSError:
        pass
    write_page(path, text)
    return True


def _remove_others(site: Path, slugs: Iterable[str]) -> int:
    """Remove the folders of runs that the site no longer shows; whatever else lies in it is left alone."""
    kept = set(slugs)
    removed = 0
    for entry in (site / RUNS).glob(f"*/{ENTRY}"):
        folder = entry.parent
        if folder.name in kept or not _SLUG.fullmatch(folder.name) or folder.is_symlink():
            continue
        for name in (ENTRY, PAGE):
            (folder / name).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
        removed += 1
    return removed
