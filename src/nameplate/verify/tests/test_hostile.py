"""Evidence made to harm: checks fail in clear words, nothing raises, nothing hangs, memory stays bounded."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nameplate import zstd
from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.evidence.records import HEADER, Kind
from nameplate.verify import verify
from nameplate.verify.names import Name
from nameplate.verify.tests.making import edit_json, edit_lines, reseal, seal_study, write_frames

# Other trials' files: this machine has no GPU, only a soak has samples of the client, only a trace its requests.
ABSENT = (layout.GPU, layout.CLIENT, layout.TRACE)
FILES = tuple(name for name in (*layout.SEALED, layout.MANIFEST) if name not in ABSENT)


def fails(directory: Path) -> dict[Name, str]:
    """Verify, see exit code 4, and return what fails; every word of it can be printed on one line."""
    report = verify(directory)
    found = {check.name: check.detail for check in report.all_checks() if check.status == "fail"}
    assert report.exit_code == 4 and found
    assert all(detail.isprintable() and len(detail) < 2000 for detail in found.values())
    msgspec.json.encode(report)
    return found


def test_a_directory_that_is_neither_is_refused(tmp_path: Path) -> None:
    """A directory without a header or a contract is the caller's mistake, said so."""
    with pytest.raises(CallerError, match="neither a trial nor a study"):
        verify(tmp_path)
    with pytest.raises(CallerError):
        verify(tmp_path / "missing")


@pytest.mark.parametrize("name", FILES)
def test_an_empty_file_is_named(trial: Path, name: str) -> None:
    """Any file that was emptied is a failure."""
    (trial / name).write_bytes(b"")
    if name not in (layout.MANIFEST, layout.SERVER):
        reseal(trial)
        fails(trial)
    else:
        assert Name.manifest in fails(trial)


@pytest.mark.parametrize("name", [name for name in FILES if name != layout.HEADER])
def test_a_missing_file_is_named(trial: Path, name: str) -> None:
    """Any file that was taken out of a sealed trial is a failure; without a manifest it is unfinished."""
    (trial / name).unlink()
    if name == layout.MANIFEST:
        assert verify(trial).exit_code == 3
    else:
        assert name in fails(trial)[Name.manifest]


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_flipped_and_cut_bytes_never_raise(sealed: Path, trial: Path, name: str, data: st.DataObject) -> None:
    """Whatever byte of whatever file changes or is missing, a report comes back and it fails."""
    original = (sealed / name).read_bytes()
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(changed)), st.integers(0, len(changed))))
    (trial / name).write_bytes(changed[:cut])
    report = verify(trial)
    if changed[:cut] != original and name != layout.MANIFEST:
        assert report.check(Name.manifest).status == "fail"
    if name != layout.MANIFEST:
        # As if it had always been so: without the manifest's help, the other checks must cope.
        reseal(trial)
        assert verify(trial).exit_code in (0, 3, 4)
    for other in (name, layout.MANIFEST):
        (trial / other).write_bytes((sealed / other).read_bytes())


@pytest.mark.parametrize(
    "name", [layout.HEADER, layout.RESULT, layout.MANIFEST, layout.JOURNAL, layout.PROMPTS]
)
@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "device"])
def test_what_is_no_plain_file_is_not_opened(trial: Path, name: str, kind: str) -> None:
    """Links, pipes, directories and devices in a file's place are named and never read."""
    path = trial / name
    path.unlink()
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    assert name in fails(trial)[Name.files]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["plan"].update(requests=10**18),
        lambda header: header["plan"].update(requests=-1),
        lambda header: header["plan"].update(concurrency=10**9),
        lambda header: header["plan"].update(concurrency=0),
        lambda header: header["plan"].update(warmup=10**30),
        lambda header: header["plan"].update(stagger_ns=10**400),
        lambda header: header["plan"]["shape"].update(output_tokens=-5),
        lambda header: header["contract"]["slos"][0].update(percentile=200.0),
        lambda header: header["contract"]["slos"][0].update(percentile=None, limit_ns=None),
        lambda header: header["contract"]["slos"][0].update(limit_ns=10**400),
        lambda header: header["keeping"].update(reads="sample", sample_every=0),
        lambda header: header.update(version=99),
        lambda header: header["prompt_length"].update(prefix_words=10**12),
        lambda header: header["identity"]["facts"].update(block_size_tokens={"value": 10**400, "source": ""}),
        lambda header: header["identity"]["facts"].update(block_size_tokens={"value": 1e308, "source": ""}),
        lambda header: header["started"].update(monotonic_ns=10**400),
        lambda header: header.update(template_floor_tokens=-(10**400)),
    ],
)
def test_a_header_that_no_trial_has_is_refused(trial: Path, change: Callable[[Any], None]) -> None:
    """Values beyond all trials are refused before time or memory is spent on them."""
    edit_json(trial, layout.HEADER, change)
    fails(trial)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5000, "-" + "9" * 400])
