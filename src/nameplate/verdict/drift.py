"""Whether a soak's series stay where they are: by windows, with a material size and not only significance.

For each series, in this order:

===============  ======================================================================================
`collapsed`      output throughput below a tenth of the median of the windows before, two windows on end
`undecided`      fewer than ten windows to judge by
`stepped`        its level shifted: significant, better explained than by a straight line, and material
`drifting ...`   a trend, up or down: significant with autocorrelation allowed for, and material
`steady`         even the largest change that the trend's interval leaves possible is not material
`undecided`      otherwise: windows too few or too rough to exclude a material change
===============  ======================================================================================

A change is material from `material_share` of the series' median over the run on, and from an absolute floor of its
own. The chance of any false alarm over all series together is held near `FAMILY_ALPHA`: each of the k tested series is
tested at FAMILY_ALPHA / k for a trend and for shifts.

Measured on steady soaks of eight series whose windows are a first-order process (150 soaks each; noise of 5% of the
level for the median TTFT, 10% for its p95 and the queue, 3% output, 2% ITL; in brackets three times as much), share of
soaks in which any series is called drifting or stepped, n = 12 / 24 / 96 windows:

    phi 0: 0.00 (0.00) / 0.00 (0.00) / 0.00 (0.02)    phi 0.5: 0.00 (0.01) / 0.01 (0.07) / 0.00 (0.04)
    phi 0.8: 0.05 (0.07) / 0.05 (0.19) / 0.01 (0.13)

Called steady in all eight: 96 windows, phi 0: 1.00, phi 0.5: 0.56, phi 0.8: 0.01; of single series 1.00, 0.93, 0.65.
Otherwise undecided. Power for a drift / a step of 20% of the median TTFT, whichever of both it is called: 96 windows,
phi 0: 1.00 / 1.00, phi 0.5: 0.97 / 0.99, phi 0.8: 0.48 / 0.33; 24 windows, phi 0 and 0.5: 0.77 / 0.74 and 0.25 / 0.16;
12 windows: 0.07 / 0.01, the rest undecided (`python -m bench.drift`). So an hour of five-minute windows shows no drift
of this size, and does not claim that there is none: shorter windows tell more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from nameplate.statistics import change_point
from nameplate.statistics.change_point import level_shifts
from nameplate.statistics.ranks import median
from nameplate.statistics.trend import METHOD as TREND
from nameplate.statistics.trend import Trend, trend

Series = Literal[
    "ttft_p50",
    "ttft_p95",
    "itl_p50",
    "output_tokens_per_s",
    "outstanding",
    "waiting",
    "kv_floor",
    "client_memory",
]
Conclusion = Literal["steady", "undecided", "drifting up", "drifting down", "stepped", "collapsed"]

# A tenth is what the locator's resolution and most people's patience have in common; `--max-drift` replaces it.
MATERIAL_SHARE = 0.10
# The chance of any false alarm over all series together.
FAMILY_ALPHA = 0.05
# A material change is excluded by two one-sided tests at 5% (Schuirmann 1987): where the 90% interval leaves it out.
INTERVAL_ALPHA = 0.10
# With fewer points neither the trend's score is normal (Kendall 1975) nor can a shift be significant.
LEAST_WINDOWS = 10
# Throughput below this share of what it was is no drift any more, and one window alone may be a hiccup.
COLLAPSED_SHARE = 0.1
COLLAPSED_WINDOWS = 2

COLLAPSE = (
    f"output below {COLLAPSED_SHARE:g} of the median of all windows before, or none at all while requests were "
    f"outstanding, {COLLAPSED_WINDOWS} windows on end"
)
SHIFT = f"{change_point.SEVERAL}; {change_point.METHOD}"


class Terms(NamedTuple):
    """Say in which unit a series is, which way it gets worse, and from which change on anyone would feel it.

    `floor` is in that unit, `least_share` the smallest share of its level that is told from its own noise: a tail and a
    queue swing more than what they are made of.
    """

    unit: str
    worse: Literal["up", "down"]
    floor: float
    least_share: float = 0.0


TERMS: dict[Series, Terms] = {
    "ttft_p50": Terms("ns", "up", 10e6),
    "ttft_p95": Terms("ns", "up", 10e6, 0.20),
    "itl_p50": Terms("ns", "up", 0.5e6),
    "output_tokens_per_s": Terms("1/s", "down", 1.0),
    "outstanding": Terms("requests", "up", 1.0),
    "waiting": Terms("requests", "up", 1.0, 0.25),
    "kv_floor": Terms("share of the pool", "up", 0.02),
    "client_memory": Terms("bytes", "up", 16 * 2.0**20),
}

# From best to worst: the overall conclusion is the worst of its series.
SEVERITY: tuple[Conclusion, ...] = (
    "steady",
    "undecided",
    "drifting up",
    "drifting down",
    "stepped",
    "collapsed",
)


class SeriesPoints(Struct, frozen=True, kw_only=True):
    """Hold one series to be judged: a value for each comparable window, in time order.

    `stretch` names what the windows have in common: all parts with the same server configuration, or one process of the
    client. `times_s` are the windows' middles in seconds since the soak began, gaps included, `starts_s` and
    `windows_s` their beginnings and lengths. `left_out` counts windows that are not comparable.
    """

    series: Series
    stretch: str
    times_s: tuple[float, ...]
    starts_s: tuple[float, ...]
    values: tuple[float, ...]
    left_out: int = 0


class DatedShift(Struct, frozen=True, kw_only=True):
    """Hold one shift of level: `at_s` is when its first window began, in seconds since the soak began."""

    at_s: float
    before: float
    after: float
    change: float
    share: float | None
    p_value: float


class Collapse(Struct, frozen=True, kw_only=True):
    """Hold a collapse: from when on, the level before, the mean during it, and until when; null: to the end."""

    from_s: float
    until_s: float | None
    before: float | None
    during: float
    windows: int


class SeriesDrift(Struct, frozen=True, kw_only=True):
    """Hold the conclusion of one series with its evidence.

    `n` windows were judged; `level` is their median, `material` the smallest change that matters, both in `unit`.
    `change` is the robust slope times the span, `change_low` and `change_high` its interval at `confidence`; shares
    are of the level. `p_value` is that of the trend test, `effective` how many independent windows the series is
    worth, `largest_share` the largest change that the data leave possible. Null where the test was not made.
    With `counts` it weighs in the overall conclusion: a stretch that is too short does not, where another of the same
    series is long enough.
    """

    series: Series
    unit: str
    stretch: str
    worse: Literal["up", "down"]
    conclusion: Conclusion
    detail: str
    counts: bool = True
    n: int
    left_out: int
    level: float | None = None
    material: float | None = None
    material_share: float
    material_floor: float
    alpha: float
    slope_per_hour: float | None = None
    slope_per_hour_low: float | None = None
    slope_per_hour_high: float | None = None
    confidence: float | None = None
    span_s: float | None = None
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    change_share: float | None = None
    largest_share: float | None = None
    p_value: float | None = None
    effective: float | None = None
    shifts: tuple[DatedShift, ...] = ()
    collapse: Collapse | None = None


class Drift(Struct, frozen=True, kw_only=True):
    """Hold the verdict over all series: the worst conclusion, what says so, and by which methods and thresholds.

    `tested` series had enough windows; each was tested at `family_alpha` over their number. `absent` series could not
    be read at all.
    """

    conclusion: Conclusion
    reasons: tuple[str, ...]
    series: tuple[SeriesDrift, ...]
    absent: tuple[Series, ...]
    material_share: float
    family_alpha: float
    tested: int
    trend_method: str = TREND
    shift_method: str = SHIFT
    collapse_method: str = COLLAPSE


def judge_drift(points: Sequence[SeriesPoints], *, material_share: float = MATERIAL_SHARE) -> Drift:
    """Judge every series and combine them: the worst conclusion is the soak's."""
    tested = sum(len(series.values) >= LEAST_WINDOWS for series in points)
    alpha = FAMILY_ALPHA / max(1, tested)
    long_enough = {series.series for series in points if len(series.values) >= LEAST_WINDOWS}
    found = tuple(
        _weighed(judge_series(series, alpha=alpha, material_share=material_share), long_enough)
        for series in points
    )
    weighed = [held for held in found if held.counts]
    worst = max((SEVERITY.index(held.conclusion) for held in weighed), default=SEVERITY.index("undecided"))
    conclusion = SEVERITY[worst]
    said = tuple(f"{held.series}: {held.detail}" for held in weighed if held.conclusion == conclusion)
    known = {series.series for series in points}
    return Drift(
        conclusion=conclusion,
        reasons=said or ("no series could be read",),
        series=found,
        absent=tuple(name for name in TERMS if name not in known),
        material_share=material_share,
        family_alpha=FAMILY_ALPHA,
        tested=tested,
    )


