"""The locator: where to look for the boundary. Its answers only navigate."""

from __future__ import annotations

from collections.abc import Mapping


def next_probe(
    probes: Mapping[int, bool], lowest: int, highest: int, first_guess: int | None = None
) -> int | None:
    """Return the next level to try, or None where pass and fail are adjacent or a bound is reached.

    `probes` says of each tried level whether it passed. Without a guess: from max(2, lowest) double up; if the first
    fails, halve; then bisect. A guess is tried first and the steps away from it double (1, 2, 4, ...), so a good
    one costs two probes.
    """
    passing = [level for level, passed in probes.items() if passed]
    failing = [level for level, passed in probes.items() if not passed]
    if not probes:
        start = max(2, lowest) if first_guess is None else max(first_guess, lowest)
        return min(start, highest)
    if not failing:
        low = max(passing)
        above = 2 * low if first_guess is None else low + 2 ** (len(passing) - 1)
        return min(above, highest) if low < highest else None
    if not passing:
        high = min(failing)
        below = high // 2 if first_guess is None else high - 2 ** (len(failing) - 1)
        return max(below, lowest) if high > lowest else None
    low, high = max(passing), min(failing)
    return (low + high) // 2 if high - low > 1 else None


def located(probes: Mapping[int, bool], lowest: int) -> int:
    """Return the highest level that passed; one below the lowest where none did."""
    return max((level for level, passed in probes.items() if passed), default=lowest - 1)
