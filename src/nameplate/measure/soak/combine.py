"""Segments put together into a soak: sums and sketches add up, gaps stay gaps, series are judged by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import structs

from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import CONFIGURATION, compare
from nameplate.evidence.soak_events import OUTSTANDING_LIMIT
from nameplate.measure.rates import Rate
from nameplate.measure.soak.assemble import SUBMITTING
from nameplate.measure.soak.result import Gap, Latency, SoakRate, SoakResult
from nameplate.measure.soak.segment import Counts, Part, SegmentResult, Tokens
from nameplate.measure.soak.series import found_warm_up, points_of
from nameplate.measure.soak.tally import SEND_LAG
from nameplate.statistics.censoring import CensoredPercentile
from nameplate.statistics.sketch import Sketch
from nameplate.verdict.drift import judge_drift
from nameplate.verdict.soak import Overrun, SoakFacts, judge_soak, merged

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
# A pool of another size is told with its part; it need not be another configuration: engines size it anew at each
# start.
_CONFIGURATION = tuple(name for name in CONFIGURATION if name != "kv_tokens")


def measure_soak(segments: Sequence[SegmentResult]) -> SoakResult:
    """Combine a soak's segments, in any order, and judge them by the terms of their contract.

    EvidenceError where there are no segments, or where they are not of one contract and load.
    """
    if not segments:
        raise EvidenceError("A soak without segments measures nothing.")
    ordered = sorted(segments, key=lambda segment: segment.began_wall_ns)
    _same(ordered)
    began_ns = ordered[0].began_wall_ns
    parts = _parts(ordered)
    warm_up = found_warm_up(ordered)
    terms = ordered[0].contract.soak
    max_drift = terms.max_drift if terms is not None else None
    drift = judge_drift(points_of(ordered, parts, warm_up.windows), material_share=max_drift)
    sketches = _sketches(ordered)
    counts, tokens = _counts(ordered), _tokens(ordered)
    slos = tuple(merged(counts_of_one) for counts_of_one in zip(*(s.slos for s in ordered), strict=True))
    soak = terms.soak if terms is not None else ordered[0].plan.soak
    submitted_s = sum(_submitted_ns(segment) for segment in ordered) / 1e9
    lag = sketches[SEND_LAG].percentile(99.0).completed_only if sketches[SEND_LAG].n else None
    latencies = tuple(
        _latency(name, sketch) for name, sketch in sketches.items() if name != SEND_LAG and sketch.n
    )
    planned_s = soak.duration_ns / 1e9 if soak is not None else submitted_s
    verdict = judge_soak(
        SoakFacts(
            sent=counts.sent,
            failed=counts.failed,
            open=counts.open,
            failed_by=counts.failed_by,
            broken=counts.broken,
            slos=slos,
            drift=drift,
            send_lag_p99_ns=lag,
            lateness_budget_ns=ordered[0].lateness_budget_ns,
            configuration_changes=_changes(parts),
            unbalanced=tuple(segment.segment for segment in ordered if not segment.counts.balanced),
            damage=tuple(f"{segment.segment}: {said}" for segment in ordered for said in segment.damage),
            planned_s=planned_s,
            submitted_s=submitted_s,
            overruns=tuple(_overruns(ordered)),
            max_error_rate=terms.max_error_rate if terms is not None else None,
            max_drift=max_drift,
        )
    )
    return SoakResult(
        segments=tuple(ordered),
        gaps=tuple(_gap(before, after) for before, after in pairwise(ordered)),
        began_wall_ns=began_ns,
        submitted_s=submitted_s,
        planned_s=planned_s,
        counts=counts,
        tokens=tokens,
        rates=_rates(ordered),
        latencies=latencies,
        misleading=tuple(said for held in latencies for said in _misleading(held)),
        slos=slos,
        parts=parts,
        warm_up=warm_up,
        drift=drift,
        verdict=verdict,
    )


def _same(ordered: Sequence[SegmentResult]) -> None:
    """Refuse segments that are not of one soak."""
    first = ordered[0]
    for segment in ordered[1:]:
        same = (
            segment.contract == first.contract
            and segment.plan.shape == first.plan.shape
            and segment.plan.concurrency == first.plan.concurrency
            and (segment.plan.arrivals is None) == (first.plan.arrivals is None)
        )
        if not same:
            raise EvidenceError(
                f"{segment.segment} and {first.segment} are not of one soak: their contract or load differs.",
                hint="Measure them apart.",
            )


def _submitted_ns(segment: SegmentResult) -> int:
    until = segment.submit_ended_ns if segment.submit_ended_ns is not None else segment.observed_ns
    return max(0, until - segment.submitted_ns)


def _overruns(ordered: Sequence[SegmentResult]) -> Iterable[Overrun]:
    for segment in ordered:
        if segment.ended_by == OUTSTANDING_LIMIT and segment.plan.arrivals is not None:
            at_ns = segment.began_wall_ns - ordered[0].began_wall_ns + _submitted_ns(segment)
            limit = segment.plan.arrivals.outstanding_limit
            yield Overrun(segment=segment.segment, limit=limit, at_s=at_ns / 1e9)


def _gap(before: SegmentResult, after: SegmentResult) -> Gap:
    begin, end = before.observed_wall_ns, after.began_wall_ns
    steps = sum(step.step_ns for step in before.clock_steps)
    # The later segment's wall clock had made the earlier one's steps.
    length = (end - begin - steps) / 1e9
    return Gap(
        after=before.segment,
        before=after.segment,
        begin_wall_ns=begin,
        end_wall_ns=end,
        length_s=length if length >= 0 else None,
    )


def _parts(ordered: Sequence[SegmentResult]) -> tuple[Part, ...]:
    """Return all parts in order, each compared with the one before it, across segments too."""
    parts = [part for segment in ordered for part in segment.parts]
    return tuple(
        structs.replace(part, changes=compare(parts[at - 1].identity, part.identity)) if at else part
        for at, part in enumerate(parts)
    )


def _changes(parts: Sequence[Part]) -> tuple[str, ...]:
    """Say which facts of the configuration changed between parts; one that can no longer be read did not change."""
    found = []
    for before, after in pairwise(parts):
        for change in compare(before.identity, after.identity, _CONFIGURATION):
            if change.kind == "changed":
                found.append(f"{after.segment}, part {after.number}: {change}")
    return tuple(found)


def _counts(ordered: Sequence[SegmentResult]) -> Counts:
    held = [segment.counts for segment in ordered]
    return Counts(
        sent=sum(counts.sent for counts in held),
        ok=sum(counts.ok for counts in held),
        failed=sum(counts.failed for counts in held),
        cancelled=sum(counts.cancelled for counts in held),
        unfinished=sum(counts.unfinished for counts in held),
        failed_by=_added(counts.failed_by for counts in held),
        outcomes=_added(counts.outcomes for counts in held),
        recovered=sum(counts.recovered for counts in held),
        never_sent=sum(counts.never_sent for counts in held),
        duplicates=sum(counts.duplicates for counts in held),
        untraced=sum(counts.untraced for counts in held),
        broken=_added(counts.broken for counts in held),
    )


def _tokens(ordered: Sequence[SegmentResult]) -> Tokens:
    held = [segment.tokens for segment in ordered]
    cached = [tokens.cached_ok for tokens in held if tokens.cached_ok is not None]
    return Tokens(
        input_ok=sum(tokens.input_ok for tokens in held),
        output_ok=sum(tokens.output_ok for tokens in held),
        output_partial=sum(tokens.output_partial for tokens in held),
        cached_ok=sum(cached) if cached else None,
        estimated=any(tokens.estimated for tokens in held),
    )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for held in counts:
        total.update(held)
    return dict(sorted(total.items()))


def _rates(ordered: Sequence[SegmentResult]) -> tuple[SoakRate, ...]:
    """Add up the segments' rates of one meaning; a segment that was killed ends its own otherwise, and says so."""
    found: dict[tuple[str, bool], list[Rate]] = {}
    for segment in ordered:
        for rate in segment.rates:
            found.setdefault((rate.of, rate.window.ends in SUBMITTING), []).append(rate)
    return tuple(_rate(rates) for rates in found.values())


