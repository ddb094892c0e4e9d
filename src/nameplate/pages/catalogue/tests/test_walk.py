"""Runs are found by their files, whatever lies around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.evidence import layout
from nameplate.pages.catalogue.walk import find_runs, fingerprint, name_of


def put(root: Path, *names: str) -> None:
    """Write empty files."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def found(root: Path) -> list[str]:
    """Return the runs below a folder by their path within it."""
    return sorted(str(run.relative_to(root)) for run in find_runs([root]).runs)


def test_runs_are_found_at_any_depth_and_trials_of_a_study_are_its_own(tmp_path: Path) -> None:
    """A study is one run; what else lies below it is looked into; hidden folders are not."""
    put(
        tmp_path,
        "a/study.json",
        "a/trials/one/trial.json",
        "a/again/result.json",
        "deep/er/still/soak.json",
        "loose/trial.json",
        ".git/study.json",
        "empty/notes.txt",
    )
    assert found(tmp_path) == ["a", "a/again", "deep/er/still", "loose"]


def test_a_contract_alone_is_the_frame_of_its_trials_or_a_run_that_came_to_nothing(tmp_path: Path) -> None:
    """Single trials are runs of their own, called by their frame, too."""
    put(tmp_path, "frame/contract.json", "frame/trials/c8/trial.json", "begun/contract.json")
    assert found(tmp_path) == ["begun", "frame/trials/c8"]
    assert name_of(tmp_path / "frame/trials/c8") == "frame/c8"
    assert name_of(tmp_path / "begun") == "begun"


def test_trials_of_a_study_that_never_ended_are_no_runs_of_their_own(tmp_path: Path) -> None:
    """Several trials without a study are left out, with their number: locators among them are no results."""
    put(
        tmp_path,
        "killed/contract.json",
        *(f"killed/trials/t{at}/trial.json" for at in range(3)),
        "killed/more/soak.json",
    )
    walked = find_runs([tmp_path])
    assert found(tmp_path) == ["killed/more"]
    (left,) = walked.unreadable
    assert left.path.endswith("killed") and "3 trials" in left.what


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    """A folder that can be reached twice is one; a link to itself is none."""
    put(tmp_path, "a/study.json")
    (tmp_path / "a/round").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "a")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    walked = find_runs([tmp_path, tmp_path / "a"])
    assert len(walked.runs) == 1
    assert walked.unreadable == ()


def test_a_walk_is_bounded_and_says_where_it_ended(tmp_path: Path) -> None:
    """Too many folders, and folders too deep, are told and not silently left out."""
    for number in range(20):
        put(tmp_path, f"n{number:02d}/study.json")
    put(tmp_path, "/".join(["d"] * 40) + "/study.json")
    few = find_runs([tmp_path], most=10)
    assert len(few.runs) < 20 and "more than 10 folders" in few.unreadable[0].what
    whole = find_runs([tmp_path])
    assert len(whole.runs) == 20 and "folders deep" in whole.unreadable[0].what


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One closed folder does not hide the others."""
    put(tmp_path, "a/study.json", "closed/study.json")
    listing = find_runs.__globals__["_listing"]

    def refuse(folder: Path) -> object:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return listing(folder)

    monkeypatch.setitem(find_runs.__globals__, "_listing", refuse)
    walked = find_runs([tmp_path])
    assert [run.name for run in walked.runs] == ["a"]
    assert [(one.path, one.what) for one in walked.unreadable] == [
        (str(tmp_path / "closed"), "it cannot be listed: Permission denied")
    ]


def test_the_site_itself_is_passed_over(tmp_path: Path) -> None:
    """What was published is not published again."""
    put(tmp_path, "a/study.json", "site/runs/x/result.json")
    assert [run.name for run in find_runs([tmp_path], leave_out=tmp_path / "site").runs] == ["a"]


def test_a_fingerprint_is_of_the_documents(tmp_path: Path) -> None:
    """Copies have one fingerprint; a changed document, or an unsealed run that went on, has another."""
    for name in ("a", "b"):
        put(tmp_path, f"{name}/study.json", f"{name}/manifest.json", f"{name}/notes.txt")
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    (tmp_path / "b/notes.txt").write_text("seen by nobody")
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    (tmp_path / "b" / layout.STUDY).write_text("{}")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")
    put(tmp_path, "c/trial.json")
    before = fingerprint(tmp_path / "c")
    (tmp_path / "c/requests.jsonl").write_text("{}\n")
    assert fingerprint(tmp_path / "c") != before
