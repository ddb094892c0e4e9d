"""The limit on drift: whether any series was ever worse, by the limit, than it began.

The net change over a run tells nothing of its middle: a server that was slow for three hours and recovered has none.
So of a series that stepped its worst level is held against its first one, whatever came after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from nameplate.verdict.drift import RUN_WINDOWS, SeriesDrift, amount

WorseStatus = Literal["pass", "fail", "inconclusive"]


class Worse(Struct, frozen=True, kw_only=True):
    """Hold whether one series got worse by what is material of it, and in words from which change on it would have."""

    series: str
    status: WorseStatus
    limit: str
    detail: str


def judge_worse(held: SeriesDrift) -> Worse:
    """Judge one series against the material change that it was judged by; only a change for the worse fails."""
    status, detail = _judged(held)
    limit = "" if held.material is None else amount(held.material, held.unit)
    if held.material is not None and held.level is not None:
        share = held.material_share * abs(held.level)
        limit += " (its floor)" if held.material > share else ""
    name = f"{held.series} (from schedule)" if held.basis == "schedule" else held.series
    return Worse(series=name, status=status, limit=limit, detail=detail)


def combine_worse(judged: Sequence[Worse], max_drift: float) -> tuple[WorseStatus, str]:
    """Combine all series: fail, then inconclusive, then pass; with what decided, and the limit of each in its unit."""
    kinds: tuple[WorseStatus, ...] = ("fail", "inconclusive")
    for kind in kinds:
        found = [one for one in judged if one.status == kind]
        if found:
            return kind, "; ".join(
                f"{one.series}: {one.detail}" + (f"; limit {one.limit}" if one.limit else "") for one in found
            )
    if not judged:
        return "inconclusive", "no series could be read"
    limits = ", ".join(f"{one.series} {one.limit}" for one in judged)
    return "pass", f"no series was found worse by {max_drift:.1%} of its level or its floor: {limits}"


def _judged(held: SeriesDrift) -> tuple[WorseStatus, str]:
    if held.conclusion == "collapsed":
        return "fail", held.detail
    if held.conclusion == "undecided" or held.material is None or held.change is None:
        return "inconclusive", held.detail
    first = held.shifts[0].before if held.shifts else held.level
    excursion = max(
        (_adverse(shift.after - held.shifts[0].before, held) for shift in held.shifts), default=0.0
    )
    if not held.shifts and held.conclusion != "steady":
        return ("fail" if _adverse(held.change, held) >= held.material else "pass"), held.detail
    if excursion >= held.material:
        return "fail", held.detail
    # Too short for a level that is told from noise, and too long for a hiccup.
    if (
        first is not None
        and held.worst_run is not None
        and held.worst_run_at_s is not None
        and _adverse(held.worst_run - first, held) >= held.material
    ):
        return "inconclusive", (
            f"{held.detail}; but {RUN_WINDOWS} windows on end, from {held.worst_run_at_s / 3600:.2f} h on, all stood "
            f"at {amount(held.worst_run, held.unit)} or worse against {amount(first, held.unit)}"
        )
    return "pass", held.detail


def _adverse(change: float, held: SeriesDrift) -> float:
    return change if held.worse == "up" else -change
