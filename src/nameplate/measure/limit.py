"""What a limit is made of: which part of the judged time grew from one request alone to the failing level.

Means add up, quantiles do not: so the mean is taken apart, whatever percentile the SLO judges, and that is said. A part
is named only where the figures show it; why requests waited is told by the server's own samples, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from nameplate.contract.slo import Metric, Slo
from nameplate.measure.level_figures import LevelFigures, figures_of
from nameplate.measure.result import TrialResult

# A part that carries less of the step than this is not what the limit is made of.
MATERIAL_SHARE = 0.2
# A mean that grew by less than this share of its value alone has no step that could be taken apart.
LEAST_GROWTH = 0.05
# More than this share of the samples with waiting requests must show the same before it is called what held them.
MOST = 0.5

Of = Literal["ttft", "decode", "e2e"]
_OF: dict[Metric, Of] = {
    "ttft": "ttft",
    "itl": "decode",
    "tpot": "decode",
    "longest_gap": "decode",
    "e2e": "e2e",
}


class Name(StrEnum):
    """Name a part of a request's time; `wait` is queue and slower prefill together, where nothing tells them apart."""

    send_lag = "send_lag"
    queue = "queue"
    prefill = "prefill"
    wait = "wait"
    decode = "decode"
    rest = "rest"


class Behind(StrEnum):
    """Name what a part grew by, as the server's samples and counters show it.

    `prompts_before`: requests waited although more could run and the KV pool had room, so for the prompts before them.
    `more_at_once`: the server ran more requests at once, and was not seen to preempt any.
    """

    running_limit = "running_limit"
    kv_full = "kv_full"
    prompts_before = "prompts_before"
    preemption = "preemption"
    more_at_once = "more_at_once"


class Growth(Struct, frozen=True):
    """Hold one part's mean alone and at the failing level, and its share of the whole step; it can be negative."""

    name: Name
    alone_ns: int
    fail_ns: int
    share: float

    @property
    def grew_ns(self) -> int:
        return self.fail_ns - self.alone_ns


class Made(Struct, frozen=True):
    """Hold one part that the limit is made of, with what is seen behind it."""

    name: Name
    behind: tuple[Behind, ...] = ()


class Limit(Struct, frozen=True, kw_only=True):
    """Hold what a limit is made of; without `made_of` it is unknown, and `reason` says why.

    `slo` is the promise that the failing level broke, and `of` the time that it judges: the TTFT, the decode time
    behind ITL, TPOT and longest gap, or the whole E2E latency. `parts` add up to the step of its mean from `alone_ns`
    to `fail_ns`. With `estimated` the step is the TTFT beyond that of a request alone. `levels` are the figures.
    """

    slo: Slo | None
    of: Of | None
    alone_ns: int | None = None
    fail_ns: int | None = None
    parts: tuple[Growth, ...] = ()
    made_of: tuple[Made, ...] = ()
    estimated: bool = False
    reason: str = ""
    levels: tuple[LevelFigures, ...]

    @property
    def fail(self) -> LevelFigures | None:
        return next((level for level in self.levels if level.side == "fail"), None)


def limit_of(
    alone: Sequence[TrialResult], passing: Sequence[TrialResult], failing: Sequence[TrialResult]
) -> Limit | None:
    """Say what holds the failing level below its promise; None where no level failed.

    Trials of each side, invalid ones left out: the baseline's, those of the passing and of the failing level,
    whatever a level is.
    """
    if not failing:
        return None
    sides: tuple[tuple[Literal["alone", "pass", "fail"], Sequence[TrialResult]], ...] = (
        ("alone", alone),
        ("pass", passing),
        ("fail", failing),
    )
    levels = tuple(figures_of(side, trials) for side, trials in sides if trials)
    slo = broken(failing)
    of = None if slo is None else _OF.get(slo.metric)
    errors = any(gate.status == "fail" for result in failing for gate in result.gates)
    if slo is None or of is None or errors:
        reasons = [reason for result in failing for reason in result.verdict.reasons]
        why = f"no latency broke it, or not alone: {'; '.join(reasons[:1])}"
        return Limit(slo=slo, of=of, reason=why, levels=levels)
    if not alone:
        return Limit(slo=slo, of=of, reason="there is no baseline to compare with", levels=levels)
    return _taken_apart(slo, of, levels)


def broken(failing: Sequence[TrialResult]) -> Slo | None:
    """Return the SLO that most of the trials broke, the contract's first of these; None where none was."""
    counted = Counter(held.slo for result in failing for held in result.verdict.slos if held.status == "fail")
    return max(counted, key=lambda slo: counted[slo], default=None)


