"""The checks of a run on its page: seals in a moment, all of `verify` where asked, and what was changed in red."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from nameplate.evidence import layout
from nameplate.pages.checks import alert, check, checks_section
from nameplate.pages.gather import gather
from nameplate.pages.report import report_page
from nameplate.verify.tests.making import make_study, make_trial


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sealed") / "t"
    make_trial(directory)
    return directory


@pytest.fixture(scope="module")
def sealed_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("study") / "s"
    make_study(directory)
    return directory


def copy_of(directory: Path, into: Path) -> Path:
    shutil.copytree(directory, into / "copy")
    return into / "copy"


@pytest.mark.parametrize("full", [False, True])
def test_what_is_as_it_was_sealed_raises_no_alarm(sealed: Path, full: bool) -> None:
    """Nothing in red, exit code 0, and a sentence that says which checks were made."""
    checked = check(sealed, full=full)
    assert (checked.exit_code, checked.failures, alert(checked)) == (0, (), None)
    said = str(checks_section(checked, str(sealed)))
    assert ("hold." in said) if full else ("Digests hold" in said and "nameplate verify" in said)
    assert len(checked.found) > 20 if full else len(checked.found) == 2


@pytest.mark.parametrize("name", [layout.REQUESTS, layout.READS, layout.JOURNAL, layout.SERVER])
def test_a_changed_file_is_named_in_red_above_the_answer(sealed: Path, tmp_path: Path, name: str) -> None:
    """One byte more in any sealed file stands at the top of the page, and the exit code is that of `verify`."""
    directory = copy_of(sealed, tmp_path)
    with (directory / name).open("ab") as stream:
        stream.write(b"\n")
    checked = check(directory, full=False)
    assert checked.exit_code == 4
    page = report_page([gather(directory)], [checked])
    assert "This evidence was changed after it was sealed." in page
    assert page.index(f"{name}: ") < page.index("<h1>")


def test_a_changed_trial_of_a_study_is_named(sealed_study: Path, tmp_path: Path) -> None:
    """The trial's name and its file's stand in the alarm."""
    directory = copy_of(sealed_study, tmp_path)
    trial = sorted((directory / layout.TRIALS).iterdir())[0]
    (trial / layout.EVENTS).write_bytes(b"")
    found = check(directory, full=False).failures
    assert [one.of for one in found] == [trial.name] and found[0].detail.startswith(f"{layout.EVENTS}: ")


def test_a_plate_that_says_more_than_its_trials_is_found(sealed_study: Path, tmp_path: Path) -> None:
    """The plate is in no manifest, so it is held against the results that are."""
    directory = copy_of(sealed_study, tmp_path)
    plate = msgspec.json.decode((directory / layout.PLATE).read_bytes())
    plate["shapes"][0]["rated"] += 7
    (directory / layout.PLATE).write_bytes(msgspec.json.encode(plate))
    checked = check(directory, full=False)
    assert checked.exit_code == 4 and not checked.altered
    assert "This evidence is not what it claims to be." in str(alert(checked))


def test_what_was_not_sealed_is_said_and_no_alarm(sealed: Path, tmp_path: Path) -> None:
    """An unfinished trial has no seal that could be broken: the page says so, and nothing fails."""
    directory = copy_of(sealed, tmp_path)
    (directory / layout.MANIFEST).unlink()
    checked = check(directory, full=False)
    assert (checked.exit_code, alert(checked)) == (0, None)
    assert "not all of it is sealed" in str(checks_section(checked, "x"))


def test_a_page_without_checks_says_that_none_was_made(sealed: Path) -> None:
    """The page of a run that just ended names the command instead."""
    assert "None was made for this page" in report_page([gather(sealed)])


def test_a_link_in_place_of_a_file_is_not_opened(sealed: Path, tmp_path: Path) -> None:
    """Evidence that points elsewhere is a failure, whatever it points at."""
    directory = copy_of(sealed, tmp_path)
    (directory / layout.REQUESTS).unlink()
    (directory / layout.REQUESTS).symlink_to(sealed / layout.REQUESTS)
    assert check(directory, full=False).exit_code == 4


def test_contradicted_evidence_has_no_answer(sealed_study: Path, tmp_path: Path) -> None:
    """Its headline names what is contradicted, without number or status; no plate is drawn of it."""
    directory = copy_of(sealed_study, tmp_path)
    sound = report_page([gather(directory)], [check(directory, full=False)])
    plate = msgspec.json.decode((directory / layout.PLATE).read_bytes())
    plate["shapes"][0]["rated"] = 4321
    (directory / layout.PLATE).write_bytes(msgspec.json.encode(plate))
    page = report_page([gather(directory)], [check(directory, full=False)])
    answers = [page.partition('class="answer')[2].partition("</section>")[0] for page in (sound, page)]
    assert "its evidence contradicts what is published (plate: shapes.0.rated)" in answers[1]
    assert "4321" not in answers[1] and "4,321" not in answers[1]
    status = plate["shapes"][0]["status"]
    assert f">{status}</span>" in answers[0] and f">{status}</span>" not in answers[1]
    assert ('class="plate"' in sound, 'class="plate"' in page) == (True, False)
    assert "The rating plate is left out" in page and 'class="contradicted"' not in sound


@pytest.mark.parametrize("several", [False, True])
def test_a_changed_trial_has_no_verdict_in_its_answer(sealed: Path, tmp_path: Path, several: bool) -> None:
    """Alone or beside a sound one: of the changed run there is no status, of the other there is."""
    directory = copy_of(sealed, tmp_path)
    with (directory / layout.REQUESTS).open("ab") as stream:
        stream.write(b"\n")
    runs = [directory, sealed] if several else [directory]
    page = report_page([gather(run) for run in runs], [check(run, full=False) for run in runs])
    assert f"was changed after it was sealed (manifest: {layout.REQUESTS}" in page
    assert page.count("<h1>Pass: ") == (1 if several else 0)