def _rate(rates: Sequence[Rate]) -> SoakRate:
    seconds = sum(rate.window.length_ns for rate in rates) / 1e9
    counted = sum(rate.counted for rate in rates)
    return SoakRate(
        of=rates[0].of,
        begins=_either(rate.window.begins for rate in rates),
        ends=_either(rate.window.ends for rate in rates),
        per_s=counted / seconds,
        counted=counted,
        seconds=seconds,
        estimated=any(rate.estimated for rate in rates),
        parts=tuple(rates),
    )


def _either(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


def _sketches(ordered: Sequence[SegmentResult]) -> dict[str, Sketch]:
    found: dict[str, Sketch] = {}
    for segment in ordered:
        for name, state in segment.latencies.items():
            if name in found:
                found[name].merge(Sketch.of(state))
            else:
                found[name] = Sketch.of(state)
    return found


def _latency(metric: str, sketch: Sketch) -> Latency:
    state = sketch.state()
    percentiles = tuple(sketch.percentile(percent) for percent in PERCENTILES)
    first = percentiles[0]
    return Latency(
        metric=metric,
        n=first.n,
        completed=first.completed,
        open=first.open,
        never=first.never,
        mean_completed_ns=state.total / first.completed if first.completed else None,
        percentiles=percentiles,
    )


def _misleading(latency: Latency) -> Iterable[str]:
    for held in latency.percentiles:
        if held.misleading or _differs(held):
            yield (
                f"{latency.metric} p{held.percent:g}: {_said(held.completed_only)} among the {held.completed} "
                f"completed; with the {held.open} open and {held.never} failed between {_said(held.best)} and "
                f"{_said(held.worst)}"
            )


def _differs(held: CensoredPercentile) -> bool:
    """Tell whether the worst case is more than twice the sketch's error and 5% above the completed ones alone."""
    if held.completed_only is None or held.n == held.completed:
        return False
    return held.worst is None or held.worst > held.completed_only * 1.05 * (1 + 2 * held.relative_error)


def _said(value: float | None) -> str:
    return (
        "infinite" if value is None else f"{value / 1e9:.3f} s" if value >= 1e9 else f"{value / 1e6:.3f} ms"
    )
