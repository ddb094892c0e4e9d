"""What every study ends with: its plate and a page beside its evidence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nameplate.contract.errors import NameplateError
from nameplate.evidence import layout

if TYPE_CHECKING:
    from nameplate.studies.archive import StudyArchive

REPORT = "report.html"


def write_report(directory: Path) -> None:
    """Draw a study's plate and write `report.html` into its directory; what fails costs a note, nothing else."""
    from nameplate.report.console import people

    people().print(_plate(directory), markup=False, highlight=False, end="")
    try:
        from nameplate.pages.gather import gather
        from nameplate.pages.report import report_page
        from nameplate.pages.writing import write_page

        path = directory / REPORT
        write_page(path, report_page([gather(directory)]))
        said = f"The page: {path}"
    except Exception as error:
        if os.environ.get("NAMEPLATE_DEBUG"):
            raise
        said = f"note: the page could not be made ({error}); the evidence is complete: nameplate report {directory}"
    people().print(said, markup=False, highlight=False)


@contextmanager
def unless_refused(archive: StudyArchive) -> Iterator[None]:
    """Make a study ready to go on; one that ended and cannot go on stays what it was, sealed and with its plate."""
    sealed = archive.sealed
    try:
        yield
    except (NameplateError, KeyboardInterrupt):
        if sealed:
            archive.reseal()
            _plate(archive.directory)
        raise


def _plate(directory: Path) -> str:
    """Draw the plate of a study in all its forms, and say where; nothing of a run that has none."""
    if not any((directory / name).exists() for name in (layout.PLATE, layout.SOAK, layout.RESULT)):
        return ""
    try:
        from nameplate.ratingplate.files import write_plate

        write_plate(directory)
    except Exception as error:
        if os.environ.get("NAMEPLATE_DEBUG"):
            raise
        return f"note: the plate could not be drawn ({error}); the evidence is complete: nameplate plate {directory}\n"
    return f"The plate: {directory / layout.PLATE_SVG}, and as .png, .md and .txt\n"
