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

A change is material from a share of the series' median over the run on (a tenth, more for those that swing more; or the
one share that was asked for), and from an absolute floor of its own. The chance of any false alarm over all series
together is held near `FAMILY_ALPHA`: each of the k tested series is tested at FAMILY_ALPHA / k for a trend and for
shifts.

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

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from nameplate.statistics import change_point
from nameplate.statistics.change_point import level_shifts
from nameplate.statistics.ranks import median
from nameplate.statistics.trend import METHOD as TREND
from nameplate.statistics.trend import Trend, trend
from nameplate.verdict.collapse import COLLAPSE, Collapse, find_collapse, said_collapse

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
# A closed loop's TTFT counts from sending; an open loop's from the schedule, as its SLOs do.
Basis = Literal["send", "schedule"]
Conclusion = Literal["steady", "undecided", "drifting up", "drifting down", "stepped", "collapsed"]

# A tenth is what the locator's resolution and most people's patience have in common.
MATERIAL_SHARE = 0.10
# The chance of any false alarm over all series together.
FAMILY_ALPHA = 0.05
# A material change is excluded by two one-sided tests at 5% (Schuirmann 1987): where the 90% interval leaves it out.
INTERVAL_ALPHA = 0.10
# With fewer points neither the trend's score is normal (Kendall 1975) nor can a shift be significant.
LEAST_WINDOWS = 10
# A series that stood worse for so many windows on end was worse, whatever its trend: no level is shorter.
RUN_WINDOWS = change_point.SHORTEST_LEVEL

SHIFT = f"{change_point.SEVERAL}; {change_point.METHOD}"


class Terms(NamedTuple):
    """Say in which unit a series is, which way it gets worse, and from which change on anyone would feel it.

    `floor` is in that unit, `share` what is material of its level unless another share is asked for: a tail and a queue
    swing more than what they are made of.
    """

    unit: str
    worse: Literal["up", "down"]
    floor: float
    share: float = MATERIAL_SHARE


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

# What the load process is like, and not the server.
OF_CLIENT: tuple[Series, ...] = ("client_memory",)

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
    client; `basis` is what a TTFT counts from. `times_s` are the windows' middles in seconds since the soak began, gaps
    included, `starts_s` and `windows_s` their beginnings and lengths. `left_out` counts windows that are not
    comparable.
    """

    series: Series
    stretch: str
    times_s: tuple[float, ...]
    starts_s: tuple[float, ...]
    values: tuple[float, ...]
    left_out: int = 0
    basis: Basis | None = None


class DatedShift(Struct, frozen=True, kw_only=True):
    """Hold one shift of level: `at_s` is when its first window began, in seconds since the soak began."""

    at_s: float
    before: float
    after: float
    change: float
    share: float | None
    p_value: float


class SeriesDrift(Struct, frozen=True, kw_only=True):
    """Hold the conclusion of one series with its evidence.

    `basis` is what a TTFT counts from. `n` windows were judged; `level` is their median, `material` the smallest change
    that matters, both in `unit`. `change` is the robust slope times the span, `change_low` and `change_high` its
    interval at `confidence`; shares are of the level. `p_value` is that of the trend test, `effective` how many
    independent windows the series is worth, `largest_share` the largest change that the data leave possible. Null where
    the test was not made. `worst_run` is the worst value that RUN_WINDOWS windows on end all reached, from
    `worst_run_at_s` on. With `counts` it weighs in the overall conclusion: a stretch that is too short does not, where
    another of the same series is long enough.
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
    worst_run: float | None = None
    worst_run_at_s: float | None = None
    basis: Basis | None = None
    collapse: Collapse | None = None


class Drift(Struct, frozen=True, kw_only=True):
    """Hold the verdict over all series: the worst conclusion, what says so, and by which methods and thresholds.

    `tested` series had enough windows; each was tested at `family_alpha` over their number. `absent` series could not
    be read at all. `material_share` is the share that was asked for, of every series; null where each has its own.
    """

    conclusion: Conclusion
    reasons: tuple[str, ...]
    series: tuple[SeriesDrift, ...]
    absent: tuple[Series, ...]
    material_share: float | None
    family_alpha: float
    tested: int
    trend_method: str = TREND
    shift_method: str = SHIFT
    collapse_method: str = COLLAPSE


