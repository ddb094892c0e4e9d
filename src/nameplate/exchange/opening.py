"""Files of other tools, opened with bounded memory: line by line where they have lines, whole up to a limit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.exchange.formats import Format, known_formats, recognise, seems
from nameplate.exchange.loose import plain

# A result of 10,000 requests of 1,000 tokens with all gaps is about 200 MB; above it nothing is read at once.
WHOLE_LIMIT_BYTES = 256 << 20
# One request of AIPerf's raw export with 100,000 chunks is about 40 MB.
LINE_LIMIT_BYTES = 64 << 20
HEAD_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"

# Python writes these bare, which is no JSON; a string around them is passed over, ended or not.
_BARE = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|-?\bInfinity\b|\bNaN\b', re.DOTALL)


class Opened(Struct, frozen=True):
    """Hold a file that was recognised: `single` where all of it is one object."""

    path: Path
    format: Format
    bytes: int
    single: bool


class Line(Struct, frozen=True):
    """Hold one line, counted from 1: its object, or why it is none; `torn` where the file ends inside it."""

    number: int
    value: dict[str, msgspec.Raw] | None
    torn: bool = False
    why: str = ""


def open_result(path: Path) -> Opened:
    """Recognise a file by its content; CallerError, in words, where it cannot be read or is not known."""
    if not path.is_file():
        raise CallerError(f"{path} is not a file.")
    size = path.stat().st_size
    with path.open("rb") as stream:
        first = stream.readline(LINE_LIMIT_BYTES).removeprefix(_BOM)
        while first and not first.strip():
            first = stream.readline(LINE_LIMIT_BYTES)
        more = bool(stream.read(64).strip()) or stream.tell() < size
    value = _object(first)
    if value is not None:
        kind = _known(recognise(value), path, value)
        return Opened(path, kind, size, single=not more)
    if not more and len(first) < LINE_LIMIT_BYTES and _whole(first) is None:
        raise _damaged(path, _why(first))
    data = read_whole(path)
    value = _object(data)
    if value is None:
        raise _damaged(path, _why(data))
    return Opened(path, _known(recognise(value), path, value), size, single=True)


def read_whole(path: Path) -> bytes:
    """Read a whole file of bounded size."""
    with path.open("rb") as stream:
        data = stream.read(WHOLE_LIMIT_BYTES + 1)
    if len(data) > WHOLE_LIMIT_BYTES:
        said = seems(data[:HEAD_BYTES])
        raise CallerError(
            f"{path} is larger than {WHOLE_LIMIT_BYTES >> 20} MiB, and is one piece of JSON: it seems to be {said}.",
            why="JSON can only be read whole, and memory is bounded.",
            hint="Save it without the text of prompts and answers, or give the tool's file with a request a line.",
        )
    return data.removeprefix(_BOM)


def objects(path: Path) -> Iterator[Line]:
    """Yield the object of each line that is not blank."""
    with path.open("rb") as stream:
        number = 0
        while data := stream.readline(LINE_LIMIT_BYTES):
            number += 1
            if number == 1:
                data = data.removeprefix(_BOM)
            if not data.strip():
                continue
            if len(data) >= LINE_LIMIT_BYTES and not data.endswith(b"\n"):
                while (rest := stream.readline(LINE_LIMIT_BYTES)) and not rest.endswith(b"\n"):
                    pass
                yield Line(number, None, why=f"longer than {LINE_LIMIT_BYTES >> 20} MiB")
                continue
            value = _object(data)
            torn = value is None and not data.endswith(b"\n")
            yield Line(number, value, torn, "" if value is not None else _why(data))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def decoded(raw: msgspec.Raw | None, kind: Any, place: str) -> Any:
    """Decode one value as a type; None where there is none, CallerError with its place where it is another."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise CallerError(
            f"{place} cannot be read: {_words(error)}.",
            hint="The file is damaged, or was not written by the tool.",
        ) from None


def object_of(data: bytes, path: Path) -> dict[str, msgspec.Raw]:
    """Return the names and undecoded values of one JSON object; CallerError, in words, for anything else."""
    value = _object(data)
    if value is None:
        raise _damaged(path, _why(data))
    return value


def _object(data: bytes) -> dict[str, msgspec.Raw] | None:
    found = _whole(data)
    return found if isinstance(found, dict) else None


def _whole(data: bytes) -> object | None:
    """Decode the outermost object; what Python writes bare (Infinity, NaN) becomes a text, or null."""
    try:
        return msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    if b"Infinity" not in data and b"NaN" not in data:
        return None
    try:
        return msgspec.json.decode(_BARE.sub(_quoted, data), type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _quoted(found: re.Match[bytes]) -> bytes:
    word = found[0]
    if word.startswith(b'"'):
        return word
    return b"null" if word == b"NaN" else b'"' + word + b'"'


def _why(data: bytes) -> str:
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        return "it is nested more deeply than any result"
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return _words(error)
    return "it is JSON, but no object" if not isinstance(value, dict) else "it cannot be decoded"


def _words(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested more deeply than any result"
    said = plain(str(error))
    return "it is cut: it ends inside a value" if "truncated" in said else said


def _known(kind: Format | None, path: Path, value: dict[str, msgspec.Raw]) -> Format:
    if kind is None:
        names = ", ".join(plain(name) for name in sorted(value)[:8]) or "nothing"
        raise CallerError(
            f"{path} is no result file that is known here.",
            why=f"At its top it has: {names}.",
            hint=f"Known are: {known_formats()}.",
        )
    if not kind.read:
        raise CallerError(
            f"{path} is {kind.says}, which cannot be imported.",
            hint=kind.hint or f"Known are: {known_formats()}.",
        )
    return kind


def _damaged(path: Path, why: str) -> CallerError:
    with path.open("rb") as stream:
        said = seems(stream.read(HEAD_BYTES))
    return CallerError(
        f"{path} cannot be read as a result file: {why}.",
        why=f"It is {said}."
        if said in ("empty", "nothing but blanks", "not text")
        else f"It seems to be {said}.",
        hint=f"Give a result file as its tool wrote it. Known are: {known_formats()}.",
    )
