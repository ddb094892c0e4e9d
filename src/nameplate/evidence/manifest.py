"""The manifest: SHA-256 and size of every file of a directory, written last and never changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from nameplate.contract.errors import ClientError, EvidenceError
from nameplate.evidence import layout


class FileDigest(Struct, frozen=True):
    """Hold one file's SHA-256 (hex) and size in bytes."""

    sha256: str
    size_bytes: int


class Manifest(Struct, frozen=True):
    """Map relative file names to their digests."""

    files: dict[str, FileDigest]
    version: int = layout.FORMAT_VERSION


def digest_file(path: Path) -> FileDigest:
    """Hash a file in bounded memory; OSError where it cannot be read."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return FileDigest(digest.hexdigest(), path.stat().st_size)


def digest_of(directory: Path) -> str | None:
    """Return the SHA-256 of a directory's manifest, which names all of its evidence; None where it is not sealed."""
    path = directory / layout.MANIFEST
    return digest_file(path).sha256 if path.is_file() else None


def disk_fault(path: Path, error: OSError) -> ClientError:
    """Word a file that could not be written."""
    return ClientError(
        f"{path} could not be written to the disk: {error.strerror or error}.",
        why="Without complete evidence there is no verdict; what was written is intact.",
        hint="Free disk space, or keep less with --raw sample:N, --no-raw or --no-prompts.",
    )


def write_durably(path: Path, data: bytes) -> None:
    """Write a whole file so that a crash leaves the old one or the new one, never half of one.

    ClientError where the disk does not take it.
    """
    temporary = path.with_name(path.name + ".partial")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_fault(path, error) from None
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def seal(directory: Path, names: list[str]) -> Manifest:
    """Write the manifest of the named files (relative to `directory`) and return it."""
    manifest = Manifest({name: digest_file(directory / name) for name in sorted(names)})
    write_durably(directory / layout.MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest


def read(directory: Path) -> Manifest | None:
    """Read a directory's manifest; None where there is none yet, EvidenceError where it is damaged."""
    try:
        manifest = msgspec.json.decode((directory / layout.MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise EvidenceError(f"The manifest of {directory} cannot be read: {error}.") from error
    if manifest.version > layout.FORMAT_VERSION:
        raise EvidenceError(
            f"The manifest of {directory} has format {manifest.version}; this program reads up to "
            f"{layout.FORMAT_VERSION}.",
            hint="Use a newer nameplate.",
        )
    return manifest


def mismatches(directory: Path, manifest: Manifest, hashed_bytes: int | None = None) -> list[str]:
    """Name each file that is missing, or whose size or content differs from the manifest, with what differs.

    In a trial, a file that its reader would read is named too if the manifest does not list it. Of files larger than
    `hashed_bytes` only the size is compared.
    """
    found = [f"{name}: not in the manifest" for name in _unlisted(directory, manifest)]
    for name, expected in manifest.files.items():
        path = directory / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            found.append(f"{name}: points outside the directory")
        elif not _is_file(path):
            found.append(f"{name}: missing")
        elif path.stat().st_size != expected.size_bytes:
            found.append(f"{name}: {path.stat().st_size} bytes where the manifest says {expected.size_bytes}")
        elif hashed_bytes is not None and expected.size_bytes > hashed_bytes:
            continue
        elif digest_file(path).sha256 != expected.sha256:
            found.append(f"{name}: its content changed")
    return found


def _unlisted(directory: Path, manifest: Manifest) -> list[str]:
    if not (directory / layout.HEADER).exists():
        return []
    found = (path.name for name in layout.SEALED for path in layout.parts(directory, name))
    return sorted(name for name in found if name not in manifest.files)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # A name that no file system would take.
