"""A curve again, from the recomputed trials: a row for every level, and what follows from them by the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan, say_load
from nameplate.contract.errors import NameplateError, ServerError
from nameplate.contract.limits import ServerLimits
from nameplate.evidence import layout
from nameplate.evidence.journal import JournalEntry
from nameplate.evidence.rows import RequestRow
from nameplate.measure.curve_builder import NOT_RUN, AboutCurve, build_curve, verdict_of
from nameplate.measure.curve_loss import losses_of, refusal_words
from nameplate.measure.curve_result import CurveResult, LevelRow, decode_curve
from nameplate.measure.result import TrialResult
from nameplate.verdict.curve_level import (
    WITHOUT_TRIAL,
    LevelStatus,
    LevelVerdict,
    curve_exit_code,
    refused_for_length,
)
from nameplate.verdict.gate import TOO_LONG
from nameplate.verify.compare import differences, told
from nameplate.verify.files import document
from nameplate.verify.ledger import Ledger, clipped
from nameplate.verify.names import Name

# A person, a lost server, and a trial that could not be carried out.
_CUT_CODES = (130, 5, 4)


def check_curve(
    directory: Path,
    contract: Contract,
    results: Mapping[str, TrialResult],
    rows: Mapping[str, Sequence[RequestRow]],
    journal: Sequence[JournalEntry],
    ledger: Ledger,
) -> CurveResult | None:
    """Check `result.json` of a curve study against its trials; return it where it can be read.

    `results` and `rows` are those of sealed trials; `journal` is the study's own.
    """
    path = directory / layout.RESULT
    if not path.exists() and not path.is_symlink():
        ledger.unverified(Name.study_files, f"there is no {layout.RESULT}: the study is unfinished")
        return None
    try:
        recorded = decode_curve(document(path))
    except (NameplateError, ValueError, RecursionError, OSError) as error:
        ledger.fail(Name.study_files, str(error))
        return None
    try:
        _check(directory, recorded, contract, results, rows, journal, ledger)
    except Exception as error:
        # Whatever values a hostile result can hold, they end here and not in a traceback.
        ledger.fail(Name.curve, f"nothing can be computed from these values: {type(error).__name__}")
    ledger.close(Name.curve, f"{len(recorded.rows)} levels as recomputed", len(recorded.rows))
    return recorded


def _check(
    directory: Path,
    recorded: CurveResult,
    contract: Contract,
    results: Mapping[str, TrialResult],
    rows: Mapping[str, Sequence[RequestRow]],
    journal: Sequence[JournalEntry],
    ledger: Ledger,
) -> None:
    plan = contract.curve
    assert plan is not None
    counting = _counting(recorded, results, ledger)
    _check_alone(plan, counting, ledger)
    refusals = {
        result.plan.key: words
        for result in counting
        if refused_for_length(result.facts) and (words := refusal_words(rows[result.plan.key]))
    }
    refused_probes = {probe.input_tokens: probe.reason for probe in recorded.probes if probe.trial is None}
    for tokens, words in refused_probes.items():
        _require_refusal(f"a probe of {tokens:,} tokens", words, journal, ledger)
    losses = losses_of(directory, journal)
    if not recorded.finished:
        # The journal has a loss before the result tells of it, and a kill can come between.
        losses = losses[: len(recorded.losses)]
    about = AboutCurve(
        identity=recorded.identity,
        losses=losses,
        refusals=refusals,
        refused_probes=refused_probes,
        spoiled=recorded.spoiled,
        command=recorded.command,
        tool=recorded.tool,
    )
    unrun = _unrun(plan, recorded, journal, ledger)
    ours = build_curve(contract, about, counting, unrun, exit_code=recorded.exit_code, reason=recorded.reason)
    same = recorded.tool == f"nameplate {__version__}"
    for found in differences(msgspec.to_builtins(recorded), msgspec.to_builtins(ours), same_version=same):
        ledger.fail(Name.curve, told(*found))
    _check_end(recorded, ours, ledger)


def _counting(recorded: CurveResult, results: Mapping[str, TrialResult], ledger: Ledger) -> list[TrialResult]:
    """Return the trials that the levels rest on, and hold that no sealed one was left out."""
    listed = [key for row in recorded.rows for key in row.trials]
    listed += [probe.trial for probe in recorded.probes if probe.trial is not None]
    for key in sorted(set(listed) - results.keys()):
        ledger.unverified(Name.curve, f"{clipped(key, 80)} is listed, and cannot be recomputed")
    for key, result in results.items():
        if key in listed or key in recorded.spoiled or result.interrupted:
            continue
        if recorded.finished:
            ledger.fail(Name.curve, f"{key} is sealed, and no level rests on it")
        else:
            ledger.unverified(Name.curve, f"{key} is of no level: the study ended before it was")
    return [results[key] for key in dict.fromkeys(listed) if key in results]


def _check_alone(plan: CurvePlan, counting: Sequence[TrialResult], ledger: Ledger) -> None:
    """Hold that what later levels estimate their waits by is the TTFT of one client alone."""
    if plan.kind != "concurrency":
        return
    alone: tuple[float, float, float] | None = None
    for result in counting:
        if result.plan.concurrency == 1 and verdict_of(plan, result).status is LevelStatus.valid:
            alone = result.measurement.latencies.whole.ttft.low_median_high
    for result in counting:
        own = None if result.plan.concurrency == 1 else alone
        # Studies from before it was kept have none.
        if result.plan.alone_ttft_ns not in (None, own):
            ledger.fail(
                Name.curve,
                f"{clipped(result.plan.key, 80)} has another TTFT of a request alone than one client came to",
            )


def _unrun(
    plan: CurvePlan, recorded: CurveResult, journal: Sequence[JournalEntry], ledger: Ledger
) -> dict[float, LevelVerdict]:
    """Return what the record says of levels that their trials do not tell of, where the rules allow it."""
    context = ServerLimits.of(recorded.identity).context_tokens
    unrun = {}
    for row in recorded.rows:
        where = say_load(plan.kind, row.load)
        beyond = plan.kind == "input" and context is not None and row.load + plan.output_tokens > context
        if (row.status is LevelStatus.over_limit) != beyond:
            ledger.fail(Name.curve, f"{where} is {row.status.value}, and the context holds {context} tokens")
        if row.status is LevelStatus.refused and not row.trials:
            _require_refusal(where, row.reason, journal, ledger)
        if row.status in WITHOUT_TRIAL and _says_itself(row):
            unrun[row.load] = LevelVerdict(row.status, row.reason)
        elif not row.trials and not (row.status is NOT_RUN.status and row.reason == NOT_RUN.reason):
            ledger.fail(Name.curve, f"{where} is {row.status.value} without a trial")
    return unrun


def _says_itself(row: LevelRow) -> bool:
    """Tell whether a row's status is no function of its trials: it has none, or was cut short."""
    if row.status is LevelStatus.lost:
        # A restart during a trial is seen in the trial itself.
        return not row.trials
    if row.status is LevelStatus.interrupted:
        return row.reason != NOT_RUN.reason
    return not row.trials