def judge_series(
    points: SeriesPoints, *, alpha: float = FAMILY_ALPHA, material_share: float = MATERIAL_SHARE
) -> SeriesDrift:
    """Judge one series; the module's text is the order of the tests."""
    terms, values = TERMS[points.series], points.values
    material_share = max(material_share, terms.least_share)
    n = len(values)
    level = median(values) if values else None
    material = None if level is None else max(terms.floor, material_share * abs(level))
    held = SeriesDrift(
        series=points.series,
        unit=terms.unit,
        stretch=points.stretch,
        worse=terms.worse,
        conclusion="undecided",
        detail=f"{n} comparable windows; at least {LEAST_WINDOWS} are needed",
        n=n,
        left_out=points.left_out,
        level=level,
        material=material,
        material_share=material_share,
        material_floor=terms.floor,
        alpha=alpha,
    )
    collapse = _collapse(points) if points.series == "output_tokens_per_s" else None
    if collapse is not None:
        held = structs.replace(
            held, conclusion="collapsed", collapse=collapse, detail=_said_collapse(collapse)
        )
    if n < LEAST_WINDOWS or level is None or material is None:
        return held
    tested = trend(
        values, points.times_s, alpha=INTERVAL_ALPHA, material_relative=0.0, material_absolute=material
    )
    shifts = level_shifts(values, alpha=alpha, material_relative=0.0, material_absolute=material)
    held = _with_evidence(held, tested, shifts.shifts, points)
    return held if collapse is not None else _concluded(held)


