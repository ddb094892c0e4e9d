"""The boundary of one shape: from level verdicts to the rated number, its status and the exit code.

====================  ==========================================================  ====
status                when                                                        exit
====================  ==========================================================  ====
`confirmed`           a pass and a fail, adjacent                                 0
`confirmed`, rated 0  C=1 fails in all confirmations (no rate is the least)       1
`noisy`               noisy levels between the pass and the fail: rated is the    3
                      pass
`open_above`          the highest allowed level passes: rated is at least that    3
`open_below`          the lowest allowed level, above 1, fails: rated is null     3
`budget`              trials or time used up                                      3
`invalid`             replaced twice and invalid again; identity changed          4
`interrupted`         by a person, or by a lost server                            130
                                                                                  or 5
====================  ==========================================================  ====
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from nameplate.verdict.level import LevelStatus
from nameplate.verdict.trial import TrialStatus


class Status(StrEnum):
    """Name how the search for a shape's boundary ended."""

    confirmed = "confirmed"
    noisy = "noisy"
    open_above = "open_above"
    open_below = "open_below"
    budget = "budget"
    invalid = "invalid"
    interrupted = "interrupted"


# The first of these that occurs over several shapes is the process's exit code.
EXIT_ORDER = (130, 5, 4, 3, 1, 0)

_EXIT = {
    Status.confirmed: 0,
    Status.noisy: 3,
    Status.open_above: 3,
    Status.open_below: 3,
    Status.budget: 3,
    Status.invalid: 4,
    Status.interrupted: 130,
}

_EXIT_OF_TRIAL: dict[TrialStatus, int] = {"pass": 0, "fail": 1, "inconclusive": 3, "invalid": 4}


class Boundary(Struct, frozen=True):
    """Hold a shape's answer: `rated`, the passing and failing level that hold it, noisy levels, exit code.

    `rated` is null where the status allows no number. Under `open_above` and `budget` it is a lower bound.
    """

    status: Status
    rated: int | None
    pass_level: int | None
    fail_level: int | None
    noisy: tuple[int, ...]
    exit_code: int


def rated_level(levels: Mapping[int, LevelStatus]) -> int | None:
    """Return the highest passing level below every failing or noisy one; None where there is none."""
    bad = [level for level, status in levels.items() if status in ("fail", "noisy")]
    lowest_bad = min(bad, default=None)
    passing = [
        level
        for level, status in levels.items()
        if status == "pass" and (lowest_bad is None or level < lowest_bad)
    ]
    return max(passing, default=None)


def wanted_levels(levels: Mapping[int, LevelStatus], lowest: int, highest: int) -> tuple[int, ...]:
    """Return the levels that must be confirmed next, lowest first; empty where the boundary is settled.

    `levels` holds settled levels (pass, fail, noisy), at least one. From them the search goes outward until a
    pass stands below and a fail above: down from the lowest failing or noisy level, and up from there past
    noisy and passing ones.
    """
    bad = sorted(level for level, status in levels.items() if status in ("fail", "noisy"))
    if not bad:
        above = max(levels) + 1
        return (above,) if above <= highest else ()
    wanted = []
    if bad[0] > lowest and bad[0] - 1 not in levels:
        wanted.append(bad[0] - 1)
    level = bad[0]
    while level <= highest and levels.get(level) in ("pass", "noisy"):
        level += 1
    if level <= highest and level not in levels:
        wanted.append(level)
    return tuple(wanted)


def settle(
    levels: Mapping[int, LevelStatus], lowest: int, highest: int, *, zero_below: bool
) -> Boundary | None:
    """Return the boundary that settled levels prove; None where more must be confirmed.

    `zero_below` says that nothing but zero lies below the lowest level, so that its failure is an answer.
    """
    if not levels or wanted_levels(levels, lowest, highest):
        return None
    rated = rated_level(levels)
    bad = sorted(level for level, status in levels.items() if status in ("fail", "noisy"))
    if not bad:
        return boundary(Status.open_above, levels)
    if levels[bad[0]] == "noisy":
        return boundary(Status.noisy, levels, rated=0 if rated is None and zero_below else rated)
    if rated is not None:
        return boundary(Status.confirmed, levels)
    if not zero_below:
        return boundary(Status.open_below, levels)
    return boundary(Status.confirmed, levels, rated=0)


def boundary(
    status: Status,
    levels: Mapping[int, LevelStatus],
    *,
    rated: int | None = None,
    exit_code: int | None = None,
) -> Boundary:
    """Build a boundary of this status from the levels so far; evidence that is invalid or cut short rates nothing.

    `rated` stands in where no level passes. `exit_code` tells a lost server (5) from a person (130).
    """
    passing = rated_level(levels)
    bad = sorted(level for level, verdict in levels.items() if verdict in ("fail", "noisy"))
    # The fail that closes the noisy stretch, which is the lowest one at or above the first bad level.
    failing = next((level for level in bad if levels[level] == "fail"), None)
    silent = status in (Status.invalid, Status.interrupted, Status.open_below)
    number = None if silent else (passing if passing is not None else rated)
    code = exit_code if exit_code is not None else _EXIT[status]
    if status is Status.confirmed and passing is None:
        code = 1
    return Boundary(
        status=status,
        rated=number,
        pass_level=passing,
        fail_level=failing,
        noisy=tuple(level for level in bad if levels[level] == "noisy"),
        exit_code=code,
    )


def combined_exit_code(codes: Iterable[int]) -> int:
    """Return the first of 130, 5, 4, 3, 1, 0 that occurs; 0 for none, ValueError for a code outside the table."""
    seen = set(codes)
    unknown = seen.difference(EXIT_ORDER)
    if unknown:
        raise ValueError(f"exit codes outside the table: {sorted(unknown)}")
    return next((code for code in EXIT_ORDER if code in seen), 0)


def trial_exit_code(status: TrialStatus) -> int:
    """Return the exit code of a single trial's status: 0 pass, 1 fail, 3 inconclusive, 4 invalid."""
    return _EXIT_OF_TRIAL[status]
