"""`nameplate report`: the page is written whatever the evidence holds, and the exit code says what it holds."""

from __future__ import annotations

from pathlib import Path

from nameplate.cli.tests.conftest import Run
from nameplate.evidence import layout
from nameplate.verify.tests.making import make_trial


def test_a_changed_trial_has_its_page_and_exit_code_4(run: Run, tmp_path: Path) -> None:
    """The page is written all the same, and the file that was changed is named in the terminal too."""
    make_trial(tmp_path / "t")
    assert run("report", "t", "-o", "a.html")[0] == 0
    with (tmp_path / "t" / layout.REQUESTS).open("ab") as stream:
        stream.write(b" ")
    code, _, err = run("report", "t", "-o", "b.html")
    assert code == 4 and f"{layout.REQUESTS}: " in err
    assert "changed after it was sealed" in (tmp_path / "b.html").read_text()


def test_verify_shows_every_check(run: Run, tmp_path: Path) -> None:
    """With --verify the page holds the checks of `nameplate verify`, by name."""
    make_trial(tmp_path / "t")
    assert run("report", "t", "--verify", "-o", "a.html")[0] == 0
    page = (tmp_path / "a.html").read_text()
    assert "raw_reads".replace("_", " ") in page and "trial verdict" in page
