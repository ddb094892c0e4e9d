"""Times on an axis: one unit for a whole axis, the one in which its largest value reads well."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

_UNITS = ((3600e9, "h", 3 * 3600e9), (60e9, "min", 600e9), (1e9, "s", 1e9), (1e6, "ms", 1e6))


class TimeScale(Struct, frozen=True):
    """Hold a unit and how many nanoseconds it has."""

    unit: str
    ns: float

    def of(self, ns: float | None) -> float | None:
        """Return nanoseconds in this unit, to six significant digits: more than an axis shows."""
        return None if ns is None else float(f"{ns / self.ns:.6g}")


def time_scale(values_ns: Iterable[float | None]) -> TimeScale:
    """Return the unit for an axis over these values; milliseconds where there is none."""
    most = max((abs(value) for value in values_ns if value is not None), default=0.0)
    for size, unit, least in _UNITS:
        if most >= least:
            return TimeScale(unit, size)
    return TimeScale("ms", 1e6) if most >= 1e5 or most == 0 else TimeScale("us", 1e3)