def _require_refusal(where: str, words: str, journal: Sequence[JournalEntry], ledger: Ledger) -> None:
    """Hold that a prompt which was refused before any trial was refused, by the study's journal."""
    for entry in journal:
        if entry.what != "calibration":
            continue
        error, status = entry.detail.get("error"), entry.detail.get("status")
        if status in TOO_LONG and error and str(error) in words:
            return
    ledger.unverified(Name.curve, f"{where} was refused while its prompt was counted, and no answer shows it")


def _check_end(recorded: CurveResult, ours: CurveResult, ledger: Ledger) -> None:
    """Hold the exit code against the levels and losses."""
    code = recorded.exit_code
    if code is None:
        return
    statuses = [row.status for row in ours.rows]
    if LevelStatus.lost in statuses and not recorded.losses:
        ledger.fail(Name.curve, "a level is lost, and the journal knows of no loss of service")
    if LevelStatus.lost in statuses:
        allowed: tuple[int, ...] = (ServerError.exit_code,)
    elif LevelStatus.interrupted in statuses:
        allowed = _CUT_CODES
    else:
        allowed = (curve_exit_code(statuses),)
    if code not in allowed:
        said = " or ".join(map(str, allowed))
        ledger.fail(Name.curve, f"the study's exit code is {code}, recomputed {said}")
