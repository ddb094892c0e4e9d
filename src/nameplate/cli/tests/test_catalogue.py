"""`nameplate catalogue`: what it says, what it writes, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nameplate.cli.tests.conftest import Run


def test_a_site_is_made_and_said(run: Run) -> None:
    """The index's path and the numbers of runs; folders that are left out with their reason."""
    code, _out, _err = run(
        "trial", "sim:demo", "--shape", "64/8", "-c", "2", "--requests", "8", "--out", "runs/one"
    )
    assert code == 0
    Path("runs/bad").mkdir()
    Path("runs/bad/study.json").write_text("{}")
    code, out, err = run("catalogue", "runs", "-o", "site", "--title", "Our machines")
    assert code == 0 and out == ""
    assert "site/index.html: 1 run, 1 made anew, 1 left out" in err
    assert "left out: runs/bad: " in err
    assert "<h1>Our machines</h1>" in Path("site/index.html").read_text()
    code, out, err = run("catalogue", "runs", "-o", "site", "--json")
    document = msgspec.json.decode(out)
    assert document["schema"] == "nameplate.catalogue/1" and document["entries"][0]["kind"] == "trial"


def test_what_is_not_there_is_refused(run: Run) -> None:
    """Exit code 2 for a folder that does not exist, and for none at all."""
    assert run("catalogue", "nowhere")[0] == 2
    assert run("catalogue")[0] == 2
