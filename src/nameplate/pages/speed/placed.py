"""A planned cell with its place in `result.json`, so that every number on the page says where it stands."""

from __future__ import annotations

from msgspec import Struct

from nameplate.contract.matrix import Kind
from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.pages.anchor import anchor, trial_anchor
from nameplate.pages.subject import SpeedSubject
from nameplate.report.cells import PHASE, values_of


class Placed(Struct, frozen=True):
    """Hold a planned cell and its index in the result's rows."""

    row: CellRow
    index: int

    @property
    def path(self) -> str:
        return f"rows.{self.index}"

    @property
    def values(self) -> CellValues | None:
        """Return the numbers of a valid cell; None of any other, whatever was measured in it."""
        return values_of(self.row)


def placed(result: SpeedResult, kind: Kind | None = None) -> list[Placed]:
    """Return the planned cells, of one kind or of all, by context and then by simultaneous requests."""
    kinds = (kind,) if kind is not None else tuple(PHASE)
    held = [Placed(row, index) for index, row in enumerate(result.rows)]
    return [
        one
        for wanted in kinds
        for one in sorted(
            (each for each in held if each.row.kind == wanted),
            key=lambda each: (each.row.context_tokens, each.row.concurrency),
        )
    ]


def line_anchor(subject: SpeedSubject, one: Placed) -> str:
    """Return the identifier of a cell's line in the table of all measurements."""
    return anchor(subject.directory, "cell", one.index)


def trial_of(subject: SpeedSubject, one: Placed) -> str | None:
    """Return the key of the trial that counts for a cell, where its evidence is there."""
    last = one.row.trials[-1] if one.row.trials else None
    return last if last is not None and subject.trial(last) is not None else None


def link(subject: SpeedSubject, one: Placed) -> str:
    """Return where a cell leads: to its trial, or to its line in the table of all measurements."""
    key = trial_of(subject, one)
    return f"#{line_anchor(subject, one)}" if key is None else f"#{trial_anchor(subject.directory, key)}"
