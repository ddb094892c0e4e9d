"""The first look at a directory: nothing but regular files of sane size, and exactly those of the manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import msgspec

from nameplate.contract.errors import EvidenceError
from nameplate.evidence import layout
from nameplate.evidence.manifest import Manifest, mismatches
from nameplate.evidence.manifest import read as read_manifest
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.names import Name

# A result is some 25 KB and a plate of a hundred trials a few hundred; these documents are decoded whole.
DOCUMENT_LIMIT_BYTES = 64 << 20
_DOCUMENTS = (layout.HEADER, layout.RESULT, layout.MANIFEST)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def regular_file(path: Path) -> str | None:
    """Return what keeps a path from being read as a plain file, or None; a missing file is one."""
    try:
        if path.is_symlink():
            return "is a link, so its content is not the directory's own"
        return None if path.is_file() or not path.exists() else "is not a regular file"
    except (OSError, ValueError) as error:
        return f"cannot be looked at: {error}"


def document(path: Path) -> bytes:
    """Read a JSON document of bounded size; EvidenceError where it cannot be read, is no plain file or too large."""
    wrong = regular_file(path)
    if wrong is not None:
        raise EvidenceError(f"{path.name} {wrong}.")
    try:
        with path.open("rb") as stream:
            data = stream.read(DOCUMENT_LIMIT_BYTES + 1)
    except OSError as error:
        raise EvidenceError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if len(data) > DOCUMENT_LIMIT_BYTES:
        raise EvidenceError(f"{path.name} is larger than {DOCUMENT_LIMIT_BYTES >> 20} MiB.")
    return data


def decoded(path: Path) -> object:
    """Read a JSON document as plain values; EvidenceError where it is none."""
    try:
        return msgspec.json.decode(document(path))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise EvidenceError(f"{path.name} cannot be read: {error}.") from error


def trial_files_safe(directory: Path, ledger: Ledger) -> bool:
    """Refuse what must not even be opened: links, devices, documents that are too large."""
    safe = True
    for name in (*layout.SEALED, layout.MANIFEST):
        for path in {directory / name, *layout.parts(directory, name)}:
            wrong = regular_file(path)
            if wrong is None and name in _DOCUMENTS and path.exists():
                size = path.stat().st_size
                wrong = f"has {size} bytes, above the limit" if size > DOCUMENT_LIMIT_BYTES else None
            if wrong is not None:
                ledger.fail(Name.files, f"{path.name} {wrong}")
                safe = False
    return safe


def check_manifest(
    directory: Path, ledger: Ledger, name: Name, unfinished: str, hashed_bytes: int | None = None
) -> Manifest | None:
    """Hold a directory against its manifest; return it, or None where there is none or it is damaged.

    `unfinished` says what a directory without a manifest is. Files larger than `hashed_bytes` are not read: the check
    says how many, and holds their size alone.
    """
    try:
        document(directory / layout.MANIFEST)
    except EvidenceError as error:
        if not (directory / layout.MANIFEST).exists():
            ledger.unverified(name, unfinished)
        else:
            ledger.fail(name, str(error))
        return None
    try:
        manifest = read_manifest(directory)
    except EvidenceError as error:
        ledger.fail(name, str(error))
        return None
    except (ValueError, RecursionError) as error:
        ledger.fail(name, f"the manifest cannot be read: {error}")
        return None
    if manifest is None:
        ledger.unverified(name, unfinished)
        return None
    unsafe = [file for file in manifest.files if _unsafe(directory, file)]
    for file in unsafe:
        ledger.fail(name, f"{clipped(file, 80)!r} is no file of this directory")
    safe = msgspec.structs.replace(
        manifest, files={file: digest for file, digest in manifest.files.items() if file not in unsafe}
    )
    try:
        for wrong in mismatches(directory, safe, hashed_bytes):
            ledger.fail(name, wrong)
    except (OSError, ValueError) as error:
        ledger.fail(name, f"the files cannot be compared with the manifest: {error}")
    unread = sum(hashed_bytes is not None and one.size_bytes > hashed_bytes for one in safe.files.values())
    by_size = f"; {unread} of them large, and held by their size alone" if unread else ""
    ledger.close(name, f"{len(safe.files)} files as sealed{by_size}", len(safe.files))
    return safe


def require_listed(manifest: Manifest, names: Iterable[str], ledger: Ledger, name: Name) -> None:
    """Fail where a manifest leaves out a file that every sealed directory has."""
    for file in names:
        if file not in manifest.files:
            ledger.fail(name, f"{file} is not in the manifest")


def require_sealed(directory: Path, manifest: Manifest, ledger: Ledger, name: Name) -> None:
    """Fail where a file of evidence is there that the manifest does not name: it came after the seal."""
    for path in (part for file in layout.SEALED for part in layout.parts(directory, file)):
        if path.name not in manifest.files:
            ledger.fail(name, f"{path.name} is there, and the manifest does not name it")


def _unsafe(directory: Path, file: str) -> bool:
    """Tell whether a name of a manifest leads out of its directory: absolute, dots, or through a link."""
    parts = PurePosixPath(file).parts
    if "\\" in file or not parts or "/".join(parts) != file:
        return True
    if not all(_PLAIN_NAME.fullmatch(part) and len(part) < 256 for part in parts):
        return True
    path = directory
    for part in parts:
        path = path / part
        if path.is_symlink():
            return True
    return False
