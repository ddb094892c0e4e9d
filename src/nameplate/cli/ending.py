"""What every study ends with: a page beside its evidence."""

from __future__ import annotations

import os
from pathlib import Path

REPORT = "report.html"


def write_report(directory: Path) -> None:
    """Write `report.html` into a run's directory and say so; a page that fails costs the run a note, nothing else."""
    from nameplate.report.console import people

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
