"""A file that somebody asked for is on disk whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nameplate.contract.errors import CallerError
from nameplate.report.writing import write_whole


def test_a_file_replaces_the_one_before(tmp_path: Path) -> None:
    """The folder is made, a second file stands in the first one's place, and nothing is left beside it."""
    path = tmp_path / "new" / ("x" * 255)
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """A device or a pipe is written to, and no file takes its place."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR)
    try:
        write_whole(path, b"held")
        assert os.read(reader, 10) == b"held"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("place", ["file/x", "folder", "/proc/x"])
def test_what_cannot_be_written_says_whose_fault_it_is(tmp_path: Path, place: str) -> None:
    """A place under a file, or that is a folder, or that takes no files, is the caller's mistake."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CallerError, match="cannot be written"):
        write_whole(tmp_path / place, b"data")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]
