"""The verdict of a soak: validity first, then its gates and SLOs; fail before inconclusive before pass.

SLOs are judged on exact counts, not on sketches: a percentile is below its limit if and only if enough members are, so
the members at or over the limit are counted, and of those next to it the values are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from msgspec import Struct, structs

from nameplate.contract.slo import Slo
from nameplate.statistics.percentile import percent_as_fraction, supported
from nameplate.verdict.boundary import trial_exit_code
from nameplate.verdict.drift import Drift
from nameplate.verdict.gate import CONTRACT, MEANING, Gate
from nameplate.verdict.max_drift import combine_worse, judge_worse
from nameplate.verdict.trial import SloStatus, TrialStatus

GateStatus = Literal["pass", "fail", "inconclusive", "invalid"]

# Where a word is several tokens, one prompt in some thousands is off by more than 8 tokens and 2%, however it is made
# (a real vLLM: 73 for 64 once in 3,262): it says nothing against the hours around it.
LENGTH_SHARE = 0.01
# A submission is whole from this share of its planned duration on: the rest is what its last request needs to be due.
WHOLE_SHARE = 0.999


class Side(Struct, frozen=True, kw_only=True):
    """Count one case's members at or `over` a limit, and keep the two values next to it; null where there is none.

    `smallest_over` is null as well where all that are over are infinite.
    """

    over: int = 0
    largest_below: float | None = None
    smallest_over: float | None = None

    def merged(self, other: Side) -> Side:
        """Return both together."""
        return Side(
            over=self.over + other.over,
            largest_below=max(_known(self.largest_below, other.largest_below), default=None),
            smallest_over=min(_known(self.smallest_over, other.smallest_over), default=None),
        )


class SloCount(Struct, frozen=True, kw_only=True):
    """Count one SLO's members against its limit, in the best and in the worst case of those that are open."""

    slo: Slo
    n: int = 0
    best: Side = Side()
    worst: Side = Side()


class SloJudged(Struct, frozen=True, kw_only=True):
    """Hold one SLO's status: `over` of n members are at or over the limit for certain, `over_at_worst` may be."""

    slo: Slo
    status: SloStatus
    n: int
    supported: bool
    over: int
    over_at_worst: int
    detail: str


class GateJudged(Struct, frozen=True, kw_only=True):
    """Hold one gate's status and what was found."""

    gate: str
    status: GateStatus
    detail: str


class Overrun(Struct, frozen=True, kw_only=True):
    """Say that a segment came to `limit` unanswered requests, `at_s` after the soak's first was due."""

    segment: str
    limit: int
    at_s: float


class SoakFacts(Struct, frozen=True, kw_only=True):
    """Hold what the gates of a soak judge.

    Counts are of measured requests over all segments. `failed_by` is by gate name, `broken` counts answers that break
    the contract, by gate name. `configuration_changes` are facts of the server, other than its start and its pool, that
    differ between parts. `unbalanced` are segments whose sum does not hold. `planned_s` and `submitted_s` are how long
    was to be submitted and how long was; `overruns` are the segments that the outstanding limit ended. `max_error_rate`
    and `max_drift` are null without such a limit.
    """

    sent: int
    failed: int
    open: int
    failed_by: dict[str, int]
    broken: dict[str, int]
    slos: tuple[SloCount, ...]
    drift: Drift
    send_lag_p99_ns: float | None
    lateness_budget_ns: int
    configuration_changes: tuple[str, ...]
    unbalanced: tuple[str, ...]
    damage: tuple[str, ...]
    planned_s: float
    submitted_s: float
    overruns: tuple[Overrun, ...] = ()
    max_error_rate: float | None = None
    max_drift: float | None = None


class SoakVerdict(Struct, frozen=True, kw_only=True):
    """Hold a soak's status with its reasons in words, every gate and every SLO."""

    status: TrialStatus
    reasons: tuple[str, ...]
    gates: tuple[GateJudged, ...]
    slos: tuple[SloJudged, ...]
    exit_code: int


