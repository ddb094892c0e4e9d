"""Pages for tests: each the output of `nameplate report` over one case of the evidence."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from msgspec import Struct

from integration.browser.evidence import ROOT


class Report(Struct, frozen=True):
    """Hold a page, the runs that it is over, and how long the command took."""

    path: Path
    runs: tuple[Path, ...]
    took_s: float

    @property
    def run(self) -> Path:
        """Return the only run."""
        (run,) = self.runs
        return run


def reports(evidence: Path, pages: Path) -> Callable[[str], Report]:
    """Return what writes the page of a case, or of several joined by `+`, the first time that it is asked for."""

    @cache
    def made(paths: str) -> Report:
        runs = tuple(evidence / path for path in paths.split("+"))
        return write(runs, pages / (paths.replace("/", "-") + ".html"))

    return made


def write(runs: tuple[Path, ...], path: Path) -> Report:
    """Run `nameplate report`; AssertionError with its words where it fails."""
    command = [sys.executable, "-m", "nameplate", "report", *map(str, runs), "-o", str(path)]
    search = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": search})
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return Report(path, runs, time.monotonic() - began)
