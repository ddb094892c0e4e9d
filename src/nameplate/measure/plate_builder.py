"""Building a plate from verdicts and results: pure, so that `verify` builds the same one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.levels import levels_of
from nameplate.contract.slo import Slo
from nameplate.measure.limit import Limit, limit_of
from nameplate.measure.plate import (
    Plate,
    PlateBaseline,
    PlateIdentity,
    PlateShape,
    PlateTrial,
)
from nameplate.measure.plate_open import plate_open, plate_rates
from nameplate.measure.quantiles import quantiles
from nameplate.measure.rates import Rate
from nameplate.measure.result import TrialResult
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.boundary import Boundary, combined_exit_code
from nameplate.verdict.certify import Certified, certify
from nameplate.verdict.facts import PromptRange
from nameplate.verdict.qualified import scope_of
from nameplate.verdict.shape import ShapeVerdict
from nameplate.verdict.warnings import (
    Code,
    LevelPoint,
    Warned,
    alternatives,
    e2e_without_gate,
    flat_median,
    not_portable,
    pass_above_fail,
    throughput_rising,
)


def build_plate(
    contract: Contract,
    verdicts: Sequence[ShapeVerdict],
    results: Sequence[TrialResult],
    identity: Identity,
    *,
    study_manifest_sha256: str | None,
    tool_version: str = "",
) -> Plate:
    """Build the plate of a study; `results` are all its sealed trials, in order."""
    overall = (not_portable(identity.missing), alternatives(len(verdicts)))
    return Plate(
        target=contract.target,
        identity=PlateIdentity(dict(identity.facts), identity.missing),
        contract=contract,
        shapes=tuple(build_shape(contract, verdict, results) for verdict in verdicts),
        warnings=tuple(warned for warned in overall if warned is not None),
        exit_code=combined_exit_code(verdict.boundary.exit_code for verdict in verdicts),
        study_manifest_sha256=study_manifest_sha256,
        tool_version=tool_version,
    )


def build_shape(contract: Contract, verdict: ShapeVerdict, results: Sequence[TrialResult]) -> PlateShape:
    """Build one shape's entry from its verdict and the study's results."""
    counted = {key for key, _ in verdict.trials}
    own = [r for r in results if r.plan.shape == verdict.shape and r.plan.key in counted]
    confirmations = [result for result in own if result.plan.role == "confirmation"]
    found, scope = verdict.boundary, scope_of(contract, verdict.shape)
    return PlateShape(
        shape=verdict.shape,
        rated=found.rated,
        pass_level=found.pass_level,
        fail_level=found.fail_level,
        noisy=found.noisy,
        status=found.status,
        exit_code=found.exit_code,
        reason=verdict.reason,
        operate_at=verdict.operate_at,
        levels=verdict.levels,
        certified=_certified(verdict, confirmations),
        qualified=scope.qualified if found.rated is not None else (),
        not_qualified=scope.not_qualified,
        warnings=_warnings(contract, verdict, own),
        prompt_tokens=_joined(result.measurement.correctness.prompt_tokens for result in own),
        baseline=_baseline(own),
        confirmations=tuple(plate_trial(result) for result in confirmations),
        rates=plate_rates(contract, found, verdict.operate_at),
        limit=_limit(found, own, confirmations),
    )


def plate_trial(result: TrialResult) -> PlateTrial:
    """Return one trial as the plate shows it."""
    latencies, rates = result.measurement.latencies.whole, result.measurement.rates
    return PlateTrial(
        key=result.plan.key,
        level=result.plan.level,
        attempt=result.plan.attempt,
        status=result.verdict.status,
        reasons=result.verdict.reasons,
        slos=result.verdict.slos,
        ttft=quantiles(latencies.ttft),
        itl=quantiles(latencies.itl),
        e2e=quantiles(latencies.e2e),
        longest_gap=quantiles(latencies.longest_gap),
        requests_per_s=_per_s(rates.requests_whole),
        requests_per_s_steady=_per_s(rates.requests_steady),
        output_tokens_per_s=_per_s(rates.tokens_whole),
        output_tokens_per_s_steady=_per_s(rates.tokens_steady),
        output_tokens_per_s_per_user_p50=latencies.per_user.p50,
        concurrency_mean=result.measurement.concurrency.mean,
        correctness=result.measurement.correctness,
        open_loop=plate_open(result),
    )


def level_points(slo: Slo, results: Iterable[TrialResult]) -> tuple[LevelPoint, ...]:
    """Return each level's medians over its trials that ended whole, the locator's too: they only illustrate."""
    by_level: dict[int, list[TrialResult]] = {}
    for result in results:
        whole = not result.facts.not_ended and result.verdict.status != "invalid"
        if whole and result.plan.role in ("locator", "confirmation"):
            by_level.setdefault(result.plan.level, []).append(result)
    return tuple(
        LevelPoint(
            level,
            _median(distribution_of(slo, trial).p50 for trial in trials),
            _median(_judged(slo, trial) for trial in trials),
            _median(_per_s(trial.measurement.rates.tokens_whole) for trial in trials),
        )
        for level, trials in sorted(by_level.items())
    )


def distribution_of(slo: Slo, result: TrialResult) -> Distribution:
    """Return the whole sample's distribution of an SLO's latency; ValueError for `error_rate`."""
    if slo.metric == "error_rate":
        raise ValueError("an error rate has no distribution")
    distribution: Distribution = getattr(result.measurement.latencies.whole, slo.metric)
    return distribution


def _certified(verdict: ShapeVerdict, confirmations: Sequence[TrialResult]) -> tuple[Certified, ...]:
    rated = verdict.boundary.rated
    if rated is None:
        return ()
    valid = [
        result.verdict.slos
        for result in confirmations
        if result.plan.level == rated and result.verdict.status != "invalid"
    ]
    needs = next((one.demand for one in verdict.levels if one.level == rated), None)
    return certify(rated, valid, needs)


def _warnings(contract: Contract, verdict: ShapeVerdict, own: Sequence[TrialResult]) -> tuple[Warned, ...]:
    found: list[Warned | None] = []
    levels = levels_of(contract)
    latency = next((slo for slo in contract.slos if slo.percentile is not None), None)
    if latency is not None and latency.percentile is not None:
        points = level_points(latency, own)
        found.append(flat_median(latency.metric, latency.percentile, points, levels))
        found.append(throughput_rising(verdict.boundary, points, levels))
    found.append(e2e_without_gate(contract))
    found.append(pass_above_fail([(level.level, level.status) for level in verdict.levels], levels))
    # A trial's own warnings once each: three confirmations at two levels would say the same six times.
    once: dict[tuple[Code, str], Warned] = {}
    for result in own:
        for warned in result.warnings if result.plan.role == "confirmation" else ():
            which = warned.what.partition(":")[0] if warned.code is Code.unverified_gate else ""
            once.setdefault((warned.code, which), warned)
    found += once.values()
    return tuple(warned for warned in found if warned is not None)


def _baseline(own: Sequence[TrialResult]) -> PlateBaseline | None:
    runs = [r for r in own if r.plan.role == "baseline" and r.verdict.status != "invalid"]
    if not runs:
        return None
    measurement = runs[-1].measurement
    latencies, alone = measurement.latencies.whole, measurement.single_user
    return PlateBaseline(
        runs[-1].plan.key,
        quantiles(latencies.ttft),
        quantiles(latencies.itl),
        quantiles(latencies.e2e),
        alone.prefill_nominal if alone else None,
        alone.prefill_counted.p50 if alone else None,
        alone.decode if alone else None,
        measurement.correctness.outputs_unique,
    )


def _limit(found: Boundary, own: Sequence[TrialResult], confirmations: Sequence[TrialResult]) -> Limit | None:
    """Say what the limit is made of, from the valid trials alone, at the passing and at the failing level."""

    def at(level: int | None) -> list[TrialResult]:
        return [r for r in confirmations if r.plan.level == level and r.verdict.status != "invalid"]

    alone = [r for r in own if r.plan.role == "baseline" and r.verdict.status != "invalid"]
    return limit_of(alone[-1:], at(found.pass_level), at(found.fail_level))


def _judged(slo: Slo, result: TrialResult) -> float | None:
    judged = next((held for held in result.verdict.slos if held.slo == slo), None)
    return judged.whole.best if judged is not None else None


def _joined(ranges: Iterable[PromptRange | None]) -> PromptRange | None:
    known = [held for held in ranges if held is not None]
    if not known:
        return None
    low, high = min(held.low for held in known), max(held.high for held in known)
    return PromptRange(low, high, sum(held.known for held in known))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _per_s(rate: Rate | None) -> float | None:
    return None if rate is None else rate.per_s
