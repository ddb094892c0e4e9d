"""Reading JSON that somebody else wrote: bounded, tolerant of what is absent, plain about what is wrong.

Absent and null are None. A value of the wrong type, or a number that no measurement gives, is refused with its place
in the file: a guess would go into a table as if it had been measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nameplate.contract.errors import CallerError
from nameplate.hosts.cpuinfo import clean

# A published matrix of 48 cells is about 0.4 MB; 640 requests in each of them give some 15 MB.
FILE_LIMIT_BYTES = 32 << 20
DEPTH_LIMIT = 32
ENTRIES_LIMIT = 100_000
TEXT_LIMIT = 300
# More tokens, seconds or requests than any run has; above it nanoseconds would no longer be whole numbers.
NUMBER_LIMIT = 10**12

_NOT_JSON = re.compile(rb"[\[:,]\s*(-?(?:NaN|Infinity))\b")


def decode_object(data: bytes, name: str) -> dict[str, Any]:
    """Decode one JSON object; CallerError, in words, for anything else."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        raise _refused(name, "it is nested more deeply than any result") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        if found := _NOT_JSON.search(data):
            said = f"it holds {found[1].decode()}, which is no JSON number (at byte {found.start(1):,})"
            raise _refused(name, said, "Write null where a value is absent.") from None
        raise _refused(name, f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise _refused(name, f"it is a JSON {_type(value)}, not an object")
    _bound(value, name, 0)
    return value


def plain(value: str) -> str:
    """Return somebody else's text as one bounded line without control characters."""
    return clean(value, TEXT_LIMIT)


class Fields:
    """Read the fields of one JSON object; `missing` collects the names that were asked for and are not there."""

    def __init__(self, value: Mapping[str, Any], place: str) -> None:
        self._value = value
        self.place = place
        self.missing: list[str] = []

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def number(self, name: str, optional: bool = False) -> float | None:
        """Return a finite number of sensible size."""
        value = self._get(name, optional)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, value, "a number")
        if abs(value) > NUMBER_LIMIT:
            raise CallerError(
                f"{self.place}.{name} is {value:.3g}: no measurement gives that.",
                hint="The file is damaged, or was not written by the tool.",
            )
        return float(value)

    def positive(self, name: str, optional: bool = False) -> float | None:
        """Return a number above zero; zero and below are how that tool writes that there is none."""
        value = self.number(name, optional)
        return value if value is not None and value > 0 else None

    def count(self, name: str, optional: bool = False) -> int | None:
        """Return a whole number from zero on."""
        value = self.number(name, optional)
        if value is None:
            return None
        if value < 0 or value != int(value):
            raise self._wrong(name, value, "a count")
        return int(value)

    def flag(self, name: str, optional: bool = False) -> bool | None:
        value = self._get(name, optional)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def text(self, name: str, optional: bool = False) -> str:
        """Return a text as one bounded line; empty where there is none."""
        value = self._get(name, optional)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(name, value, "a text")
        return plain(value)

    def counts(self, name: str) -> tuple[int, ...]:
        """Return a list of counts, each once and in order."""
        values = self._list(name, False)
        whole = Fields({str(index): value for index, value in enumerate(values)}, f"{self.place}.{name}")
        found = (whole.count(str(index)) for index in range(len(values)))
        return tuple(sorted({value for value in found if value is not None}))

    def texts(self, name: str, optional: bool = False) -> tuple[str, ...]:
        values = self._list(name, optional)
        for value in values:
            if not isinstance(value, str):
                raise self._wrong(name, value, "a list of texts")
        return tuple(plain(value) for value in values)

    def objects(self, name: str, optional: bool = False) -> list[Fields]:
        """Return a list of objects."""
        found = []
        for index, value in enumerate(self._list(name, optional)):
            if not isinstance(value, dict):
                raise self._wrong(f"{name}[{index}]", value, "an object")
            found.append(Fields(value, f"{self.place}.{name}[{index}]".lstrip(".")))
        return found

    def inner(self, name: str, optional: bool = False) -> Fields:
        """Return an object's fields; where it is absent, fields that are all absent."""
        value = self._get(name, optional)
        if value is not None and not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        return Fields(value or {}, f"{self.place}.{name}".lstrip("."))

    def by_context(self, name: str, optional: bool = False) -> Iterator[tuple[int, Fields]]:
        """Yield an object's entries, whose names are context lengths."""
        entries = self.inner(name, optional)
        for key in entries._value:
            if not key.isascii() or not key.isdecimal() or len(key) > 12:
                raise CallerError(f"{entries.place} has an entry {plain(key)!r}, which is no context length.")
            yield int(key), entries.inner(key)

    def raw(self) -> Mapping[str, Any]:
        return self._value

    def _get(self, name: str, optional: bool) -> Any:
        if name not in self._value and not optional:
            self.missing.append(name)
        return self._value.get(name)

    def _list(self, name: str, optional: bool) -> list[Any]:
        value = self._get(name, optional)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, value, "a list")
        return value

    def _wrong(self, name: str, value: object, wanted: str) -> CallerError:
        shown = plain(msgspec.json.encode(value).decode())[:60]
        return CallerError(
            f"{self.place}.{name} is {shown}, where {wanted} belongs.".lstrip("."),
            hint="The file is damaged, or was not written by the tool.",
        )


def _bound(value: Any, name: str, depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise _refused(name, f"it is nested more than {DEPTH_LIMIT} deep")
    if isinstance(value, dict | list):
        if len(value) > ENTRIES_LIMIT:
            raise _refused(name, f"one of its lists has {len(value):,} entries")
        for inner in value.values() if isinstance(value, dict) else value:
            _bound(inner, name, depth + 1)
    elif isinstance(value, int) and abs(value) >= 1 << 63:
        raise _refused(name, "it holds a whole number of more than 64 bits")


def _type(value: object) -> str:
    names: dict[type, str] = {list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def _refused(name: str, why: str, hint: str = "") -> CallerError:
    return CallerError(
        f"{name} cannot be read: {why}.", hint=hint or "Give the result file as the tool wrote it."
    )
