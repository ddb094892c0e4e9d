"""A site shows every run once, and a second time only what changed is made again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nameplate.contract.errors import CallerError
from nameplate.pages.catalogue import build
from nameplate.pages.catalogue.entry import decode_catalogue
from nameplate.pages.catalogue.site import Made, make_site
from nameplate.pages.gather import gather as whole_gather

Runs = Callable[..., Path]


def state(site: Path) -> dict[str, tuple[int, int]]:
    """Return every file of a site with its inode and time: one that was written again has others."""
    return {
        str(path.relative_to(site)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in site.rglob("*")
        if path.is_file()
    }


def make(folder: Path, site: Path, *, pages: bool = True, rebuild: bool = False) -> Made:
    """Make a site in this process."""
    return make_site([folder], site, processes=1, pages=pages, rebuild=rebuild)


def test_a_second_time_nothing_is_written(runs: Runs, tmp_path: Path) -> None:
    """Nothing changed, so no file changes; a run that changed is made again, alone."""
    folder, site = runs("capacity", "curve"), tmp_path / "site"
    first = make(folder, site)
    assert first.made == 2 and len(first.catalogue.entries) == 2
    before = state(site)
    second = make(folder, site)
    assert (second.made, second.written, second.removed) == (0, 0, 0)
    assert second.catalogue == first.catalogue
    assert state(site) == before
    assert make(folder, site, rebuild=True).made == 2


def test_what_is_shown_is_written_as_json_with_links_that_lead_somewhere(runs: Runs, tmp_path: Path) -> None:
    """`catalogue.json` is what the page shows; each page that is named is there."""
    site = tmp_path / "site"
    made = make(runs("capacity", "trial", "import"), site)
    assert decode_catalogue((site / "catalogue.json").read_bytes()) == made.catalogue
    assert {entry.kind for entry in made.catalogue.entries} == {"capacity", "trial", "import"}
    for entry in made.catalogue.entries:
        assert (entry.page is None) is (entry.page_missing is not None)
        assert entry.page is None or (site / entry.page).is_file()


def test_duplicates_are_one_entry_with_all_their_paths(runs: Runs, tmp_path: Path) -> None:
    """A copy of a run elsewhere is the same run."""
    folder = runs("capacity")
    shutil.copytree(folder / "capacity", folder / "archive" / "old")
    made = make(folder, tmp_path / "site", pages=False)
    assert [entry.paths for entry in made.catalogue.entries] == [
        (str(folder / "archive" / "old"), str(folder / "capacity"))
    ]


def test_damaged_runs_are_named_and_stop_nothing(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truncated, foreign and changed documents, and a fault of our own, each with its reason."""
    folder = runs("capacity", "curve", "speed", "soak")
    (folder / "soak/soak.json").write_bytes((folder / "soak/soak.json").read_bytes()[:100])
    (folder / "speed/result.json").write_text('{"schema": "somebody.else/9"}')
    for name in ("list", "text", "later"):
        (folder / name).mkdir()
    (folder / "list/result.json").write_text("[1, 2, 3]")
    (folder / "text/study.json").write_bytes(b"\xff\x00<script>alert(1)</script>")
    (folder / "later/trial.json").write_text('{"version": 99}')

    def gather(directory: Path) -> object:
        if directory.name == "curve":
            raise ZeroDivisionError("division by zero")
        return whole_gather(directory)

    monkeypatch.setattr(build, "gather", gather)
    made = make(folder, tmp_path / "site")
    assert [entry.name for entry in made.catalogue.entries] == ["capacity"]
    told = {Path(one.path).name: one.what for one in made.catalogue.unreadable}
    assert set(told) == {"curve", "later", "list", "soak", "speed", "text"}
    assert "ZeroDivisionError" in told["curve"] and all(told.values())
    assert "<script>alert" not in (tmp_path / "site/index.html").read_text()


@pytest.mark.parametrize("name", ["study.json", "plate.json", "trials/{trial}/result.json"])
def test_evidence_that_was_changed_has_no_number(runs: Runs, tmp_path: Path, name: str) -> None:
    """It is shown with its status and its page, which says so; nothing of it is ranked."""
    run = runs("capacity") / "capacity"
    trial = next(path.name for path in (run / "trials").iterdir())
    path = run / name.format(trial=trial)
    changed, count = re.subn(rb'"attempt": \d+', b'"attempt": 7', path.read_bytes(), count=1)
    assert count == 1
    path.write_bytes(changed)
    entry = make(run, tmp_path / "site").catalogue.entries[0]
    assert entry.status == "contradicted" and entry.answer.startswith("Not as it was sealed")
    assert entry.ratings and {one.value for one in entry.ratings} == {None}
    assert entry.page is not None


def test_what_is_gone_leaves_the_site_and_nothing_else_does(runs: Runs, tmp_path: Path) -> None:
    """Only folders that the site made are taken out of it."""
    folder, site = runs("capacity", "curve"), tmp_path / "site"
    make(folder, site)
    mine = site / "runs" / "mine"
    mine.mkdir()
    (mine / "entry.json").write_text("{}")
    (site / "notes.txt").write_text("keep")
    shutil.rmtree(folder / "curve")
    made = make(folder, site)
    assert made.removed == 1 and [entry.name for entry in made.catalogue.entries] == ["capacity"]
    assert sorted(path.name.rpartition("-")[0] or path.name for path in (site / "runs").iterdir()) == [
        "capacity",
        "mine",
    ]
    assert (site / "notes.txt").exists()


def test_without_pages_there_are_entries_alone(runs: Runs, tmp_path: Path) -> None:
    """No page is written and none is linked; asked for later, it is made."""
    folder, site = runs("capacity"), tmp_path / "site"
    assert make(folder, site, pages=False).catalogue.entries[0].page is None
    assert not list(site.rglob("report.html"))
    assert make(folder, site).catalogue.entries[0].page is not None
    assert len(list(site.rglob("report.html"))) == 1


def test_a_damaged_entry_in_the_site_is_made_again(runs: Runs, tmp_path: Path) -> None:
    """What the site holds of earlier is trusted only where it can be read."""
    folder, site = runs("capacity"), tmp_path / "site"
    make(folder, site)
    next(site.rglob("entry.json")).write_text("{")
    assert make(folder, site).made == 1


def test_an_empty_catalogue_is_a_page_that_says_so(tmp_path: Path) -> None:
    """No run is no error: a team's first site is empty."""
    (tmp_path / "runs").mkdir()
    made = make(tmp_path / "runs", tmp_path / "site")
    assert made.catalogue.entries == ()
    assert "No run was found" in (tmp_path / "site/index.html").read_text()


def test_a_site_that_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    """A file in the site's place is the caller's mistake."""
    (tmp_path / "site").write_text("")
    with pytest.raises(CallerError, match="is a file"):
        make(tmp_path, tmp_path / "site")


@pytest.mark.live
def test_two_processes_make_the_same_site(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order in which runs are done changes nothing."""
    monkeypatch.setattr("nameplate.pages.catalogue.site._WORTH_A_PROCESS", 2)
    folder = runs("capacity", "curve", "import")
    done: list[tuple[int, int]] = []
    two = make_site([folder], tmp_path / "two", processes=2, progress=lambda at, of: done.append((at, of)))
    assert two.catalogue == make(folder, tmp_path / "one").catalogue
    assert done == [(1, 3), (2, 3), (3, 3)]
