"""Quantities as people write them: durations, sizes, counts, ratios."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from nameplate.contract.errors import CallerError

_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
# Digits are bounded, so that no number is too large to compute with; fractions keep what was written exactly.
_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?)"
_DURATION = re.compile(_NUMBER + r"\s*([a-zµ]+)", re.ASCII)
_BYTES = re.compile(_NUMBER + r"\s*(?:([kmgt])(i?))?b?", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(_NUMBER + r"\s*([kKmM]?)", re.ASCII)


def parse_duration_ns(text: str) -> int:
    """Read a duration such as `10s`, `250 ms` or `1h30m` into nanoseconds; CallerError if it is none."""
    rest = text.strip()
    total = 0
    while rest:
        match = _DURATION.match(rest)
        if match is None or match[2] not in _NS:
            raise CallerError(
                f"{text!r} is not a duration.", hint="Write a number and a unit: 250ms, 10s, 5m or 8h."
            )
        total += round(Fraction(match[1]) * _NS[match[2]])
        rest = rest[match.end() :].lstrip()
    if not text.strip():
        raise CallerError(
            "An empty duration was given.", hint="Write a number and a unit: 250ms, 10s, 5m or 8h."
        )
    return total


def parse_tokens(text: str) -> int:
    """Read a token count such as `8192` or `8k`, where k means 1,024; CallerError if it is none or not whole."""
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        raise CallerError(
            f"{text!r} is not a token count.", hint="Write a whole number such as 8192, or 8k for 8 x 1,024."
        )
    value = Fraction(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]
    if value.denominator != 1:
        raise CallerError(f"{text!r} is not a whole number of tokens.", hint="k means 1,024: 8k is 8192.")
    return int(value)


def parse_bytes(text: str) -> int:
    """Read a size such as `20GB`, `512 MiB` or `1000000`; CallerError if it is none.

    k, M, G and T are powers of 1,000, with an i (KiB, MiB, ...) of 1,024.
    """
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise CallerError(f"{text!r} is not a size.", hint="Write bytes with a unit: 500MB, 20GB or 8GiB.")
    power = " kmgt".index((match[2] or " ").lower())
    return int(Fraction(match[1]) * (1024 if match[3] else 1000) ** power)


def parse_ratio(text: str) -> float:
    """Read a share such as `1%` or `0.01` into a fraction of one; CallerError outside 0..1."""
    stripped = text.strip()
    try:
        value = float(stripped[:-1]) / 100 if stripped.endswith("%") else float(stripped)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise CallerError(f"{text!r} is not a share.", hint="Write 1% or 0.01.")
    return value


def format_bytes(size: float) -> str:
    """Write a size as people read it, in powers of 1,000: `1.52 GB`, `340 MB`."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size) >= 0.9995 * factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


def format_duration(ns: float) -> str:
    """Write nanoseconds as people read them, three significant digits: `8.71 s`, `43.9 ms`, `212 us`."""
    magnitude = abs(ns)
    if magnitude >= 3600 * 10**9:
        return f"{ns / 3.6e12:.2f} h"
    if magnitude >= 120 * 10**9:
        return f"{ns / 6e10:.1f} min"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if magnitude >= size:
            value = ns / size
            return f"{value:.{3 if unit == 's' and abs(value) < 100 else 1}f} {unit}"
    return f"{ns:.0f} ns"


def format_limit(ns: int) -> str:
    """Write a limit as its author would, without trailing zeros: `250 ms`, `10 s`, `2.5 s`."""
    for unit, size, least in (
        ("h", 3600 * 10**9, 2),
        ("min", 60 * 10**9, 2),
        ("s", 10**9, 1),
        ("ms", 10**6, 1),
    ):
        if ns >= size * least:
            return f"{ns / size:.9g} {unit}"
    return f"{ns / 1000:g} us"
