"""Whether a plate still holds for a server, fact by fact."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from nameplate.contract.identity import IdentityChange
from nameplate.measure.plate import Plate
from nameplate.report import numbers
from nameplate.report.capacity import rated_number
from nameplate.report.layout import facts, heading, indented, stacked
from nameplate.report.safe import safe
from nameplate.report.style import style_of
from nameplate.report.table import Column, FittingTable

_VALUE_LIMIT = 120


def check_summary(changes: Sequence[IdentityChange], plate: Plate) -> RenderableType:
    """Return whether the plate holds, what changed, and what could not be read any more."""
    changed = [change for change in changes if change.kind == "changed"]
    lost = [change for change in changes if change.kind == "unverified"]
    if changed:
        names = ", ".join(safe(change.name, 60) for change in changed)
        first = Text(f"The plate no longer holds: {names} changed. Measure again.", style=style_of("fail"))
    elif lost:
        first = Text("The plate holds as far as can be read.", style=style_of("unverified"))
    else:
        first = Text("The plate holds: the server is the one that was rated.", style=style_of("pass"))
    parts: list[RenderableType | None] = [first]
    if changes:
        rows = [
            (safe(one.name, 60), _value(one.before), _value(one.after), safe(one.kind))
            for one in (*changed, *lost)
        ]
        columns = [Column(head, side="left") for head in ("fact", "on the plate", "now", "")]
        parts.append(FittingTable(columns, rows, wraps=(1, 2)))
    if lost:
        parts.append(
            Text(
                "Unverified is known before and unknown now: give it with --server-log or --fact name=value."
            )
        )
    rated = [
        (str(shape.shape), f"{rated_number(shape, plate.contract)}, {shape.status}") for shape in plate.shapes
    ]
    parts.append(Group(heading("Rated"), facts(rated)))
    if plate.identity.missing:
        names = ", ".join(safe(name, 60) for name in plate.identity.missing)
        parts.append(Group(heading("Never known, so never compared"), indented(Text(names))))
    return stacked(parts)


def _value(value: object) -> str:
    return numbers.ABSENT if value is None else safe(value, _VALUE_LIMIT)
