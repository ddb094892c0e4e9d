"""Data sets are read tolerantly, refused with the line that is wrong, and never sent twice by accident."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.contract.errors import CallerError
from nameplate.prompts import dataset
from nameplate.prompts.body import BodyOptions, build_body, user_text_of
from nameplate.prompts.dataset import Dataset, DatasetError


def write(folder: Path, *lines: str | bytes) -> Path:
    """Write a file of these lines."""
    path = folder / "set.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def test_the_three_kinds_of_rows_are_read(tmp_path: Path) -> None:
    """Prompts, messages and bare lengths are read, with whatever lengths they state."""
    path = write(
        tmp_path,
        '{"prompt": "one", "output_tokens": 5, "source": "ignored"}',
        '{"messages": [{"role": "system", "content": "s"}, '
        '{"role": "user", "content": [{"type": "text", "text": "u"}]}]}',
        '{"input_tokens": 812.0, "output_tokens": null}',
    )
    with Dataset.open(path) as rows:
        first, second, third = rows
        assert (first.content, first.output_tokens) == ("one", 5)
        assert second.user_text == "u" and second.line == 2
        assert third.content is None and third.user_text is None and third.input_tokens == 812


def test_byte_order_mark_crlf_and_empty_lines_do_not_disturb(tmp_path: Path) -> None:
    """Files from other systems are read; the line numbers are those of the file."""
    with Dataset.open(
        write(tmp_path, b'\xef\xbb\xbf{"prompt": "a"}\r', b"\r", b'{"prompt": "b\xe2\x80\xa8c"}\r')
    ) as rows:
        assert [(row.line, row.prompt) for row in rows] == [(1, "a"), (3, "b\u2028c")]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ('{"prompt": "x"', "not JSON"),
        (b'{"prompt": "\xff"}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "neither"),
        ('{"prompt": 3}', "not a text"),
        ('{"prompt": " "}', "empty"),
        ('{"prompt": "x", "messages": []}', "both"),
        ('{"messages": []}', "empty"),
        ('{"messages": [{"content": "x"}]}', "no role"),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "message 1 is not text"),
        ('{"messages": [{"role": "user", "content": ""}]}', "all messages are empty"),
        ('{"input_tokens": 0}', "input_tokens"),
        ('{"input_tokens": true}', "input_tokens"),
        ('{"input_tokens": 1e400}', "input_tokens|not JSON"),
        ('{"prompt": "x", "output_tokens": "7"}', "output_tokens"),
        ('{"prompt": "good"}', "same prompt as in line 1"),
    ],
)
def test_the_wrong_line_is_named(tmp_path: Path, bad: str | bytes, what: str) -> None:
    """A line that cannot be used is named by its number and by what is wrong with it."""
    with pytest.raises(DatasetError, match=what) as caught:
        Dataset.open(write(tmp_path, '{"prompt": "good"}', "", bad))
    assert caught.value.line == 3 and "line 3" in str(caught.value)


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line above the limit is refused before it is read whole."""
    monkeypatch.setattr(dataset, "MAXIMUM_LINE_BYTES", 1_000)
    with pytest.raises(DatasetError, match="longer"):
        Dataset.open(write(tmp_path, '{"prompt": "' + "x" * 5_000 + '"}'))


def test_too_few_prompts_are_said_before_any_load(tmp_path: Path) -> None:
    """A study that needs more prompts than there are is refused, unless repeats are allowed."""
    path = write(tmp_path, '{"prompt": "a"}', '{"prompt": "b"}')
    with Dataset.open(path) as rows:
        rows.require(2)
        with pytest.raises(CallerError, match="holds 2 prompts, and 3 are needed"):
            rows.require(3)
        with pytest.raises(CallerError):
            rows.row(2)
    with Dataset.open(path, repeat=True) as rows:
        assert [rows.row(number).prompt for number in range(5)] == ["a", "b", "a", "b", "a"]


def test_repeated_lengths_are_no_repeated_prompts(tmp_path: Path) -> None:
    """Two rows of the same length are two generated prompts, so they are fine."""
    with Dataset.open(write(tmp_path, '{"input_tokens": 9}', '{"input_tokens": 9}')) as rows:
        assert len(rows) == 2


def test_shared_heads_are_counted(tmp_path: Path) -> None:
    """Prompts that begin alike could meet a prefix cache: they are counted."""
    lines = [json.dumps({"prompt": "x" * 64 + str(number)}) for number in range(3)]
    with Dataset.open(write(tmp_path, *lines)) as rows:
        assert rows.shared_heads == 2


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_an_empty_file_is_refused(tmp_path: Path, lines: list[str]) -> None:
    """A file without a row is said to be empty."""
    with pytest.raises(CallerError, match="empty"):
        Dataset.open(write(tmp_path, *lines))


def test_a_missing_file_is_the_callers_mistake(tmp_path: Path) -> None:
    """A path that does not exist, or is a directory, is a clear error."""
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(CallerError, match="cannot be read"):
            Dataset.open(path)


@settings(max_examples=25, deadline=None)
@given(prompts=st.lists(st.text().filter(str.strip), min_size=1, max_size=6, unique=True))
def test_rows_survive_the_way_into_a_body(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[str]
) -> None:
    """A prompt of the file is what is found in the request's body."""
    path = write(tmp_path_factory.mktemp("set"), *(json.dumps({"prompt": prompt}) for prompt in prompts))
    with Dataset.open(path) as rows:
        for number in reversed(range(len(prompts))):
            row = rows.row(number)
            assert row.content == prompts[number]
            assert user_text_of(build_body(BodyOptions(), row.content, 1)) == row.user_text


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """No file makes the reader fail in another way than by a caller's error."""
    path = tmp_path_factory.mktemp("set") / "set.jsonl"
    path.write_bytes(content)
    with contextlib.suppress(CallerError):
        Dataset.open(path).close()
