"""Sides made of numbers: cells of trials whose measures are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from nameplate.compare.measures import Statistic
from nameplate.compare.side import Cell, Member, Observed, Rated, Side, Source, Terms

MS = 1e6
TTFT = Statistic("ttft", "p95")
RATE = Statistic("output_rate")


def seen(value: float | None, n: int = 64, **more: object) -> Observed:
    return Observed(value, n, **more)  # type: ignore[arg-type]


def member(key: str, observed: Mapping[str, Observed | float], nonce: str = "") -> Member:
    """Return a trial; a number stands for itself behind 64 requests."""
    held = {
        Statistic.parse(name): value if isinstance(value, Observed) else seen(value)
        for name, value in observed.items()
    }
    return Member(key=key, nonce=nonce or f"nonce of {key}", observed=held)


def cell(
    members: Sequence[Member], load: str = "C=8", shape: str = "512/64", group: str = "trial", **terms: Any
) -> Cell:
    return Cell(
        group=group,
        shape=shape,
        load=load,
        terms={"shape": shape, "load.requests": 64, **terms},
        members=tuple(members),
    )


def source(
    cells: Sequence[Cell],
    terms: Terms | None = None,
    path: str = "somewhere",
    promises: Sequence[Statistic] = (TTFT,),
    rated: Sequence[Rated] = (),
) -> Source:
    return Source(
        path=path,
        kind="capacity",
        tool="nameplate 1",
        terms=terms if terms is not None else {"engine.version": "1"},
        cells=tuple(cells),
        promises=tuple(promises),
        rated=tuple(rated),
    )


def side(name: str, *sources: Source) -> Side:
    return Side(name, f"path/{name}", tuple(sources))


def trials(name: str, values: Sequence[float | Observed], statistic: str = "ttft p95") -> list[Member]:
    """Return a trial a value of one measure."""
    return [member(f"{name}{at}", {statistic: value}) for at, value in enumerate(values)]


def plain(name: str, values: Sequence[float | Observed], statistic: str = "ttft p95", **more: Any) -> Side:
    """Return a side of one result with one cell of one measure."""
    return side(name, source([cell(trials(name, values, statistic), **more)], path=name))


def noisy(draws: Random, level: float, noise: float, count: int) -> list[float]:
    """Draw trials' values with a relative standard deviation."""
    return [level * (1 + draws.gauss(0, noise)) for _ in range(count)]


def rated_one(passes: int | None, fails: int | None, status: str = "confirmed") -> Rated:
    """Return a rated number of the usual shape, held by these levels."""
    return Rated(
        shape="512/64",
        unit="concurrent",
        rated=passes,
        passes=passes,
        fails=fails,
        below=None if fails is None else fails - 1,
        status=status,
    )
