"""The locator: where to look for the boundary. Its answers only navigate."""

from __future__ import annotations

from collections.abc import Mapping

from nameplate.contract.levels import Levels


def next_probe(probes: Mapping[int, bool], levels: Levels, alone_ns: float | None = None) -> int | None:
    """Return the next level to try, or None where pass and fail are adjacent or a bound is reached.

    `probes` says of each tried level whether it passed. Without a guess: from where the levels start, given what one
    request `alone` takes, double up; if the first fails, halve; then bisect. A guess is tried first and the steps away
    from it double (1, 2, 4, ...), so a good one costs two probes.
    """
    lowest, highest = levels.lowest, levels.highest
    guessed = levels.guess is not None
    passing = [level for level, passed in probes.items() if passed]
    failing = [level for level, passed in probes.items() if not passed]
    if not probes:
        start = levels.start(alone_ns) if levels.guess is None else levels.guess
        return min(max(start, lowest), highest)
    if not failing:
        low = max(passing)
        above = low + 2 ** (len(passing) - 1) if guessed else levels.doubled(low)
        return min(above, highest) if low < highest else None
    if not passing:
        high = min(failing)
        below = high - 2 ** (len(failing) - 1) if guessed else levels.halved(high)
        return max(below, lowest) if high > lowest else None
    low, high = max(passing), min(failing)
    return (low + high) // 2 if high - low > 1 else None


def located(probes: Mapping[int, bool], lowest: int) -> int:
    """Return the highest level that passed; one below the lowest where none did."""
    return max((level for level, passed in probes.items() if passed), default=lowest - 1)
