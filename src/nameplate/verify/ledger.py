"""Where checks note what they find, until each has a status."""

from __future__ import annotations

from collections.abc import Iterable

from nameplate.verify.check import Check, Status
from nameplate.verify.names import Name

SHOWN = 3
# Hostile evidence can be wrong in every place; beyond this only the number is kept.
KEPT = 1000


class Ledger:
    """Collect findings by check; a check without any passes once it is closed, and is unverified until then."""

    def __init__(self, names: Iterable[Name]) -> None:
        self._names = tuple(names)
        self._failures: dict[Name, list[str]] = {}
        self._more: dict[Name, int] = {}
        self._unverified: dict[Name, str] = {}
        self._admitted: dict[Name, str] = {}
        self._closed: dict[Name, tuple[str, int]] = {}
        self._says: dict[Name, str] = {}
        self.stopped = ""

    def fail(self, name: Name, detail: str) -> None:
        """Note a contradiction."""
        found = self._failures.setdefault(name, [])
        if len(found) < KEPT:
            found.append(detail)
        else:
            self._more[name] = self._more.get(name, 0) + 1

    def failed(self, name: Name) -> bool:
        return name in self._failures

    def unverified(self, name: Name, detail: str) -> None:
        """Note that a check, or a part of it, lacks what it needs."""
        self._unverified.setdefault(name, detail)

    def admit(self, name: Name, detail: str) -> None:
        """Note that a check does not hold and that the evidence says so itself."""
        self._admitted.setdefault(name, detail)

    def close(self, name: Name, detail: str, counted: int = 0, says: str | None = None) -> None:
        """Note that a check was carried out; `detail` is shown where it passes."""
        self._closed[name] = (detail, counted)
        if says is not None:
            self._says[name] = says

    def checks(self) -> tuple[Check, ...]:
        """Return all checks; those that were not carried out are unverified, with what stopped them."""
        return tuple(self._check(name) for name in self._names)

    def _check(self, name: Name) -> Check:
        detail, counted = self._closed.get(name, ("", 0))
        status: Status
        if name in self._failures:
            status, detail = "fail", self._told(name)
        elif name not in self._closed:
            status = "unverified"
            detail = self._unverified.get(name) or f"not checked: {self.stopped or 'not reached'}"
        elif name in self._unverified:
            status, detail = "unverified", self._unverified[name]
        elif name in self._admitted:
            status, detail = "invalid", self._admitted[name]
        else:
            status = "pass"
        return Check(name=name, status=status, detail=detail, counted=counted, says=self._says.get(name))

    def _told(self, name: Name) -> str:
        found = self._failures[name]
        more = len(found) - SHOWN + self._more.get(name, 0)
        told = "; ".join(clipped(detail) for detail in found[:SHOWN])
        return f"{told}; and {more} more" if more > 0 else told


def clipped(text: str, limit: int = 300) -> str:
    """Return a text short enough for one line, without characters that a terminal would obey."""
    plain = "".join(char if char.isprintable() else "�" for char in text[: limit + 1])
    return plain if len(text) <= limit else plain[:limit] + "…"
