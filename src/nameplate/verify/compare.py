"""Two JSON documents held against each other, value by value."""

from __future__ import annotations

import math
from collections.abc import Iterator

from nameplate.verify.ledger import clipped

# Both sides are computed by the same arithmetic; another machine's libm may differ in the last place.
RELATIVE_TOLERANCE = 1e-9
ABSENT = "<absent>"

# Fields of results, records and plates that hold sentences.
_PROSE = frozenset(
    {
        "detail",
        "reason",
        "reasons",
        "notes",
        "methodology",
        "warnings",
        "damage",
        "of",
        "begins",
        "ends",
        "label",
        "qualified",
        "not_qualified",
    }
)

Path = tuple[str | int, ...]


def differences(
    recorded: object, recomputed: object, path: Path = (), *, same_version: bool = True
) -> Iterator[tuple[Path, object, object]]:
    """Yield (path, recorded, recomputed) where two documents differ; numbers within one part in 10^9 are equal.

    What another version of this program wrote may say the same in other words, and need not say what only this
    version tells: without `same_version` neither is a difference. Every number and status that it did write counts.
    """
    if not same_version and (recorded is ABSENT or _is_prose(path, recorded, recomputed)):
        return
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        for key in recorded.keys() | recomputed.keys():
            here, there = recorded.get(key, ABSENT), recomputed.get(key, ABSENT)
            yield from differences(here, there, (*path, key), same_version=same_version)
    elif isinstance(recorded, list | tuple) and isinstance(recomputed, list | tuple):
        for at in range(max(len(recorded), len(recomputed))):
            here = recorded[at] if at < len(recorded) else ABSENT
            there = recomputed[at] if at < len(recomputed) else ABSENT
            yield from differences(here, there, (*path, at), same_version=same_version)
    elif not _same(recorded, recomputed):
        yield path, recorded, recomputed


def _is_prose(path: Path, recorded: object, recomputed: object) -> bool:
    """Tell whether a value is words for people, whose facts stand beside it as numbers and names."""
    if not _PROSE.intersection(path):
        return False
    kinds = (str, list, tuple)
    return isinstance(recorded, kinds) and isinstance(recomputed, kinds)


def _same(recorded: object, recomputed: object) -> bool:
    if isinstance(recorded, bool) or isinstance(recomputed, bool):
        return recorded is recomputed
    if isinstance(recorded, int) and isinstance(recomputed, int):
        return recorded == recomputed
    if isinstance(recorded, int | float) and isinstance(recomputed, int | float):
        try:
            return math.isclose(recorded, recomputed, rel_tol=RELATIVE_TOLERANCE)
        except OverflowError:
            return False
    return recorded == recomputed


def told(path: Path, recorded: object, recomputed: object) -> str:
    """Say one difference for people."""
    where = ".".join(map(str, path)) or "the document"
    return f"{clipped(where, 120)} is {_value(recorded)}, recomputed {_value(recomputed)}"


def _value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 64:
        return "an integer beyond 64 bits"
    return clipped(str(value) if value is ABSENT else repr(value), 100)
