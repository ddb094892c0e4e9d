"""A file that cannot be written is the mistake of whoever named it, for every command that writes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.cli.tests.conftest import Run
from nameplate.verify.tests.making import make_trial


@pytest.mark.parametrize("place", ["file/x", "/proc/x"])
@pytest.mark.parametrize(
    "words",
    [
        ("report", "t", "-o"),
        ("compare", "t", "t", "--about", "ttft p95", "-o"),
        ("export", "t", "--to", "csv", "--out"),
        ("export", "t", "--to", "aiperf", "--out"),
        ("catalogue", "t", "-o"),
    ],
    ids=" ".join,
)
def test_a_place_that_takes_no_file(run: Run, tmp_path: Path, words: tuple[str, ...], place: str) -> None:
    """Exit code 2 and words that name the place, below a file and where the system takes none."""
    make_trial(tmp_path / "t")
    (tmp_path / "file").write_text("")
    code, _, err = run(*words, place)
    assert code == 2
    assert "cannot be written" in err and place in err
