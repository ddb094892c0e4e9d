"""The gates of a trial: conditions that stand before every promise."""

from __future__ import annotations

import htpy as h

from nameplate.measure.result import TrialResult
from nameplate.pages.table import Cell, Column, table
from nameplate.pages.words import status
from nameplate.report import numbers
from nameplate.report.safe import safe
from nameplate.verdict.gate import MEANING

_DETAIL_LIMIT = 1500
# What is wrong first, what could not be looked at next.
_ORDER = ("invalid", "fail", "inconclusive", "unverified", "pass")


def gates_table(result: TrialResult, *, all_of_them: bool = True) -> h.Node:
    """Return every gate with its status and what was found, broken ones first; or those alone, and a count."""
    ordered = sorted(enumerate(result.gates), key=lambda one: _ORDER.index(one[1].status))
    broken = sum(gate.status != "pass" for gate in result.gates)
    passing = len(result.gates) - broken
    if not all_of_them and not broken:
        return h.p[f"All {numbers.count(passing, 'gate')} pass."]
    columns = (
        Column("gate", kind="text"),
        Column("status", kind="text"),
        Column("counted"),
        Column("what was found", kind="text"),
        Column("when broken, it means", kind="text"),
    )
    rows: list[list[Cell | str]] = [
        [
            Cell(gate.gate.replace("_", " "), gate.gate.value, f"gates.{at}.gate"),
            Cell(status(gate.status), gate.status, f"gates.{at}.status"),
            Cell(f"{gate.counted:,}", gate.counted, f"gates.{at}.counted"),
            safe(gate.detail, _DETAIL_LIMIT) or "-",
            MEANING[gate.gate],
        ]
        for at, gate in ordered
        if all_of_them or gate.status != "pass"
    ]
    title = (
        f"All {len(result.gates)} gates pass"
        if not broken
        else f"Gates: {broken} of {len(result.gates)} do not pass"
    )
    return table(columns, rows, title, note=None if all_of_them else f"The other {passing} pass.")