def judge_drift(points: Sequence[SeriesPoints], *, material_share: float | None = None) -> Drift:
    """Judge every series and combine them: the worst conclusion is the soak's.

    `material_share` is the share of its level that matters, for every series; None is each series' own.
    """
    tested = sum(len(series.values) >= LEAST_WINDOWS for series in points)
    alpha = FAMILY_ALPHA / max(1, tested)
    long_enough = {series.series for series in points if len(series.values) >= LEAST_WINDOWS}
    found = tuple(
        _weighed(judge_series(series, alpha=alpha, material_share=material_share), long_enough)
        for series in points
    )
    weighed = [held for held in found if held.counts]
    conclusion = worst_of(weighed)
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


def worst_of(series: Iterable[SeriesDrift]) -> Conclusion:
    """Return the worst conclusion of these series; undecided where there is none."""
    found = [SEVERITY.index(held.conclusion) for held in series]
    return SEVERITY[max(found, default=SEVERITY.index("undecided"))]


def of_server(drift: Drift) -> tuple[SeriesDrift, ...]:
    """Return the series that tell of the server and weigh in the verdict."""
    return tuple(held for held in drift.series if held.counts and held.series not in OF_CLIENT)


def of_client(drift: Drift) -> tuple[SeriesDrift, ...]:
    """Return the series that tell of the load process and weigh in the verdict."""
    return tuple(held for held in drift.series if held.counts and held.series in OF_CLIENT)


def judge_series(
    points: SeriesPoints, *, alpha: float = FAMILY_ALPHA, material_share: float | None = None
) -> SeriesDrift:
    """Judge one series; the module's text is the order of the tests."""
    terms, values = TERMS[points.series], points.values
    share = terms.share if material_share is None else material_share
    n = len(values)
    level = median(values) if values else None
    material = None if level is None else max(terms.floor, share * abs(level))
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
        material_share=share,
        material_floor=terms.floor,
        alpha=alpha,
        basis=points.basis,
    )
    collapse = (
        find_collapse(points.values, points.starts_s) if points.series == "output_tokens_per_s" else None
    )
    if collapse is not None:
        held = structs.replace(
            held, conclusion="collapsed", collapse=collapse, detail=said_collapse(collapse)
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
    worst_run, at = _worst_run(points.values, held.worse)
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
        worst_run=worst_run,
        worst_run_at_s=points.starts_s[at],
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


def _worst_run(values: Sequence[float], worse: Literal["up", "down"]) -> tuple[float, int]:
    """Return the worst value that RUN_WINDOWS windows on end all reached, and the first of them."""
    runs = [values[at : at + RUN_WINDOWS] for at in range(len(values) - RUN_WINDOWS + 1)]
    reached = [min(run) if worse == "up" else max(run) for run in runs]
    worst = max(reached) if worse == "up" else min(reached)
    return worst, reached.index(worst)


def _concluded(held: SeriesDrift) -> SeriesDrift:
    """Conclude from a series' evidence, where it did not collapse."""
    assert held.change is not None and held.change_low is not None and held.change_high is not None
    assert held.material is not None and held.p_value is not None and held.span_s is not None
    conclusion: Conclusion
    if held.shifts:
        dated = ", ".join(
            f"{amount(s.before, held.unit)} to {amount(s.after, held.unit)} at {s.at_s / 3600:.2f} h"
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


def _signed(change: float, held: SeriesDrift) -> str:
    if held.level and held.level > 0:
        return f"{change / held.level:+.1%} ({amount(change, held.unit)})"
    return amount(change, held.unit)


def amount(value: float, unit: str) -> str:
    """Write a value of a series in its unit, as people read it."""
    if unit == "ns":
        return f"{value / 1e9:.4g} s" if abs(value) >= 1e9 else f"{value / 1e6:.4g} ms"
    if unit == "bytes":
        return f"{value / 2**20:.4g} MiB"
    return f"{value:.4g}/s" if unit == "1/s" else f"{value:.4g} {unit}"
