"""One measure of two sides: the difference, its interval, and what may be said of it.

The sample is the trial: requests of one trial share a server's state, so that thousands of them do not tell how the
next trial will do. Of a latency or a rate the logarithms of the trials' values are compared, by Welch's t interval:
differences are relative, three trials are enough for a bound (a bootstrap of three would be far too narrow), and the
two sides may vary differently. Errors are counted: there the interval is the wider one of Welch's, of shares, and of
exact bounds of the counts as if requests were independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, structs

from nameplate.compare.document import Compared, Interval, Sample, Settings, Verdict
from nameplate.compare.measures import Statistic
from nameplate.compare.side import Observed
from nameplate.statistics.binomial import lower_bound, upper_bound
from nameplate.statistics.two_samples import Difference, fisher, paired, standing, welch

NOT_KNOWN: Verdict = "not known"


class Drawn(Struct, frozen=True):
    """Hold one trial's value with the number of the result on its side that it is part of."""

    source: int
    seen: Observed


class Samples(Struct, frozen=True):
    """Hold both sides of one measure; where they are `paired`, the trials stand in the order of their partners.

    With `by_result` each result is one value, the mean of its trials: where there are enough results, what a restart or
    another day changes is then part of the interval.
    """

    a: tuple[Drawn, ...]
    b: tuple[Drawn, ...]
    paired: bool = False
    by_result: bool = False


def compare_measure(statistic: Statistic, samples: Samples, settings: Settings, *, gated: bool) -> Compared:
    """Compare one measure; the verdict is of this measure alone, until `settle` has seen the others."""
    a, b = _sample(statistic, samples.a), _sample(statistic, samples.b)
    found = Compared(
        statistic=str(statistic),
        says=statistic.says,
        unit=statistic.kind.unit,
        better=statistic.kind.better,
        gated=gated,
        repeated=_repeated(samples, settings),
        a=a,
        b=b,
        absolute=_seen(a, b),
        relative=None,
        p_value=None,
        p_beyond=None,
        unsupported=any(drawn.seen.unsupported for drawn in (*samples.a, *samples.b)),
        verdict=NOT_KNOWN,
        reason="",
    )
    if found.absolute is not None and a.typical and b.typical and statistic.kind.unit != "share":
        found = structs.replace(found, relative=Interval(b.typical / a.typical - 1))
    open_ = [name for name, side in (("A", samples.a), ("B", samples.b)) if any(d.seen.open for d in side)]
    if open_:
        return _unknown(
            found, f"it reaches requests that were cut while they waited, in {' and '.join(open_)}"
        )
    sizes = [len(_units(side, samples.by_result)) for side in (samples.a, samples.b)]
    least, noun = settings.least_trials, "result" if samples.by_result else "trial"
    if min(sizes) < least:
        counted = f"{sizes[0]} and {sizes[1]}" if sizes[0] != sizes[1] else str(sizes[0])
        plural = "" if sizes == [1, 1] else "s"
        return _unknown(found, f"{counted} {noun}{plural} a side; a verdict needs {least}")
    if a.infinite or b.infinite:
        return _never(found)
    if found.unsupported:
        few = min(n for n in (a.requests, b.requests) if n is not None)
        return _unknown(found, f"too few requests carry this percentile: {few:,} a trial")
    return _bounded(found, statistic, samples, settings)


def settle(found: Sequence[Compared], settings: Settings) -> tuple[Compared, ...]:
    """Take back what many comparisons at once would call different by chance: among the gated, and among the others."""
    settled = list(found)
    for gated in (True, False):
        family = [(at, chance) for at, one in enumerate(found) if (chance := _chance(one, gated)) is not None]
        stands = standing([chance for _, chance in family], settings.family)
        for (at, _), holds in zip(family, stands, strict=True):
            if found[at].verdict in ("better", "worse") and not holds:
                settled[at] = _unknown(found[at], _taken_back(found[at], len(family), settings))
    return tuple(settled)


def _taken_back(one: Compared, family: int, settings: Settings) -> str:
    """Say why a measure that looks different does not stand."""
    if not one.repeated and (one.p_beyond or 0.0) > settings.family:
        return f"it looks {one.verdict}, but may differ by less than the margin, which a restart alone can do"
    return f"alone it would be {one.verdict}; of {family} measures at once it may be chance"


def _chance(one: Compared, gated: bool) -> float | None:
    """Return the chance by which a measure stands in a family; None for one of another."""
    if one.gated is not gated:
        return None
    if one.p_value is None or one.p_beyond is None:
        return None
    return one.p_value if gated and one.repeated else max(one.p_value, one.p_beyond)


def _bounded(found: Compared, statistic: Statistic, samples: Samples, settings: Settings) -> Compared:
    first, second = _units(samples.a, samples.by_result), _units(samples.b, samples.by_result)
    differ = paired if samples.paired else welch
    plain = differ(first, second, settings.confidence)
    margin = settings.margin
    if statistic.kind.unit == "share":
        absolute, counted = _widened(plain, samples, settings), _counted_alike(samples)
        plain = structs.replace(plain, p_value=max(plain.p_value, counted))
        return _judged(
            structs.replace(found, absolute=absolute), absolute, plain, (-margin, margin), settings
        )
    absolute = Interval(plain.estimate, plain.low, plain.high)
    found = structs.replace(found, absolute=absolute)
    if min(*first, *second) > 0:
        held = differ(list(map(math.log, first)), list(map(math.log, second)), settings.confidence)
        relative = Interval(*(math.expm1(value) for value in (held.estimate, held.low, held.high)))
        # A fall by a factor is as far as a rise by it.
        bounds = (-math.log1p(margin), math.log1p(margin))
        logged = Interval(held.estimate, held.low, held.high)
        return _judged(structs.replace(found, relative=relative), logged, held, bounds, settings)
    size = margin * math.fsum(map(abs, first)) / len(first)
    return _judged(found, absolute, plain, (-size, size), settings)