@pytest.mark.parametrize(
    "name", [layout.RESULT, layout.REQUESTS, layout.JOURNAL, layout.SERVER, layout.HEADER]
)
def test_numbers_that_are_none_are_named(trial: Path, name: str, number: str) -> None:
    """NaN, infinities and numbers beyond all machines never reach the arithmetic unseen."""
    path = trial / name
    field = {
        layout.RESULT: b'"p95": ',
        layout.REQUESTS: b'"output_tokens":',
        layout.JOURNAL: b'"output_tokens_total":',
        layout.SERVER: b'"output_tokens_total":',
        layout.HEADER: b'"monotonic_ns": ',
    }[name]
    head, found, rest = path.read_bytes().partition(field)
    assert found
    digits = len(rest) - len(rest.lstrip(b"0123456789."))
    path.write_bytes(head + field + number.encode() + rest[digits:])
    reseal(trial)
    fails(trial)


def test_deep_nesting_is_named(trial: Path) -> None:
    """A document nested a hundred thousand deep is refused, not descended into."""
    deep = b"[" * 100_000 + b"]" * 100_000
    for name in (layout.RESULT, layout.MANIFEST):
        before = (trial / name).read_bytes()
        (trial / name).write_bytes(deep)
        if name == layout.RESULT:
            reseal(trial)
        fails(trial)
        (trial / name).write_bytes(before)
    with (trial / layout.JOURNAL).open("ab") as stream:
        stream.write(b'{"t_ns":1,"what":"probe","detail":{"prompt":' + deep + b"}}\n")
    reseal(trial)
    assert "journal.jsonl" in fails(trial)[Name.files]


def test_a_row_outside_the_plan_is_named(trial: Path) -> None:
    """A row of an index that the plan does not have is a failure of the record count."""
    edit_lines(trial, layout.REQUESTS, lambda rows: rows[0].update(index=10**9))
    assert "the plan has no such request" in fails(trial)[Name.record_count]


def test_words_that_a_terminal_would_obey_are_defused(trial: Path) -> None:
    """Escape sequences in a row are shown as what they are, and never sent to the terminal."""
    edit_lines(trial, layout.REQUESTS, lambda rows: rows[3].update(error="\x1b]0;owned\x07\x1b[2J\n\u202e"))
    found = fails(trial)
    assert "\x1b" not in str(found)


@pytest.mark.parametrize("name", [layout.READS, layout.EVENTS])
def test_a_bomb_is_named_in_bounded_memory(trial: Path, name: str) -> None:
    """A small file that expands to gigabytes is given up on, at a memory that its size bounds."""
    if name == layout.READS:
        bare = HEADER.pack(int(Kind.BARE), 3, 2**60, 0, 0, 1)
        frame = bare * ((48 << 20) // len(bare))
    else:
        frame = b"\0" * (9 * ((48 << 20) // 9))
    packed = zstd.compress(frame, options={int(zstd.CompressionParameter.checksum_flag): 1})
    (trial / name).write_bytes((trial / name).read_bytes() + packed * 20)
    reseal(trial)
    tracemalloc.start()
    try:
        fails(trial)
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()


def test_a_frame_without_end_is_named(trial: Path) -> None:
    """One frame above the limit of the format is damage, however well it compresses."""
    write_frames(trial, layout.READS, [b"\0" * (65 << 20)])
    assert "64 MiB" in fails(trial)[Name.files]


def test_a_line_without_end_is_named(trial: Path) -> None:
    """A line longer than any of ours is refused before it is held whole."""
    with (trial / layout.JOURNAL).open("ab") as stream:
        stream.write(b" " * (17 << 20))
    reseal(trial)
    assert "journal.jsonl" in fails(trial)[Name.files]


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "..", ".", "a/../../b", "x" * 5000, "\x00", "C:\\x", ""]
)
def test_a_manifest_cannot_point_elsewhere(trial: Path, name: str) -> None:
    """Names in a manifest that are no plain names of this directory are refused."""
    path = trial / layout.MANIFEST
    manifest = msgspec.json.decode(path.read_bytes())
    manifest["files"][name] = {"sha256": "0" * 64, "size_bytes": 1}
    path.write_bytes(msgspec.json.encode(manifest))
    assert "no file of this directory" in fails(trial)[Name.manifest]


@pytest.mark.parametrize(
    "name", [layout.CONTRACT, layout.STUDY, layout.PLATE, layout.MANIFEST, layout.JOURNAL]
)
def test_a_studys_damaged_file_is_named(study: Path, name: str) -> None:
    """A study's documents may be anything; a report comes back, and it fails."""
    for content in (b"", b"[]", b'{"schema":1}', b"\xff\xfe", b"{" * 100_000):
        (study / name).write_bytes(content)
        fails(study)


def test_a_study_with_links_for_trials_is_refused(study: Path, tmp_path: Path) -> None:
    """A link among the trials, or in place of all of them, is named and not followed."""
    (study / layout.TRIALS / "elsewhere").symlink_to("/etc")
    assert "is a link" in fails(study)[Name.study_files]
    (study / layout.TRIALS).rename(tmp_path / "moved")
    (study / layout.TRIALS).symlink_to(tmp_path / "moved")
    assert "not a directory of this study" in fails(study)[Name.study_files]


def test_an_empty_study_is_unfinished_or_fails(study: Path) -> None:
    """A study whose trials are all gone fails, for its record lists them."""
    for path in sorted((study / layout.TRIALS).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    seal_study(study)
    assert "no such trial" in fails(study)[Name.study_trials]


def test_a_file_that_came_after_the_seal_is_named(trial: Path) -> None:
    """A file of evidence that the manifest does not name is a failure, whatever it holds."""
    (trial / layout.GPU).write_bytes(b"")
    assert "gpu.jsonl" in fails(trial)[Name.manifest]
