"""Numbers as people read them: with their unit, with digits that mean something, and never a zero for nothing."""

from __future__ import annotations

import math

from nameplate.contract.slo import Slo
from nameplate.statistics.percentile import Distribution

ABSENT = "-"
NEVER = "never"
# Behind a percentile for which n is below 1/(1-p).
UNSUPPORTED = "*"
UNSUPPORTED_NOTE = "* unsupported: too few requests carry this percentile"

_UNITS = ((3600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"))
# Below these, minutes and hours say less than the seconds people compare limits with.
_FROM_NS = {"h": 2 * 3600e9, "min": 1000e9}


def duration(ns: float | None) -> str:
    """Write nanoseconds with four significant digits, at most three decimals: `8.709 s`, `27.97 ms`."""
    if ns is None or math.isnan(ns):
        return ABSENT
    if math.isinf(ns):
        return NEVER
    if ns == 0:
        return "0 ms"
    for size, unit in _UNITS:
        value = ns / size
        # Rounded first, so that 999.96 ms is 1.000 s and not 1000.0 ms.
        if float(f"{abs(value):.4g}") >= 1 and abs(ns) >= _FROM_NS.get(unit, 0):
            return f"{_four_digits(value)} {unit}"
    return f"{ns:.0f} ns"


def brief(ns: float | None) -> str:
    """Write nanoseconds with three significant digits, for cells with little room: `66.0 ms`, `1.49 s`."""
    if ns is None or math.isnan(ns) or math.isinf(ns) or ns <= 0:
        return duration(ns)
    for size, unit in _UNITS:
        value = ns / size
        if float(f"{value:.3g}") >= 1 and ns >= _FROM_NS.get(unit, 0):
            return f"{_three_digits(value)} {unit}"
    return duration(ns)


def brief_rate(per_s: float | None) -> str:
    """Write a rate for cells with little room: `9.25`, `36.9`, `162.0`, `4,790`."""
    if per_s is None or not math.isfinite(per_s) or abs(per_s) >= 1000 or per_s == 0:
        return rate(per_s)
    return f"{per_s:.1f}" if abs(per_s) >= 9.995 else f"{per_s:.2f}"


def limit(ns: float | None) -> str:
    """Write a limit as people wrote it, without zeros that nobody asked for: `250 ms`, `1.5 s`."""
    number, blank, unit = duration(ns).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}{blank}{unit}"


def promise(slo: Slo) -> str:
    """Write an SLO: `ttft p95 < 250 ms`, `error_rate < 1%`."""
    if slo.limit_ratio is not None:
        return f"{slo.metric} < {slo.limit_ratio * 100:.6g}%"
    return f"{slo.metric} p{slo.percentile:g} < {limit(slo.limit_ns)}"


def against(ns: float | None, limit_ns: float) -> str:
    """Write nanoseconds beside a limit with as many digits as show on which side of it they lie."""
    said, limit = duration(ns), duration(limit_ns)
    if ns is None or said != limit or ns == limit_ns:
        return said
    size, unit = next((known for known in _UNITS if limit.endswith(f" {known[1]}")), (1.0, "ns"))
    # A limit is whole nanoseconds, so twelve decimals of an hour tell any value from it.
    for digits in range(4, 13):
        said = f"{ns / size:.{digits}f} {unit}"
        if said != f"{limit_ns / size:.{digits}f} {unit}":
            break
    return said


def percentile(distribution: Distribution, name: str) -> str:
    """Write one percentile of a distribution (`p50` ... `p99`), marked where n does not carry it.

    Null with members is a percentile that reaches requests which never came to a value.
    """
    value: float | None = getattr(distribution, name)
    return quantile(value, distribution.n, name in distribution.unsupported, distribution.unit)


def quantile(value: float | None, n: int, unsupported: bool, unit: str = "ns") -> str:
    """Write one percentile of n values; null with members is infinite."""
    if n == 0:
        return ABSENT
    said = NEVER if value is None else (duration(value) if unit == "ns" else rate(value))
    return f"{said}{UNSUPPORTED}" if unsupported else said


def rate(per_s: float | None, unit: str = "") -> str:
    """Write a rate with four significant digits; `unit` such as `tok/s` or `req/s` follows it."""
    if per_s is None or math.isnan(per_s):
        return ABSENT
    if math.isinf(per_s):
        said = "unbounded"
    elif per_s == 0:
        said = "0"
    elif abs(per_s) >= 1000:
        said = f"{per_s:,.0f}"
    else:
        said = _four_digits(per_s)
    return f"{said} {unit}".rstrip()


def count(value: float | None, noun: str = "", plural: str | None = None) -> str:
    """Write a count with thousands separated; `noun` gets its plural where the count is not one."""
    if value is None:
        return ABSENT
    said = f"{value:,}" if isinstance(value, int) else _trimmed(value)
    if not noun:
        return said
    return f"{said} {noun if value == 1 else (plural or noun + 's')}"


def share(value: float | None, digits: int = 1) -> str:
    """Write a share of one in percent."""
    if value is None or math.isnan(value):
        return ABSENT
    return f"{value:.{digits}%}"


def between(low: str, high: str) -> str:
    """Write a range of two written numbers; one number where both read alike, one unit where both have it."""
    if low == high:
        return low
    first, _, unit = low.partition(" ")
    if unit and high.endswith(f" {unit}"):
        return f"{first} to {high}"
    return f"{low} to {high}"


def judged(slo: Slo, value: float | None, infinite: bool = False) -> str:
    """Write an SLO's value: a duration beside its limit, or an error rate in percent."""
    if infinite:
        return NEVER
    if value is None:
        return ABSENT
    if slo.limit_ratio is not None:
        return "0%" if value == 0 else f"{value:.3%}"
    assert slo.limit_ns is not None
    return against(value, slo.limit_ns)


def rough(seconds: float | None) -> str:
    """Write a stretch of time to wait for: `4.2 s`, `40 s`, `3 min`, `1 h 20 min`."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    if 0 < seconds < 9.95:
        return f"{max(0.1, seconds):.1f} s"
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours:,} h"


def _four_digits(value: float) -> str:
    magnitude = abs(value)
    for bound, decimals in ((9.9995, 3), (99.995, 2), (999.95, 1)):
        if magnitude < bound:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}"


def _three_digits(value: float) -> str:
    for bound, decimals in ((9.995, 2), (99.95, 1)):
        if value < bound:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}"


def _trimmed(value: float) -> str:
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "unbounded"
    return f"{value:,.2f}".rstrip("0").rstrip(".")