def counted(count: SloCount, best: float, worst: float) -> SloCount:
    """Return the count with one more member of these bounds."""
    limit = limit_of(count.slo)
    return structs.replace(
        count,
        n=count.n + 1,
        best=_with(count.best, best, limit),
        worst=_with(count.worst, worst, limit),
    )


def merged(counts: Sequence[SloCount]) -> SloCount:
    """Return several counts of one SLO together; ValueError where they are of different ones."""
    first, *others = counts
    for other in others:
        if other.slo != first.slo:
            raise ValueError(f"{other.slo} and {first.slo} are different SLOs")
        first = SloCount(
            slo=first.slo,
            n=first.n + other.n,
            best=first.best.merged(other.best),
            worst=first.worst.merged(other.worst),
        )
    return first


def judge_count(count: SloCount) -> SloJudged:
    """Judge one SLO: strict, percentile linear with infinity included, by its best and its worst case."""
    slo, n = count.slo, count.n
    status: SloStatus
    if n == 0:
        status = "inconclusive"
    elif not _holds(count.best, slo, n):
        status = "fail"
    else:
        status = "pass" if _holds(count.worst, slo, n) else "inconclusive"
    enough = slo.percentile is None or supported(n, slo.percentile)
    detail = f"{slo}: {status}, {count.best.over} of {n} at or over the limit"
    if count.worst.over != count.best.over:
        detail += f", {count.worst.over} at worst"
    return SloJudged(
        slo=slo,
        status=status,
        n=n,
        supported=enough,
        over=count.best.over,
        over_at_worst=count.worst.over,
        detail=detail if enough else f"{detail} (unsupported)",
    )


def judge_soak(facts: SoakFacts) -> SoakVerdict:
    """Combine gates and SLOs: invalid, then fail, then inconclusive, then pass."""
    slos = tuple(judge_count(count) for count in facts.slos)
    gates = (*_validity(facts), *_load(facts), *_limits(facts))
    status: TrialStatus = "pass"
    reasons: tuple[str, ...] = ()
    for kind in ("invalid", "fail", "inconclusive"):
        found = [f"{gate.gate}: {gate.detail}" for gate in gates if gate.status == kind]
        found += [slo.detail for slo in slos if slo.status == kind]
        if found and status == "pass":
            status, reasons = kind, tuple(found)
    if status == "pass":
        reasons = tuple(slo.detail for slo in slos) or ("no SLO was given: the gates alone decide",)
        if facts.open:
            reasons += (f"{facts.open} of {facts.sent} requests were left at the end, each with its fate",)
    return SoakVerdict(
        status=status, reasons=reasons, gates=gates, slos=slos, exit_code=trial_exit_code(status)
    )


def _validity(facts: SoakFacts) -> Iterable[GateJudged]:
    """Judge what makes the evidence worthless, whatever it says of the server."""
    broken = (*facts.damage, *(f"{key}: the requests do not add up" for key in facts.unbalanced))
    yield _gate("evidence", "invalid" if broken else "pass", "; ".join(broken) or "sums hold")
    changes = facts.configuration_changes
    yield _gate("identity", "invalid" if changes else "pass", "; ".join(changes) or "one configuration")
    lag, budget = facts.send_lag_p99_ns, facts.lateness_budget_ns
    late = lag is not None and lag > budget
    said = "nothing was sent" if lag is None else f"p99 of the send lag {lag / 1e6:.2f} ms"
    yield _gate("client_lateness", "invalid" if late else "pass", f"{said}, {budget / 1e6:g} ms allowed")
    for name, count in sorted(facts.broken.items()):
        if count and Gate(name) in CONTRACT:
            few = name == Gate.input_length and count <= LENGTH_SHARE * facts.sent
            said = f"{count} of {facts.sent}: {MEANING[Gate(name)]}"
            yield _gate(name, "pass" if few else "invalid", said)


