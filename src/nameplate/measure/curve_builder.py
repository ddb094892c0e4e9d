"""From the trials of a curve study to its result: a row for every level, whatever became of it, and what follows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, structs

from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan, border_width, load_of
from nameplate.contract.identity import Identity
from nameplate.contract.limits import ServerLimits
from nameplate.measure.curve_loss import Loss
from nameplate.measure.curve_point import Basis, Point, measured_of, point_of
from nameplate.measure.curve_result import Border, CurveResult, LevelRow, Probe
from nameplate.measure.result import TrialResult
from nameplate.verdict.curve import curves_of
from nameplate.verdict.curve_level import (
    LevelStatus,
    LevelVerdict,
    judge_level_of,
    judge_trial_of,
    restarted,
)
from nameplate.verdict.curve_words import sentence

NOT_RUN = LevelVerdict(LevelStatus.interrupted, "not run yet")
RESTARTED = "the server restarted during the trial"


class AboutCurve(Struct, frozen=True, kw_only=True):
    """Hold what surrounds a curve's numbers.

    `refusals` are the server's words to trials whose prompts were refused, `refused_probes` its words to prompts of
    so many tokens that were refused while they were counted.
    """

    identity: Identity
    losses: tuple[Loss, ...] = ()
    refusals: Mapping[str, str] = {}
    refused_probes: Mapping[int, str] = {}
    spoiled: Collection[str] = ()
    command: tuple[str, ...] = ()
    tool: str = ""


def build_curve(
    contract: Contract,
    about: AboutCurve,
    results: Sequence[TrialResult],
    unrun: Mapping[float, LevelVerdict],
    *,
    exit_code: int | None = None,
    reason: str = "",
) -> CurveResult:
    """Build the result; pure, so that who recomputes the trials gets the same rows.

    `unrun` says of levels what their trials do not: not run, refused before a trial, or cut short.
    """
    plan = contract.curve
    assert plan is not None
    limits = ServerLimits.of(about.identity)
    results = [result for result in results if not result.interrupted]
    by_load: dict[float, list[TrialResult]] = {}
    for result in results:
        if result.plan.role == "level":
            by_load.setdefault(load_of(plan.kind, result.plan), []).append(result)
    loads = sorted({*plan.loads(limits.context_tokens), *by_load, *unrun})
    rows = tuple(_row(plan, about, load, by_load.get(load, []), unrun.get(load)) for load in loads)
    probes = _probes(about, results)
    points = [point for row in rows for point in row.points]
    basis: Basis = "steady" if points and all(point.steady is not None for point in points) else "whole"
    by_key = {result.plan.key: result for result in results}
    measured = [measured_of(contract, by_key[point.trial], point, basis) for point in points]
    curves = curves_of(plan.kind, [one for one in measured if one is not None], plan.hardly)
    return CurveResult(
        contract=contract,
        identity=about.identity,
        rows=rows,
        probes=probes,
        border=_border(plan, limits, rows, probes),
        basis=basis,
        curves=curves,
        sentences=tuple(sentence(plan.kind, curve) for curve in curves),
        losses=about.losses,
        spoiled=tuple(sorted(about.spoiled)),
        spent_s=sum(result.plan.quiet_s + result.elapsed_s for result in results),
        exit_code=exit_code,
        reason=reason,
        command=about.command,
        tool=about.tool,
    )


def verdict_of(
    plan: CurvePlan, result: TrialResult, refusals: Mapping[str, str] | None = None
) -> LevelVerdict:
    """Say what a trial says of its level, in the server's words where it refused the prompt."""
    if restarted(result.facts):
        return LevelVerdict(LevelStatus.lost, f"{RESTARTED} {result.plan.key}")
    judged = judge_trial_of(plan.kind, result.facts, result.gates, result.verdict)
    words = (refusals or {}).get(result.plan.key)
    if judged.status is LevelStatus.refused and words:
        return structs.replace(judged, reason=words)
    if judged.status is LevelStatus.capped:
        return structs.replace(judged, reason=_capped(result))
    return judged


def _capped(result: TrialResult) -> str:
    held, shape = result.measurement.correctness, result.plan.shape
    said = [f"{shape.input_tokens:,} tokens in and {shape.output_tokens:,} out were asked for"]
    if held.prompt_tokens is not None:
        said.append(f"{held.prompt_tokens.low:,} to {held.prompt_tokens.high:,} in")
    if held.ok:
        said.append(f"{held.output_tokens / held.ok:,.0f} out on average given")
    finish = ", ".join(f"{n} {word}" for word, n in held.finish_reasons.items())
    return "; ".join(said) + (f" (finish: {finish})" if finish else "")


def _row(
    plan: CurvePlan,
    about: AboutCurve,
    load: float,
    trials: Sequence[TrialResult],
    unrun: LevelVerdict | None,
) -> LevelRow:
    said = [verdict_of(plan, result, about.refusals) for result in trials]
    judged = unrun or judge_level_of(said, plan.repeat) or NOT_RUN
    points: tuple[Point, ...] = ()
    if judged.status is LevelStatus.valid:
        valid = [r for r, v in zip(trials, said, strict=True) if v.status is LevelStatus.valid]
        points = tuple(point_of(result) for result in valid)
    return LevelRow(
        load=load,
        status=judged.status,
        reason=judged.reason,
        trials=tuple(result.plan.key for result in trials),
        points=points,
    )


def _probes(about: AboutCurve, results: Sequence[TrialResult]) -> tuple[Probe, ...]:
    """Return every probe, shortest prompt first."""
    probes = [Probe(tokens, None, False, words) for tokens, words in about.refused_probes.items()]
    for result in results:
        if result.plan.role == "locator":
            judged = verdict_of_probe(result)
            accepted = judged.status is LevelStatus.valid
            words = about.refusals.get(result.plan.key) or judged.reason
            said = "accepted" if accepted else words
            probes.append(Probe(result.plan.shape.input_tokens, result.plan.key, accepted, said))
    return tuple(sorted(probes, key=lambda probe: (probe.input_tokens, probe.trial or "")))


def verdict_of_probe(result: TrialResult) -> LevelVerdict:
    """Say what a single request that looks for the limit came to."""
    return judge_trial_of("input", result.facts, result.gates, result.verdict)


def _border(
    plan: CurvePlan, limits: ServerLimits, rows: Sequence[LevelRow], probes: Sequence[Probe]
) -> Border | None:
    if plan.kind != "input" or not plan.to_limit:
        return None
    if limits.context_tokens is not None:
        return Border(source="told", context_tokens=limits.context_tokens)
    accepted = [int(row.load) for row in rows if row.status is LevelStatus.valid]
    accepted += [probe.input_tokens for probe in probes if probe.accepted]
    refused = [int(row.load) for row in rows if row.status in (LevelStatus.refused, LevelStatus.capped)]
    refused += [probe.input_tokens for probe in probes if not probe.accepted]
    low = max(accepted, default=None)
    high = min((tokens for tokens in refused if low is None or tokens > low), default=None)
    if low is None or high is None or high - low > border_width(low):
        return None
    return Border(source="found", accepted_tokens=low, refused_tokens=high)
