"""The verdict of one trial: gates first, then every SLO; fail before inconclusive before pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from nameplate.contract.slo import Slo
from nameplate.statistics.censoring import Bounds, percentile_bounds
from nameplate.statistics.percentile import percentile, supported
from nameplate.verdict.gate import GateResult
from nameplate.verdict.gates import broken

SloStatus = Literal["pass", "fail", "inconclusive"]
TrialStatus = Literal["pass", "fail", "inconclusive", "invalid"]


class SloSample(Struct, frozen=True):
    """Hold one SLO's judged value over one sample: the whole, or a phase of it.

    `best` and `worst` are nanoseconds, or a share for `error_rate`; JSON knows no infinity, so an infinite value
    is null with its flag set, and null without the flag is absent (an empty sample). `over` counts members that
    are at or over the limit for certain, `over_at_worst` those that may be.
    """

    n: int
    supported: bool
    best: float | None = None
    worst: float | None = None
    best_infinite: bool = False
    worst_infinite: bool = False
    over: int = 0
    over_at_worst: int = 0

    @property
    def bounds(self) -> Bounds | None:
        """Return best and worst with infinity as such; None where the sample is empty."""
        best = math.inf if self.best_infinite else self.best
        worst = math.inf if self.worst_infinite else self.worst
        return None if best is None or worst is None else Bounds(best, worst)


class SloResult(Struct, frozen=True):
    """Hold one SLO's status, decided by the whole sample; the phases stand beside it."""

    slo: Slo
    status: SloStatus
    whole: SloSample
    opening: SloSample
    steady: SloSample


class TrialVerdict(Struct, frozen=True):
    """Hold a trial's status with its reasons in words."""

    status: TrialStatus
    reasons: tuple[str, ...]
    slos: tuple[SloResult, ...]


class PhaseValues(Struct, frozen=True):
    """Hold one metric's values by the phase their request was sent in; `missing` requests never started.

    For `error_rate` a value is 1 for a failed request, 0 for an ok one, and 0 to 1 for an open one.
    """

    opening: tuple[Bounds, ...]
    steady: tuple[Bounds, ...]
    missing: int = 0


def judge_slo(slo: Slo, values: PhaseValues, *, steady_too: bool = False) -> SloResult:
    """Judge one SLO: strict, percentile linear with infinity included, by its best and its worst case.

    The whole sample decides; with `steady_too` the steady phase must hold as well, the worse of the two counts.
    """
    whole, steady = (
        _sample(slo, values.opening + values.steady, values.missing),
        _sample(slo, values.steady, 0),
    )
    statuses = [_status(slo, whole)]
    if steady_too and steady.n:
        statuses.append(_status(slo, steady))
    status = max(statuses, key=_WORSE.index)
    return SloResult(slo, status, whole, _sample(slo, values.opening, 0), steady)


# From good to bad.
_WORSE: tuple[SloStatus, ...] = ("pass", "inconclusive", "fail")


def _status(slo: Slo, sample: SloSample) -> SloStatus:
    bounds, limit = sample.bounds, _limit(slo)
    if bounds is None:
        return "inconclusive"
    if not bounds.best < limit:
        return "fail"
    return "pass" if bounds.worst < limit else "inconclusive"


def judge_trial(gates: tuple[GateResult, ...], slos: Sequence[SloResult]) -> TrialVerdict:
    """Combine gates and SLOs: invalid, then fail, then inconclusive, then pass.

    A gate that is unverified does not change the status; it stands in the gates' own list.
    """
    status: TrialStatus = "pass"
    reasons: tuple[str, ...] = ()
    for kind in ("invalid", "fail", "inconclusive"):
        found = [f"{result.gate}: {result.detail}" for result in broken(gates, kind)]
        found += [describe(result) for result in slos if result.status == kind]
        if found and status == "pass":
            status, reasons = kind, tuple(found)
    if status == "pass" and not slos:
        reasons = ("no SLO was given: the gates alone decide",)
    return TrialVerdict(status, reasons or tuple(describe(result) for result in slos), tuple(slos))


def failure_certain(
    slos: Sequence[Slo],
    total: int,
    lower_bounds: Mapping[str, Sequence[float]],
    load_failures: int = 0,
) -> bool:
    """Tell whether a trial of `total` requests can no longer pass.

    `lower_bounds` holds, by metric, what each started request's value is at least: its value once it is known,
    the time waited so far before. Requests without an entry count as 0. `load_failures` counts failed requests.
    """
    has_error_rate = any(slo.metric == "error_rate" for slo in slos)
    if load_failures and not has_error_rate:
        return True
    for slo in slos:
        if slo.percentile is None:
            if total and not load_failures / total < _limit(slo):
                return True
            continue
        known = sorted(lower_bounds.get(slo.metric, ()))
        padded = [0.0] * max(0, total - len(known)) + known
        if padded and not percentile(padded, slo.percentile) < _limit(slo):
            return True
    return False


def describe(result: SloResult) -> str:
    """Say an SLO's result in words for people."""
    sample = result.whole
    said = f"{result.slo}: {result.status}, n {sample.n}"
    if not sample.supported:
        said += " (unsupported)"
    bounds = sample.bounds
    if bounds is None:
        return f"{said}, no values"
    if bounds.best == bounds.worst:
        return f"{said}, {_number(result.slo, bounds.best)}"
    return f"{said}, {_number(result.slo, bounds.best)} at best, {_number(result.slo, bounds.worst)} at worst"


def _number(slo: Slo, value: float) -> str:
    if math.isinf(value):
        return "infinite"
    # More digits than people need elsewhere: 9.9999 s and 10.0000 s must not look alike beside a verdict.
    return f"{value:.3%}" if slo.limit_ratio is not None else f"{value / 1e6:.3f} ms"


def _limit(slo: Slo) -> float:
    limit = slo.limit_ratio if slo.limit_ratio is not None else slo.limit_ns
    assert limit is not None
    return limit


def _sample(slo: Slo, values: tuple[Bounds, ...], missing: int) -> SloSample:
    n, limit = len(values) + missing, _limit(slo)
    if n == 0:
        return SloSample(0, False)
    if slo.percentile is None:
        best = sum(value.best for value in values) / n
        worst = (sum(value.worst for value in values) + missing) / n
        failed = round(sum(value.best for value in values))
        may_fail = round(sum(value.worst for value in values)) + missing
        return SloSample(n, True, best, worst, over=failed, over_at_worst=may_fail)
    bounds = percentile_bounds(values, slo.percentile, missing)
    assert bounds is not None
    return SloSample(
        n=n,
        supported=supported(n, slo.percentile),
        best=None if math.isinf(bounds.best) else bounds.best,
        worst=None if math.isinf(bounds.worst) else bounds.worst,
        best_infinite=math.isinf(bounds.best),
        worst_infinite=math.isinf(bounds.worst),
        over=sum(not value.best < limit for value in values),
        over_at_worst=sum(not value.worst < limit for value in values) + missing,
    )
