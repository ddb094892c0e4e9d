"""The account of a file's lines: how many were read, which could not be, and whether the last one is torn."""

from __future__ import annotations

from nameplate.contract.errors import CallerError
from nameplate.exchange.formats import Format, recognise
from nameplate.exchange.loose import plain
from nameplate.exchange.opening import Line
from nameplate.exchange.peers.run import LINES, Check

# So many are named; the rest is counted.
_NAMED = 3


class Lines:
    """Count lines as they are taken; a torn last one is dropped and said, one inside the file contradicts it."""

    def __init__(self, kind: Format | None = None) -> None:
        self._kind = kind
        self._bad: list[tuple[int, str]] = []
        self._bad_count = 0
        self._read = 0
        self._torn: int | None = None

    def take(self, line: Line) -> bool:
        """Say whether a line holds an object of the kind; if not it is counted."""
        if line.value is None:
            if line.torn:
                self._torn = line.number
            else:
                self.unreadable(line.number, line.why)
            return False
        if self._kind is not None and recognise(line.value) is not self._kind:
            self.unreadable(line.number, "it is of another kind than the first")
            return False
        return True

    def unreadable(self, number: int, why: str) -> None:
        self._bad_count += 1
        if len(self._bad) < _NAMED:
            self._bad.append((number, plain(why)))

    def close(self, records: int) -> None:
        """Take how many records were read; CallerError where there is none."""
        self._read = records
        if not records:
            why = f"Line {self._bad[0][0]}: {self._bad[0][1]}." if self._bad else ""
            raise CallerError("No line of the file could be read as a record.", why=why)

    def checks(self) -> tuple[Check, ...]:
        """Return the check of the lines."""
        said = f"{self._read:,} lines read"
        if self._torn is not None:
            said += f"; line {self._torn:,}, the last one, is torn and dropped"
        if self._bad:
            named = "; ".join(f"line {number:,}: {why}" for number, why in self._bad)
            return (Check(LINES, "contradicted", f"{self._bad_count:,} cannot be read ({named}); {said}"),)
        return (Check(LINES, "unverified" if self._torn is not None else "holds", said),)
