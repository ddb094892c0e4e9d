"""One run into its folder of the site: its page and its entry, made anew only where its documents changed."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, structs

from nameplate import __version__
from nameplate.contract.errors import NameplateError
from nameplate.pages.catalogue.entries import entry_of, slug_of
from nameplate.pages.catalogue.entry import Entry, decode_entry, encode_entry
from nameplate.pages.catalogue.walk import fingerprint, name_of
from nameplate.pages.checks import check
from nameplate.pages.gather import gather
from nameplate.pages.report import report_page
from nameplate.pages.writing import write_page
from nameplate.report.safe import safe

RUNS = "runs"
PAGE = "report.html"
ENTRY = "entry.json"


class Job(Struct, frozen=True, kw_only=True):
    """Hold one run to be made: where it is, all places where the same documents lie, and where it goes."""

    directory: Path
    paths: tuple[str, ...]
    fingerprint: str
    site: Path
    pages: bool

    @property
    def name(self) -> str:
        return name_of(self.directory)

    @property
    def slug(self) -> str:
        return slug_of(self.name, self.fingerprint)

    @property
    def folder(self) -> Path:
        return self.site / RUNS / self.slug


def held(job: Job) -> Entry | None:
    """Return the entry of a run that is up to date in the site already; None where it has to be made."""
    try:
        entry = decode_entry((job.folder / ENTRY).read_bytes())
    except OSError:
        return None
    if entry is None or entry.fingerprint != job.fingerprint or entry.tool_version != __version__:
        return None
    there = (job.folder / PAGE).is_file()
    if job.pages and not there and entry.page_missing is None:
        return None
    return structs.replace(entry, paths=job.paths, page=entry.page if there else None)


def make(job: Job) -> Entry | str:
    """Read a run and write its page and entry; the reason in words where it cannot be read.

    A run is never in the way of the others, whatever is wrong with it. That a page cannot be written is no fault of
    the run: CallerError.
    """
    try:
        subject = gather(job.directory)
        checked = check(job.directory, full=False)
        broken = [f"{one.of or 'the whole'}: {one.name}: {one.detail}" for one in checked.failures]
        entry = entry_of(subject, job.name, job.slug, job.fingerprint, job.paths, broken)
    except NameplateError as error:
        return safe(str(error), 1000)
    except Exception as error:
        return _fault(error)
    if job.pages:
        page: str | None = None
        missing: str | None = None
        try:
            page = report_page([subject], [checked])
        except NameplateError as error:
            missing = safe(error.what, 400)
        except Exception as error:
            missing = _fault(error)
        if page is None:
            entry = structs.replace(entry, page_missing=missing)
        else:
            write_page(job.folder / PAGE, page)
            entry = structs.replace(entry, page=f"{RUNS}/{job.slug}/{PAGE}")
    elif (job.folder / PAGE).is_file():
        # Of the same documents, made before: its address says so.
        entry = structs.replace(entry, page=f"{RUNS}/{job.slug}/{PAGE}")
    write_page(job.folder / ENTRY, encode_entry(entry).decode())
    return entry


def _fault(error: Exception) -> str:
    return safe(f"nameplate itself failed on it: {type(error).__name__}: {error}", 400)


def jobs_of(runs: tuple[Path, ...], site: Path, pages: bool) -> tuple[list[Job], list[tuple[Path, str]]]:
    """Return a job for each different run, duplicates together, and the runs whose documents cannot be read."""
    together: dict[str, list[Path]] = {}
    damaged: list[tuple[Path, str]] = []
    for run in runs:
        try:
            together.setdefault(fingerprint(run), []).append(run)
        except OSError as error:
            damaged.append((run, f"its documents cannot be read: {error.strerror or error}"))
    jobs = [
        Job(
            directory=paths[0],
            paths=tuple(safe(path, None) for path in paths),
            fingerprint=digest,
            site=site,
            pages=pages,
        )
        for digest, paths in together.items()
    ]
    return jobs, damaged
