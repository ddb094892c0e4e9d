"""The manifest names every kind of tampering and is never half there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nameplate.contract.errors import ClientError, EvidenceError
from nameplate.evidence import layout, manifest
from nameplate.evidence.manifest import FileDigest, Manifest, mismatches, seal, write_durably

FILES = {layout.HEADER: b"{}", layout.REQUESTS: b'{"a":1}\n', layout.READS: b"\x00\x01"}


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """Make a sealed directory."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    seal(tmp_path, list(FILES))
    return tmp_path


def found(directory: Path) -> list[str]:
    """Read the manifest and compare."""
    read = manifest.read(directory)
    assert read is not None
    return mismatches(directory, read)


def test_what_was_not_touched_agrees(sealed: Path) -> None:
    """Right after sealing nothing differs, and no temporary file is left."""
    assert found(sealed) == []
    assert {path.name for path in sealed.iterdir()} == {*FILES, layout.MANIFEST}


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda d: (d / layout.REQUESTS).unlink(), "requests.jsonl: missing"),
        (lambda d: (d / layout.REQUESTS).write_bytes(b'{"a":2}\n'), "requests.jsonl: its content changed"),
        (
            lambda d: (d / layout.REQUESTS).write_bytes(b""),
            "requests.jsonl: 0 bytes where the manifest says 8",
        ),
        (lambda d: (d / (layout.READS + ".1")).write_bytes(b"more"), "reads.zst.1: not in the manifest"),
        (lambda d: (d / layout.RESULT).write_bytes(b"{}"), "result.json: not in the manifest"),
    ],
)
def test_each_kind_of_tampering_is_named(sealed: Path, tamper: Callable[[Path], object], said: str) -> None:
    """Deleted, edited, cut and added files are each named with what is wrong, and nothing else is."""
    tamper(sealed)
    assert found(sealed) == [said]


def test_a_file_replaced_by_a_directory_is_missing(sealed: Path) -> None:
    """What is no file cannot be the file that was sealed."""
    (sealed / layout.READS).unlink()
    (sealed / layout.READS).mkdir()
    assert found(sealed) == ["reads.zst: missing"]


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "a/../../outside", ".."])
def test_names_that_leave_the_directory_are_refused(sealed: Path, name: str) -> None:
    """A manifest cannot make its reader open files elsewhere, even if their digests would agree."""
    (sealed.parent / "outside").write_bytes(b"x")
    digest = manifest.digest_file(sealed.parent / "outside")
    assert mismatches(sealed, Manifest({name: digest}))[-1] == f"{name}: points outside the directory"


@pytest.mark.parametrize("name", ["", ".", "x" * 5000, "a\0b", "no/such/place"])
def test_names_that_are_no_files_are_missing(tmp_path: Path, name: str) -> None:
    """Names that no file can have are reported like any other missing file."""
    assert mismatches(tmp_path, Manifest({name: FileDigest("", 0)})) == [f"{name}: missing"]


def test_files_in_subdirectories_can_be_sealed(tmp_path: Path) -> None:
    """A study seals the manifests of its trials by their relative names."""
    (tmp_path / "trials" / "c1").mkdir(parents=True)
    (tmp_path / "trials" / "c1" / layout.MANIFEST).write_bytes(b"{}")
    seal(tmp_path, ["trials/c1/manifest.json"])
    assert found(tmp_path) == []
    (tmp_path / "trials" / "c1" / layout.MANIFEST).write_bytes(b"[]")
    assert found(tmp_path) == ["trials/c1/manifest.json: its content changed"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"files": {"a": 1}}', b"\xff\xff", b"[" * 99_999])
def test_a_damaged_manifest_is_an_error_and_not_an_unfinished_trial(tmp_path: Path, content: bytes) -> None:
    """No manifest means unfinished; a damaged one means damaged."""
    assert manifest.read(tmp_path) is None
    (tmp_path / layout.MANIFEST).write_bytes(content)
    with pytest.raises(EvidenceError, match="manifest"):
        manifest.read(tmp_path)


def test_a_manifest_of_a_later_format_is_refused(tmp_path: Path) -> None:
    """What a newer program sealed is not judged by rules that this one does not know."""
    later = Manifest({}, version=layout.FORMAT_VERSION + 1)
    (tmp_path / layout.MANIFEST).write_bytes(msgspec.json.encode(later))
    with pytest.raises(EvidenceError, match="newer"):
        manifest.read(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the old content stands and nothing half-written lies beside it."""
    path = tmp_path / "plate.json"
    write_durably(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ClientError, match="No space"):
        write_durably(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["plate.json"]
