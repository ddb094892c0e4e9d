"""Finding runs below folders, by their files: bounded, and safe against loops of links."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from nameplate.evidence import layout
from nameplate.pages.catalogue.entry import Unreadable
from nameplate.report.safe import safe

# What makes a folder a run. A contract alone is the beginning of one, or the frame of single trials.
MARKS = (layout.HEADER, layout.STUDY, layout.SOAK, layout.RESULT)
# What says what a run came to.
DOCUMENTS = (*MARKS, layout.CONTRACT, layout.PLATE, layout.MANIFEST)

# Far above what a team's runs need, far below a whole disk.
MOST_FOLDERS = 200_000
DEEPEST = 24


class Found(Struct, frozen=True):
    """Hold what a walk found: runs in the order of their paths, and folders that could not be looked into."""

    runs: tuple[Path, ...]
    unreadable: tuple[Unreadable, ...]


def find_runs(roots: Iterable[Path], leave_out: Path | None = None, most: int = MOST_FOLDERS) -> Found:
    """Find every run in or below these folders.

    A run's own trials belong to it and are none of their own. Links are followed, each folder is visited once; hidden
    folders and `leave_out` (the site itself) are passed over.
    """
    walk = _Walk(leave_out, most)
    runs = [run for root in roots for run in walk.below(root)]
    return Found(tuple(dict.fromkeys(runs)), tuple(walk.unreadable))


class _Walk:
    """Walk folders once each."""

    def __init__(self, leave_out: Path | None, most: int) -> None:
        self.unreadable: list[Unreadable] = []
        self._most = most
        self._seen: set[tuple[int, int]] = set()
        if leave_out is not None and (held := _identity(leave_out)) is not None:
            self._seen.add(held)

    def below(self, root: Path) -> Iterator[Path]:
        waiting = [(root, 0)]
        while waiting:
            folder, depth = waiting.pop()
            identity = _identity(folder)
            if identity is None:
                self._say(folder, "it cannot be looked into, or is gone")
                continue
            if identity in self._seen:
                continue
            if len(self._seen) >= self._most:
                self._say(root, f"it has more than {self._most:,} folders; the rest was not looked into")
                return
            self._seen.add(identity)
            try:
                names, folders = _listing(folder)
            except OSError as error:
                self._say(folder, f"it cannot be listed: {error.strerror or error}")
                continue
            is_run = any(mark in names for mark in MARKS)
            if is_run or (layout.CONTRACT in names and not layout.trials(folder)):
                yield folder
            loose = 0 if is_run or layout.TRIALS not in folders else len(layout.trials(folder))
            if loose > 1:
                # Trials of a study that was killed early, locators among them, are no results of their own.
                self._say(folder, f"an unfinished study: {loose:,} trials that no study decided by")
            inner = [
                name
                for name in folders
                if not name.startswith(".") and not ((is_run or loose > 1) and name == layout.TRIALS)
            ]
            if inner and depth >= DEEPEST:
                self._say(folder, f"it lies {depth} folders deep; what is below was not looked into")
                continue
            waiting += [(folder / name, depth + 1) for name in sorted(inner, reverse=True)]

    def _say(self, folder: Path, what: str) -> None:
        self.unreadable.append(Unreadable(safe(folder, None), what))


def name_of(run: Path) -> str:
    """Return what a run is called: its folder, and for a trial among others that of its frame before it."""
    place = run.resolve()
    if place.parent.name == layout.TRIALS and (place / layout.HEADER).is_file():
        return f"{place.parent.parent.name}/{place.name}"
    return place.name


def _listing(folder: Path) -> tuple[set[str], list[str]]:
    files: set[str] = set()
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in DOCUMENTS:
                files.add(entry.name)
            elif _is_folder(entry):
                folders.append(entry.name)
    return files, folders


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link that leads round in a circle.


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        held = folder.stat()
    except OSError:
        return None
    return held.st_dev, held.st_ino


def fingerprint(directory: Path) -> str:
    """Return a SHA-256 over a run's documents; of an unsealed one its files' sizes and times count, too.

    OSError where one cannot be read. A sealed run's manifest names all of its evidence by digest.
    """
    total = hashlib.sha256()
    names = [name for name in DOCUMENTS if (directory / name).is_file()]
    for name in names:
        with (directory / name).open("rb") as stream:
            total.update(f"{name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    if layout.MANIFEST not in names:
        with os.scandir(directory) as entries:
            files = sorted((entry.name, entry.stat()) for entry in entries if entry.is_file())
        for name, held in files:
            total.update(f"{name}\0{held.st_size}\0{held.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()
