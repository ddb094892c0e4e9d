"""Output that fell to nearly nothing: no drift, and no step either."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nameplate.statistics.ranks import median

# Throughput below this share of what it was is no drift any more, and one window alone may be a hiccup.
COLLAPSED_SHARE = 0.1
COLLAPSED_WINDOWS = 2

COLLAPSE = (
    f"output below {COLLAPSED_SHARE:g} of the median of all windows before, or none at all while requests were "
    f"outstanding, {COLLAPSED_WINDOWS} windows on end"
)


class Collapse(Struct, frozen=True, kw_only=True):
    """Hold a collapse: from when on, the level before, the mean during it, and until when; null: to the end."""

    from_s: float
    until_s: float | None
    before: float | None
    during: float
    windows: int


def find_collapse(values: Sequence[float], starts: Sequence[float]) -> Collapse | None:
    """Find the first two windows on end whose output fell to nearly nothing, and until when that lasted.

    `starts` are the windows' beginnings in seconds.
    """
    for at in range(len(values) - COLLAPSED_WINDOWS + 1):
        before = median(values[:at]) if at >= COLLAPSED_WINDOWS else None
        # Without enough windows before only silence is told: what a short one should have been is not known.
        floor = COLLAPSED_SHARE * before if before else 0.0
        if not all(_fallen(value, floor) for value in values[at : at + COLLAPSED_WINDOWS]):
            continue
        end = at
        while end < len(values) and _fallen(values[end], floor):
            end += 1
        during = values[at:end]
        return Collapse(
            from_s=starts[at],
            until_s=starts[end] if end < len(values) else None,
            before=before,
            during=sum(during) / len(during),
            windows=len(during),
        )
    return None


def _fallen(value: float, floor: float) -> bool:
    return value == 0 or value < floor


def said_collapse(collapse: Collapse) -> str:
    """Say from when to when output was down, and from what."""
    until = "to the end" if collapse.until_s is None else f"until {collapse.until_s / 3600:.2f} h"
    before = "" if collapse.before is None else f" after {collapse.before:.4g}/s before"
    return (
        f"collapsed at {collapse.from_s / 3600:.2f} h, {until}: {collapse.during:.4g}/s over {collapse.windows} "
        f"windows{before}"
    )
