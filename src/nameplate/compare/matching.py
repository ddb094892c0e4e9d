"""Which loads of two sides belong together, and which trials of them are pairs."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from nameplate.compare.side import Cell, Member, Side
from nameplate.exchange.peers.comparable import LENGTH_TOLERANCE


class Trial(Struct, frozen=True):
    """Hold a member with the number of its result on its side."""

    source: int
    member: Member


class Load(Struct, frozen=True):
    """Hold one load of one side: its cells, of one result or of several that repeat it, and all of their trials."""

    cells: tuple[tuple[int, Cell], ...]

    @property
    def first(self) -> Cell:
        return self.cells[0][1]

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(Trial(source, member) for source, cell in self.cells for member in cell.members)


class Matched(Struct, frozen=True):
    """Hold the loads that both sides have, in the order of A, and those of one alone."""

    both: tuple[tuple[Load, Load], ...]
    only_a: tuple[Load, ...]
    only_b: tuple[Load, ...]


def loads_of(side: Side) -> tuple[Load, ...]:
    """Bring the cells of a side's results together by what was asked of the server."""
    found: list[list[tuple[int, Cell]]] = []
    for number, source in enumerate(side.sources):
        for cell in source.cells:
            for held in found:
                if alike(held[0][1], cell):
                    held.append((number, cell))
                    break
            else:
                found.append([(number, cell)])
    return tuple(Load(tuple(cells)) for cells in found)


def alike(a: Cell, b: Cell, *, any_shape: bool = False) -> bool:
    """Tell whether two cells are of one load; lengths that another tool drew may differ a little."""
    if (a.group, a.load) != (b.group, b.load):
        return False
    return any_shape or a.shape == b.shape or _near(a.shape, b.shape)


def match(
    a: Sequence[Load], b: Sequence[Load], *, any_shape: bool = False, only: Sequence[str] = ()
) -> Matched:
    """Match the loads of two sides; `only` are patterns of the names of those that are wanted.

    Two sides of one load each belong together whatever they are: what differs between them is then a difference of the
    contract, and not a load that the other side lacks. With `any_shape` the shape does not tell loads apart.
    """
    held_a, held_b = ([load for load in side if _wanted(load, only)] for side in (a, b))
    if len(held_a) == len(held_b) == 1 and held_a[0].first.group == held_b[0].first.group:
        return Matched(((held_a[0], held_b[0]),), (), ())
    both = [
        (one, other)
        for one in held_a
        for other in held_b
        if alike(one.first, other.first, any_shape=any_shape)
    ]
    found_a, found_b = [one for one, _ in both], [other for _, other in both]
    return Matched(
        tuple(both),
        tuple(one for one in held_a if one not in found_a),
        tuple(other for other in held_b if other not in found_b),
    )


def shapes_of(loads: Sequence[Load]) -> set[str]:
    """Return the shapes of some loads."""
    return {load.first.shape for load in loads if load.first.shape}


def pairs(a: Sequence[Trial], b: Sequence[Trial]) -> tuple[Trial, ...] | None:
    """Return the trials of B in the order of their partners in A; None where they are no pairs.

    Prompts are a function of nonce, trial and attempt: with one nonce on both sides, trials of one key were sent the
    same.
    """
    nonces = {trial.member.nonce for trial in (*a, *b)}
    keys_a = [trial.member.key for trial in a]
    partners = {trial.member.key: trial for trial in b}
    if len(nonces) != 1 or nonces == {""} or len(set(keys_a)) != len(a) or len(partners) != len(b):
        return None
    return tuple(partners[key] for key in keys_a) if set(keys_a) == partners.keys() else None


def _wanted(load: Load, only: Sequence[str]) -> bool:
    cell = load.first
    names = (cell.name, cell.load, cell.group)
    return not only or any(fnmatchcase(name, pattern) for name in names for pattern in only)


def _near(a: str, b: str) -> bool:
    try:
        lengths = [tuple(map(float, shape.split("/"))) for shape in (a, b)]
    except ValueError:
        return False
    one, other = lengths
    return len(one) == len(other) and all(
        abs(x - y) <= LENGTH_TOLERANCE * max(x, y) for x, y in zip(one, other, strict=True)
    )