def _taken_apart(slo: Slo, of: Of, levels: tuple[LevelFigures, ...]) -> Limit:
    alone, fail = levels[0], levels[-1]
    begin, end = _total(alone, of), _total(fail, of)
    if begin is None or end is None:
        why = fail.reason or alone.reason or "not every request came to its value"
        return Limit(slo=slo, of=of, reason=why, levels=levels)
    step = end - begin
    found = Limit(slo=slo, of=of, alone_ns=begin, fail_ns=end, levels=levels)
    if step < LEAST_GROWTH * begin:
        return _because(
            found, "the mean does not grow from one user alone: what fails is there already, or in the tail"
        )
    estimated = of != "decode" and not (alone.split and fail.split)
    pairs = _estimated_parts(alone, fail, of) if estimated else _parts(alone, fail, of)
    if pairs is None:
        return _because(found, fail.reason or alone.reason or "the server does not tell its parts")
    parts = tuple(Growth(name, first, last, (last - first) / step) for name, first, last in pairs)
    made = sorted((part for part in parts if part.share >= MATERIAL_SHARE), key=lambda part: -part.share)
    if any(part.name is Name.wait for part in made) and not fail.requests_waited:
        why = "neither histograms nor samples of the server tell a queue from a slower prefill"
        return _because(found, why, parts=parts, estimated=estimated)
    return Limit(
        slo=slo,
        of=of,
        alone_ns=begin,
        fail_ns=end,
        parts=parts,
        made_of=tuple(Made(part.name, _behind(part.name, alone, fail)) for part in made),
        estimated=estimated,
        reason="" if made else "no part of it carries much of the step",
        levels=levels,
    )


def _because(found: Limit, reason: str, parts: tuple[Growth, ...] = (), estimated: bool = False) -> Limit:
    return Limit(
        slo=found.slo,
        of=found.of,
        alone_ns=found.alone_ns,
        fail_ns=found.fail_ns,
        parts=parts,
        estimated=estimated,
        reason=reason,
        levels=found.levels,
    )


def _total(level: LevelFigures, of: Of) -> int | None:
    """Return the mean of the judged time; in an open loop it begins when a request was due.

    Decode time is as we saw it: the same on every engine, and a network's share in it cancels.
    """
    lag = level.send_lag_mean_ns or 0
    if of == "ttft":
        return None if level.ttft_mean_ns is None else level.ttft_mean_ns + lag
    if level.ttft_mean_ns is None or level.e2e_mean_ns is None:
        return None
    return level.e2e_mean_ns + lag if of == "e2e" else level.e2e_mean_ns - level.ttft_mean_ns


Pairs = list[tuple[Name, int, int]]


def _parts(alone: LevelFigures, fail: LevelFigures, of: Of) -> Pairs | None:
    """Return the parts that the server told, and what they leave."""
    pairs: Pairs = []
    if of != "decode":
        pairs += _pair(Name.send_lag, alone.send_lag_mean_ns or 0, fail.send_lag_mean_ns or 0)
        for name in (Name.queue, Name.prefill):
            first: int | None = getattr(alone, f"{name}_mean_ns")
            last: int | None = getattr(fail, f"{name}_mean_ns")
            if first is None or last is None:
                return None
            pairs += _pair(name, first, last, always=True)
    if of != "ttft":
        before, after = _total(alone, "decode"), _total(fail, "decode")
        if before is None or after is None:
            return None
        pairs += _pair(Name.decode, before, after, always=True)
    begin, end = _total(alone, of), _total(fail, of)
    if begin is None or end is None:
        return None
    told_alone, told_fail = sum(pair[1] for pair in pairs), sum(pair[2] for pair in pairs)
    return pairs + _pair(Name.rest, begin - told_alone, end - told_fail)


def _estimated_parts(alone: LevelFigures, fail: LevelFigures, of: Of) -> Pairs | None:
    """Return the wait as one part: the mean TTFT beyond that of requests alone."""
    if alone.ttft_mean_ns is None or fail.ttft_mean_ns is None:
        return None
    pairs = _pair(Name.send_lag, alone.send_lag_mean_ns or 0, fail.send_lag_mean_ns or 0)
    pairs += _pair(Name.wait, 0, fail.ttft_mean_ns - alone.ttft_mean_ns, always=True)
    if of == "e2e":
        before, after = _total(alone, "decode"), _total(fail, "decode")
        if before is None or after is None:
            return None
        pairs += _pair(Name.decode, before, after, always=True)
    return pairs


def _pair(name: Name, alone: int, fail: int, *, always: bool = False) -> Pairs:
    return [(name, alone, fail)] if always or alone or fail else []


def _behind(name: Name, alone: LevelFigures, fail: LevelFigures) -> tuple[Behind, ...]:
    preempted = (Behind.preemption,) if (fail.preemptions or 0) > (alone.preemptions or 0) else ()
    if name in (Name.queue, Name.wait):
        return (*_why_waiting(fail), *preempted)
    if name in (Name.prefill, Name.decode):
        ran = (
            fail.running is not None and alone.running is not None and fail.running.mean > alone.running.mean
        )
        return preempted or ((Behind.more_at_once,) if ran else ())
    return ()


def _why_waiting(fail: LevelFigures) -> tuple[Behind, ...]:
    seen = fail.held_back
    if seen is None or not seen.waited:
        return ()
    for behind, count in (
        (Behind.running_limit, seen.at_limit),
        (Behind.kv_full, seen.kv_full),
        (Behind.prompts_before, seen.neither),
    ):
        if count is not None and count > MOST * seen.waited:
            return (behind,)
    return ()