def _weighed(held: SeriesDrift, long_enough: Collection[str]) -> SeriesDrift:
    short = held.n < LEAST_WINDOWS and held.series in long_enough and held.collapse is None
    return structs.replace(held, counts=False) if short else held


def _with_evidence(
    held: SeriesDrift, tested: Trend, shifts: Sequence[change_point.Shift], points: SeriesPoints
) -> SeriesDrift:
    level = held.level or 0.0
    low, high = tested.slope_low * tested.span, tested.slope_high * tested.span

    def share(change: float) -> float | None:
        return change / level if level > 0 else None

    return structs.replace(
        held,
        slope_per_hour=tested.slope * 3600,
        slope_per_hour_low=tested.slope_low * 3600,
        slope_per_hour_high=tested.slope_high * 3600,
        confidence=tested.confidence,
        span_s=tested.span,
        change=tested.change,
        change_low=low,
        change_high=high,
        change_share=share(tested.change),
        largest_share=share(max(abs(low), abs(high))),
        p_value=tested.p_value,
        effective=tested.effective,
        shifts=tuple(
            DatedShift(
                at_s=points.starts_s[shift.index],
                before=shift.before,
                after=shift.after,
                change=shift.change,
                share=shift.relative_change,
                p_value=shift.p_value,
            )
            for shift in shifts
        ),
    )


def _concluded(held: SeriesDrift) -> SeriesDrift:
    """Conclude from a series' evidence, where it did not collapse."""
    assert held.change is not None and held.change_low is not None and held.change_high is not None
    assert held.material is not None and held.p_value is not None and held.span_s is not None
    conclusion: Conclusion
    if held.shifts:
        dated = ", ".join(
            f"{_amount(s.before, held.unit)} to {_amount(s.after, held.unit)} at {s.at_s / 3600:.2f} h"
            for s in held.shifts
        )
        return structs.replace(held, conclusion="stepped", detail=f"stepped from {dated}")
    whole = f"{_signed(held.change, held)} over {held.span_s / 3600:.1f} h, p {held.p_value:.2g}, n {held.n}"
    if held.p_value < held.alpha and abs(held.change) >= held.material:
        conclusion = "drifting up" if held.change > 0 else "drifting down"
        return structs.replace(held, conclusion=conclusion, detail=f"{conclusion}, {whole}")
    most = max(held.change_low, held.change_high, key=abs)
    if abs(most) < held.material:
        return structs.replace(held, conclusion="steady", detail=f"steady, {whole}")
    return structs.replace(
        held,
        conclusion="undecided",
        detail=f"{whole}; a change of {_signed(most, held)} cannot be excluded",
    )


def _collapse(points: SeriesPoints) -> Collapse | None:
    """Find the first two windows on end whose output fell to nearly nothing, and until when that lasted."""
    values, starts = points.values, points.starts_s
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


def _said_collapse(collapse: Collapse) -> str:
    until = "to the end" if collapse.until_s is None else f"until {collapse.until_s / 3600:.2f} h"
    before = "" if collapse.before is None else f" after {collapse.before:.4g}/s before"
    return (
        f"collapsed at {collapse.from_s / 3600:.2f} h, {until}: {collapse.during:.4g}/s over {collapse.windows} "
        f"windows{before}"
    )


def _signed(change: float, held: SeriesDrift) -> str:
    if held.level and held.level > 0:
        return f"{change / held.level:+.1%} ({_amount(change, held.unit)})"
    return _amount(change, held.unit)


def _amount(value: float, unit: str) -> str:
    if unit == "ns":
        return f"{value / 1e9:.4g} s" if abs(value) >= 1e9 else f"{value / 1e6:.4g} ms"
    if unit == "bytes":
        return f"{value / 2**20:.4g} MiB"
    return f"{value:.4g}/s" if unit == "1/s" else f"{value:.4g} {unit}"
