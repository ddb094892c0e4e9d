"""Small steps that all readers share: a measure from its statistics, the first of several names, texts made plain."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from nameplate.exchange.loose import Fields, plain
from nameplate.exchange.peers.run import Measure, Unit
from nameplate.exchange.redact import redact
from nameplate.statistics.percentile import supported

# Deep enough for any configuration, and few enough values that a hostile one costs nothing.
_DEPTH, _VALUES = 8, 20_000
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")

NS_OF: Mapping[str, float] = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "seconds": 1e9}


def measure_of(
    name: str, field: str, unit: Unit, factor: float, told: Mapping[str, float | None], n: int | None
) -> Measure | None:
    """Return a measure from statistics by their names (mean, std, min, max, p50 ...); None where it has none."""
    values = {key: value * factor for key, value in told.items() if value is not None}
    percentiles = {
        key: values[key] for key in sorted(values, key=_percent) if _PERCENTILE.fullmatch(key) is not None
    }
    if not percentiles and not values.keys() & {"mean", "std", "min", "max"}:
        return None
    return Measure(
        name=name,
        field=field,
        unit=unit,
        n=n,
        mean=values.get("mean"),
        std=values.get("std"),
        min=values.get("min"),
        max=values.get("max"),
        percentiles=percentiles,
        unsupported=unsupported(percentiles, n),
    )


def unsupported(percentiles: Iterable[str], n: int | None) -> tuple[str, ...]:
    """Name the percentiles for which n is below 1/(1-p); none where n is not known."""
    return tuple(key for key in percentiles if n is not None and not supported(n, _percent(key)))


def percent_of(name: str) -> float | None:
    """Return the percent of a percentile's name (p50, p99.9); None for another name."""
    return _percent(name) if _PERCENTILE.fullmatch(name) else None


def _percent(name: str) -> float:
    found = _PERCENTILE.fullmatch(name)
    return float(found[1]) if found is not None else -1.0


def first_number(fields: Fields, *names: str) -> float | None:
    """Return the number under the first of these names that has one."""
    return next((value for name in names if (value := fields.number(name, True)) is not None), None)


def found_in(value: Any, *names: str, avoid: str = "warmup") -> Any:
    """Return the first value under one of these names, nearest to the top; what is under `avoid` is passed over."""
    waiting: deque[tuple[Any, int]] = deque([(value, 0)])
    for _ in range(_VALUES):
        if not waiting:
            return None
        at, depth = waiting.popleft()
        if isinstance(at, dict):
            for name in names:
                if at.get(name) is not None:
                    return at[name]
            inner = [held for key, held in at.items() if avoid not in str(key).lower()]
        elif isinstance(at, list):
            inner = [held for held in at if not (isinstance(held, dict) and held.get("name") == avoid)]
        else:
            continue
        if depth < _DEPTH:
            waiting.extend((held, depth + 1) for held in inner if isinstance(held, dict | list))
    return None


def number_in(value: Any, *names: str) -> float | None:
    """Return such a value where it is a number above zero, or an object with a `mean` that is."""
    found = found_in(value, *names)
    if isinstance(found, dict):
        found = found.get("mean", found.get("value"))
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 < found < 1e12 else None


def text_in(value: Any, *names: str) -> str | None:
    """Return such a value where it is a text, or a list of texts: plain, and without keys."""
    found = found_in(value, *names)
    if isinstance(found, list):
        found = ", ".join(item for item in found[:8] if isinstance(item, str))
    return harmless(found) if isinstance(found, str) and found else None


def harmless(text: str) -> str:
    """Return somebody else's text as one plain line without what looks like a key."""
    said = redact(text)
    return plain(said if isinstance(said, str) else "")


def whole_number(value: float | None) -> int | None:
    """Return a count; None where it is none."""
    return int(value) if value is not None and value >= 0 and value == int(value) else None