def _load(facts: SoakFacts) -> Iterable[GateJudged]:
    """Judge failures, by the limit that was given for them (without one, none is allowed), and a load that overran."""
    decided = facts.max_error_rate is not None or any(count.slo.percentile is None for count in facts.slos)
    for name, count in sorted(facts.failed_by.items()):
        if name == Gate.bad_request:
            yield _gate(name, "invalid", f"{count} times: {MEANING[Gate.bad_request]}")
        elif not decided:
            yield _gate(name, "fail", f"{count} of {facts.sent}: {MEANING[Gate(name)]}")
    if facts.overruns:
        found = "; ".join(
            f"{one.segment} came to its limit of {one.limit} unanswered requests after {one.at_s:,.1f} s"
            for one in facts.overruns
        )
        yield _gate(Gate.outstanding, "fail", f"{found}: {MEANING[Gate.outstanding]}")
    if facts.max_error_rate is None or not facts.sent:
        return
    best, worst = facts.failed / facts.sent, (facts.failed + facts.open) / facts.sent
    limit = facts.max_error_rate
    status: GateStatus = "fail" if best > limit else "pass" if worst <= limit else "inconclusive"
    at_worst = f", {worst:.3%} if all that are open failed" if facts.open else ""
    yield _gate("max_error_rate", status, f"{best:.3%} of {facts.sent} failed{at_worst}; {limit:.3%} allowed")


def _limits(facts: SoakFacts) -> Iterable[GateJudged]:
    """Judge drift, and whether the soak was as long as it was to be and saw any request end."""
    collapsed = [held for held in facts.drift.series if held.conclusion == "collapsed"]
    if collapsed:
        yield _gate("collapse", "fail", "; ".join(f"{held.series} {held.detail}" for held in collapsed))
    if facts.max_drift is not None:
        judged = [judge_worse(held) for held in facts.drift.series if held.counts]
        yield _gate("max_drift", *combine_worse(judged, facts.max_drift))
    if facts.sent and facts.open == facts.sent:
        yield _gate("ended", "inconclusive", f"not one of {facts.sent} requests came to an end")
    if facts.submitted_s < WHOLE_SHARE * facts.planned_s:
        detail = f"load was submitted for {facts.submitted_s:.0f} s of {facts.planned_s:.0f} s"
        yield _gate("duration", "inconclusive", detail)


def _gate(name: str, status: GateStatus, detail: str) -> GateJudged:
    return GateJudged(gate=str(name), status=status, detail=detail)


def limit_of(slo: Slo) -> float:
    """Return what an SLO's value must stay below: nanoseconds, or a share."""
    limit = slo.limit_ratio if slo.limit_ratio is not None else slo.limit_ns
    assert limit is not None
    return limit


def _with(side: Side, value: float, limit: float) -> Side:
    if value < limit:
        if side.largest_below is None or value > side.largest_below:
            return structs.replace(side, largest_below=float(value))
        return side
    finite = None if math.isinf(value) else float(value)
    smallest = min(_known(side.smallest_over, finite), default=None)
    return structs.replace(side, over=side.over + 1, smallest_over=smallest)


def _holds(side: Side, slo: Slo, n: int) -> bool:
    """Tell whether the percentile (or the share of failures) of n members is below the limit, exactly."""
    limit = limit_of(slo)
    if slo.percentile is None:
        return side.over / n < limit
    rank = percent_as_fraction(slo.percentile) * (n - 1)
    below = n - side.over
    if math.ceil(rank) < below:
        return True
    if math.floor(rank) >= below or side.largest_below is None or side.smallest_over is None:
        return False
    # The rank falls between the last below the limit and the first that is not: both are kept.
    low, high = Fraction(side.largest_below), Fraction(side.smallest_over)
    return float(low + (high - low) * (rank - math.floor(rank))) < limit


def _known(*values: float | None) -> list[float]:
    return [value for value in values if value is not None]
