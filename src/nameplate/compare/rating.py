"""Rated numbers against each other: a rated number is a verdict, so levels decide and there is no interval."""

from __future__ import annotations

from collections.abc import Iterator

from nameplate.compare.document import Interval, RatedCompared, RatedSide, Verdict
from nameplate.compare.side import Rated, Side
from nameplate.contract.levels import ConcurrencyLevels, Levels, levels_of
from nameplate.measure.study_record import StudyRecord
from nameplate.verdict.boundary import Status

# These say nothing of levels that can be held against others.
_VOID = (Status.invalid.value, Status.interrupted.value)


def rated_of(record: StudyRecord) -> tuple[Rated, ...]:
    """Return the rated number of every shape that has its verdict."""
    levels = levels_of(record.contract)
    found = []
    for shape in record.shapes:
        held = shape.boundary
        below = None if held.fail_level is None else levels.lower(held.fail_level, 1)
        found.append(
            Rated(
                shape=str(shape.shape),
                unit="concurrent" if isinstance(levels, ConcurrencyLevels) else "requests/s",
                rated=_value(levels, held.rated),
                passes=_value(levels, held.pass_level if held.rated != 0 else 0),
                fails=_value(levels, held.fail_level),
                below=_value(levels, below),
                status=held.status.value,
                levels=tuple(f"{levels.name(one.level)} {one.status}" for one in shape.levels),
            )
        )
    return tuple(found)


def compare_rated(a: Side, b: Side, *, any_shape: bool = False) -> tuple[RatedCompared, ...]:
    """Compare the rated numbers of each shape that both sides have exactly one of; of several studies none is chosen.

    With `any_shape` two sides of one shape each are compared though their shapes differ.
    """
    one, other = _only(a), _only(b)
    if any_shape and len(one) == len(other) == 1:
        return (_pair(one[0], other[0], f"{one[0].shape} and {other[0].shape}"),)
    return tuple(
        _pair(held, match, held.shape) for held in one for match in other if held.shape == match.shape
    )


def _only(side: Side) -> list[Rated]:
    every = [rated for source in side.sources for rated in source.rated]
    return [rated for rated in every if sum(one.shape == rated.shape for one in every) == 1]


def _pair(a: Rated, b: Rated, shape: str) -> RatedCompared:
    one, other = _side(a), _side(b)
    verdict, reason = _judge(a, b, one, other)
    return RatedCompared(
        shape=shape,
        unit=a.unit,
        a=one,
        b=other,
        absolute=_difference(one, other),
        verdict=verdict,
        reason=reason,
    )


def _judge(a: Rated, b: Rated, one: RatedSide, other: RatedSide) -> tuple[Verdict, str]:
    if a.unit != b.unit:
        return "not known", f"one is {a.unit}, the other {b.unit}"
    for name, rated in (("A", a), ("B", b)):
        if rated.status in _VOID:
            return "not known", f"{name} is {rated.status}"
    if one.low is not None and other.high is not None and other.high < one.low:
        return "worse", f"{one.low:g} passed in A, and {b.fails or 0:g} failed in B"
    if other.low is not None and one.high is not None and one.high < other.low:
        return "better", f"{other.low:g} passed in B, and {a.fails or 0:g} failed in A"
    if one.low == one.high == other.low == other.high is not None:
        return "equal", "the same boundary, confirmed on both sides"
    return "not known", " and ".join(_loose(("A", a, one), ("B", b, other))) or "the boundaries overlap"


def _loose(*sides: tuple[str, Rated, RatedSide]) -> Iterator[str]:
    for name, rated, side in sides:
        if side.low is None or side.high is None or side.low != side.high:
            yield f"{name} is {rated.status}: its boundary is open"


def _side(rated: Rated) -> RatedSide:
    void = rated.status in _VOID
    return RatedSide(
        rated=rated.rated,
        low=None if void else rated.passes,
        high=None if void else rated.below,
        status=rated.status,
        levels=rated.levels,
    )


def _difference(a: RatedSide, b: RatedSide) -> Interval | None:
    if a.rated is None or b.rated is None:
        return None
    low = None if b.low is None or a.high is None else b.low - a.high
    high = None if b.high is None or a.low is None else b.high - a.low
    return Interval(b.rated - a.rated, low, high)


def _value(levels: Levels, level: int | None) -> float | None:
    return None if level is None else float(levels.value(level))
