"""Files of other tools, opened with bounded memory: line by line where they have lines, whole up to a limit."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.exchange.formats import Format, known_formats, recognise, recognise_item, seems
from nameplate.exchange.loose import plain
from nameplate.exchange.strangers import is_known_name, stranger_of
from nameplate.exchange.streams import open_plain

# A result of 10,000 requests of 1,000 tokens with all gaps is about 200 MB; above it nothing is read at once.
WHOLE_LIMIT_BYTES = 256 << 20
# One request of AIPerf's raw export with 100,000 chunks is about 40 MB.
LINE_LIMIT_BYTES = 64 << 20
HEAD_BYTES = 1 << 20
# Above it names are not looked at twice: that takes a second parse, of Python objects.
TWICE_LIMIT_BYTES = 8 << 20
# Of a directory so many files are looked at, and so many named.
NAMES_LIMIT, NAMED = 10_000, 8
_BOM = b"\xef\xbb\xbf"

# Python writes these bare, which is no JSON; a string around them is passed over, ended or not.
_BARE = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|-?\bInfinity\b|\bNaN\b', re.DOTALL)


class Opened(Struct, frozen=True):
    """Hold a file that was recognised: `single` where all of it is one object, `array` where it is a list of them."""

    path: Path
    format: Format
    bytes: int
    single: bool
    array: bool = False


class Line(Struct, frozen=True):
    """Hold one line, counted from 1: its object, or why it is none; `torn` where the file ends inside it."""

    number: int
    value: dict[str, msgspec.Raw] | None
    torn: bool = False
    why: str = ""


def open_result(path: Path) -> Opened:
    """Recognise a file by its content; CallerError, in words, where it cannot be read or is not known."""
    if path.is_dir():
        raise _directory(path)
    if not path.is_file():
        raise CallerError(f"{path} is not a file.")
    size = path.stat().st_size
    with open_plain(path) as stream:
        first = stream.readline(LINE_LIMIT_BYTES).removeprefix(_BOM)
        while first and not first.strip():
            first = stream.readline(LINE_LIMIT_BYTES)
        if first.lstrip()[:1] not in (b"{", b"["):
            raise _damaged(path, "it holds no JSON")
        after = stream.read(65)
        more = bool(after.strip()) or len(after) == 65
    value = _object(first)
    if value is not None:
        kind = _known(recognise(value), path, value)
        _twice(first, path)
        return Opened(path, kind, size, single=not more)
    if first.lstrip().startswith(b"["):
        return _array(path, size)
    if not more and len(first) < LINE_LIMIT_BYTES and _whole(first) is None:
        raise _damaged(path, _why(first))
    data = read_whole(path)
    value = _object(data)
    if value is None:
        raise _damaged(path, _why(data))
    kind = _known(recognise(value), path, value)
    _twice(data, path)
    return Opened(path, kind, size, single=True)


def _array(path: Path, size: int) -> Opened:
    """Recognise a list of objects by its first."""
    data = read_whole(path)
    values = _list(data)
    if values is None:
        raise _damaged(path, _why(data))
    if not values:
        raise _damaged(path, "it is an empty list")
    kind = _known(recognise_item(values[0]), path, values[0])
    _twice(data, path)
    return Opened(path, kind, size, single=False, array=True)


def items_of(opened: Opened) -> Iterator[Line]:
    """Yield the objects of a file that has many: one a line, or the entries of a list, counted from 1."""
    if not opened.array:
        yield from objects(opened.path)
        return
    values = _list(read_whole(opened.path))
    if values is None:
        raise _damaged(opened.path, "it is not what it was")
    for number, value in enumerate(values, 1):
        yield Line(number, value)


def read_whole(path: Path) -> bytes:
    """Read a whole file of bounded size."""
    with open_plain(path) as stream:
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
    with open_plain(path) as stream:
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


def _list(data: bytes) -> list[dict[str, msgspec.Raw]] | None:
    for held in (data, _BARE.sub(_quoted, data) if b"Infinity" in data or b"NaN" in data else b""):
        try:
            found: list[dict[str, msgspec.Raw]] = msgspec.json.decode(held, type=list[dict[str, msgspec.Raw]])
            return found
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            continue
    return None


def _twice(data: bytes, path: Path) -> None:
    """Refuse a document in which a name stands twice: which of its values counts is not said."""
    if len(data) > TWICE_LIMIT_BYTES:
        return

    def pairs(found: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in found]
        if len(set(names)) < len(names):
            raise _TwiceError(next(name for at, name in enumerate(names) if name in names[:at]))

    try:
        json.loads(data, object_pairs_hook=pairs, parse_float=_nothing, parse_int=_nothing)
    except _TwiceError as twice:
        raise CallerError(
            f"{path} holds {plain(str(twice))!r} twice in one object: which of its values counts is not said.",
            hint="The file is damaged, or was put together by hand: give it as the tool wrote it.",
        ) from None
    except (ValueError, RecursionError):
        # What one parser takes and the other does not is no name that stands twice.
        return


class _TwiceError(Exception):
    pass


def _nothing(_: str) -> None:
    return None


def _directory(path: Path) -> CallerError:
    """Say which files of a directory are results, by their names; looked at are it and the directories in it."""
    found = sorted(
        str(held.relative_to(path)) for held in islice(_files(path), NAMES_LIMIT) if is_known_name(held.name)
    )
    if not found:
        return CallerError(
            f"{path} is a directory, and holds no result file by a name that is known.",
            hint=f"Give a file. Known are: {known_formats()}.",
        )
    named = ", ".join(map(plain, found[:NAMED])) + (
        f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    )
    return CallerError(
        f"{path} is a directory; result files in it are: {named}.",
        hint=f"Give one of them: nameplate import '{plain(str(path / found[0]))}'.",
    )


def _files(path: Path) -> Iterator[Path]:
    try:
        for held in sorted(path.iterdir()):
            if held.is_file():
                yield held
            elif held.is_dir() and not held.is_symlink():
                yield from (inner for inner in sorted(held.iterdir()) if inner.is_file())
    except OSError:
        return


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
    if isinstance(value, list):
        return "it is a JSON list, and not one of objects"
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
    with open_plain(path) as stream:
        head = stream.read(HEAD_BYTES)
    stranger = stranger_of(head)
    if stranger is not None:
        return CallerError(f"{path} is {stranger.says}, which cannot be imported.", hint=stranger.hint)
    said = seems(head)
    return CallerError(
        f"{path} cannot be read as a result file: {why}.",
        why=f"It is {said}."
        if said in ("empty", "nothing but blanks", "not text")
        else f"It seems to be {said}.",
        hint=f"Give a result file as its tool wrote it. Known are: {known_formats()}.",
    )