def _judged(
    found: Compared, interval: Interval, held: Difference, within: tuple[float, float], settings: Settings
) -> Compared:
    """Judge an interval against the margin, both on one scale."""
    low, high, estimate = interval.low, interval.high, interval.estimate
    assert low is not None and high is not None
    found = structs.replace(found, p_value=held.p_value, p_beyond=held.beyond(*within))
    sure, points = f"{settings.confidence * 100:g}%", f"{settings.margin * 100:g}"
    margin = f"{points} percentage points" if found.unit == "share" else f"{points}%"
    if within[0] <= low and high <= within[1]:
        return _verdict(found, "equal", f"the whole interval lies within {margin}")
    if low <= 0 <= high:
        return _unknown(found, f"the {sure} interval reaches to both sides of zero, and beyond {margin}")
    if within[0] <= estimate <= within[1]:
        return _unknown(found, f"it differs, by about less than {margin}")
    better = (estimate < 0) == (found.better == "lower")
    side = "below" if estimate < 0 else "above"
    return _verdict(found, "better" if better else "worse", f"the whole {sure} interval lies {side} zero")


def _never(found: Compared) -> Compared:
    a, b = found.a, found.b
    if a.infinite == a.trials and not b.infinite:
        return _verdict(found, "better", f"never in all {a.trials} trials of A, in none of B")
    if b.infinite == b.trials and not a.infinite:
        return _verdict(found, "worse", f"never in all {b.trials} trials of B, in none of A")
    return _unknown(
        found, f"never in {a.infinite} of {a.trials} trials of A, in {b.infinite} of {b.trials} of B"
    )


def _widened(plain: Difference, samples: Samples, settings: Settings) -> Interval:
    """Return the wider one of the trials' interval and that of the counts."""
    tail = (1 + settings.confidence) / 2
    bounds = []
    for side in (samples.a, samples.b):
        failed = sum(drawn.seen.count or 0 for drawn in side)
        sent = sum(drawn.seen.n or 0 for drawn in side)
        bounds.append((failed / sent, lower_bound(failed, sent, tail), upper_bound(failed, sent, tail)))
    (share_a, low_a, high_a), (share_b, low_b, high_b) = bounds
    # Two bounds are not at their ends together: squares add (Newcombe 1998, Statistics in Medicine 17, method 10).
    below = math.hypot(share_b - low_b, high_a - share_a)
    above = math.hypot(high_b - share_b, share_a - low_a)
    counted = share_b - share_a
    return Interval(plain.estimate, min(plain.low, counted - below), max(plain.high, counted + above))


def _counted_alike(samples: Samples) -> float:
    """Return the chance of the counts if one share holds for both sides: trials that do not vary prove nothing."""
    totals = [
        (sum(drawn.seen.count or 0 for drawn in side), sum(drawn.seen.n or 0 for drawn in side))
        for side in (samples.a, samples.b)
    ]
    return fisher(totals[0], totals[1])


def _repeated(samples: Samples, settings: Settings) -> bool:
    """Tell whether both sides hold results enough for what changes between results to be in the sample."""
    return all(
        len({drawn.source for drawn in side}) >= settings.least_trials for side in (samples.a, samples.b)
    )


def _units(side: Sequence[Drawn], by_result: bool) -> list[float]:
    """Return one value a trial, or one a result: the geometric mean of its trials, or the mean where any is zero."""
    if not by_result:
        return [_value(drawn) for drawn in side]
    grouped: dict[int, list[float]] = {}
    for drawn in side:
        grouped.setdefault(drawn.source, []).append(_value(drawn))
    return [_middle(values, "ns") for values in grouped.values()]


def _value(drawn: Drawn) -> float:
    return math.inf if drawn.seen.value is None else drawn.seen.value


def _middle(values: Sequence[float], unit: str) -> float:
    if unit != "share" and min(values) > 0 and max(values) < math.inf:
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    return math.fsum(values) / len(values)


def _sample(statistic: Statistic, side: Sequence[Drawn]) -> Sample:
    values = [drawn.seen.value for drawn in side if drawn.seen.value is not None]
    whole = values if len(values) == len(side) else []
    return Sample(
        values=tuple(drawn.seen.value for drawn in side),
        typical=_middle(whole, statistic.kind.unit) if whole else None,
        infinite=sum(drawn.seen.infinite for drawn in side),
        requests=min((drawn.seen.n for drawn in side if drawn.seen.n is not None), default=None),
    )


def _seen(a: Sample, b: Sample) -> Interval | None:
    return None if a.typical is None or b.typical is None else Interval(b.typical - a.typical)


def _verdict(found: Compared, verdict: Verdict, reason: str) -> Compared:
    return structs.replace(found, verdict=verdict, reason=reason)


def _unknown(found: Compared, reason: str) -> Compared:
    return _verdict(found, NOT_KNOWN, reason)
