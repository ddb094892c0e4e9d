"""The rated result again, by the rules alone: levels from trials, the boundary from levels, the plate from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import Identity
from nameplate.contract.levels import Levels, levels_of, told_rated
from nameplate.contract.rate_plan import at_rate
from nameplate.evidence import layout
from nameplate.measure.plate import Plate
from nameplate.measure.plate_builder import build_plate
from nameplate.measure.result import TrialResult
from nameplate.measure.study_record import StudyRecord, with_levels
from nameplate.verdict.boundary import Boundary, Status, boundary, combined_exit_code, settle
from nameplate.verdict.certainty import steps_down
from nameplate.verdict.level import LevelStatus, LevelVerdict, judge_level
from nameplate.verdict.shape import ShapeVerdict
from nameplate.verdict.trial import SloResult, TrialStatus
from nameplate.verify.compare import differences, told
from nameplate.verify.files import decoded
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import Name

_SETTLED = ("pass", "fail", "noisy")
# A person, and a lost server.
_CUT_CODES = (130, 5)
Verdicts = tuple[LevelVerdict, ...]


def check_rated(
    directory: Path,
    record: StudyRecord,
    plate: Plate | None,
    results: Mapping[str, TrialResult],
    ledger: Ledger,
) -> None:
    """Check levels, boundary and plate of every shape; a trial that cannot be recomputed leaves them unverified."""
    missing = [entry.key for entry in record.trials if entry.key not in results]
    if missing:
        ledger.stopped = f"{missing[0]} cannot be recomputed"
        return
    if record.exit_code is None:
        ledger.stopped = "the study is unfinished"
        return
    ordered = [results[entry.key] for entry in record.trials]
    verdicts = tuple(
        _shape(record.contract, verdict, [r for r in ordered if r.plan.shape == verdict.shape], ledger)
        for verdict in record.shapes
    )
    if tuple(v.shape for v in record.shapes) != record.contract.shapes:
        ledger.fail(Name.boundary, "the record does not answer for every shape of the contract, once each")
    code = _combined(verdicts)
    if record.exit_code != code:
        ledger.fail(Name.boundary, f"the study's exit code is {record.exit_code}, recomputed {code}")
    levels = levels_of(record.contract)
    said = "; ".join(
        f"{v.shape}: {v.boundary.status}, rated {told_rated(levels, v.boundary.rated)}" for v in verdicts
    )
    ledger.close(
        Name.levels, f"{sum(len(v.levels) for v in verdicts)} levels", sum(len(v.levels) for v in verdicts)
    )
    ledger.close(Name.boundary, said, len(verdicts))
    if plate is None:
        ledger.unverified(Name.plate, f"there is no {layout.PLATE}")
        return
    _check_plate(directory, record, plate, verdicts, ordered, ledger)


def _combined(verdicts: Sequence[ShapeVerdict]) -> int | None:
    try:
        return combined_exit_code(verdict.boundary.exit_code for verdict in verdicts)
    except ValueError:
        return None


def _shape(
    contract: Contract, verdict: ShapeVerdict, own: Sequence[TrialResult], ledger: Ledger
) -> ShapeVerdict:
    """Judge one shape again; return the verdict as it should be."""
    where, rules, named = str(verdict.shape), contract.rules, levels_of(contract)
    found = tuple((result.plan.key, result.verdict.status) for result in own)
    if verdict.trials != found:
        ledger.fail(Name.levels, f"{where}: the verdict lists other trials, or other statuses, than were run")
    alone = _alone_ttft_ns(own)
    if any(result.plan.alone_ttft_ns not in (None, alone) for result in own):
        ledger.fail(
            Name.levels, f"{where}: a plan has another TTFT of a request alone than the baseline came to"
        )
    for key in _unplanned(contract, own):
        ledger.fail(
            Name.levels, f"{where}: the load of {key} is not the one that the contract has at its level"
        )
    # A level that was begun and got no trial claims nothing; the search notes it all the same.
    begun = [level.level for level in verdict.levels if not level.trials]
    levels = _levels(contract, own, begun)
    if levels != verdict.levels and verdict.boundary.status in (Status.invalid, Status.interrupted):
        # The trial during which a search ends is kept, and need not have been counted for its level.
        before = _levels(contract, own[:-1], begun)
        levels = before if before == verdict.levels else levels
    for level in _differing(verdict.levels, levels, named):
        ledger.fail(Name.levels, f"{where}: {level}")
    expected = _boundary(contract, verdict, levels)
    for path, here, there in differences(
        msgspec.to_builtins(verdict.boundary), msgspec.to_builtins(expected)
    ):
        ledger.fail(Name.boundary, f"{where}: {told(path, here, there)}")
    rated = expected.rated
    operate_at = None if rated is None else named.lower(rated, rules.operate_below)
    if verdict.operate_at != operate_at:
        ledger.fail(Name.boundary, f"{where}: operate_at is {verdict.operate_at}, recomputed {operate_at}")
    spent_s = sum(result.plan.quiet_s + result.elapsed_s for result in own)
    for path, here, there in differences(verdict.spent_s, spent_s, ("spent_s",)):
        ledger.fail(Name.boundary, f"{where}: {told(path, here, there)}")
    if verdict.boundary.status is Status.budget and not _spent(contract, own):
        ledger.fail(Name.boundary, f"{where}: the budget is said to be used up, and it is not")
    return structs.replace(
        verdict, boundary=expected, levels=levels, operate_at=operate_at, trials=found, spent_s=spent_s
    )


def _unplanned(contract: Contract, own: Sequence[TrialResult]) -> list[str]:
    """Name the trials of a rate study whose arrivals, sample or duties are not those of the contract."""
    if contract.rate is None:
        return []
    runs = [result for result in own if result.plan.role == "baseline" and result.verdict.status != "invalid"]
    alone_ns = runs[-1].measurement.latencies.whole.e2e.p50 if runs else None
    return [
        result.plan.key
        for result in own
        if result.plan.role in ("locator", "confirmation")
        and at_rate(contract, result.plan, result.plan.level, alone_ns) != result.plan
    ]


def _alone_ttft_ns(own: Sequence[TrialResult]) -> tuple[float, float, float] | None:
    """Return the baseline's lowest, median and highest TTFT, by which later trials estimate what waits."""
    runs = [result for result in own if result.plan.role == "baseline" and result.verdict.status != "invalid"]
    return runs[-1].measurement.latencies.whole.ttft.low_median_high if runs else None


def _levels(contract: Contract, own: Sequence[TrialResult], begun: Sequence[int]) -> Verdicts:
    """Judge each level by its confirmations; `begun` are levels that were begun, whatever came of them."""
    statuses: dict[int, list[TrialStatus]] = {level: [] for level in begun}
    slos: dict[int, list[tuple[SloResult, ...]]] = {}
    confirmations = [result for result in own if result.plan.role == "confirmation"]
    for result in confirmations:
        statuses.setdefault(result.plan.level, []).append(result.verdict.status)
        if result.verdict.status != "invalid":
            slos.setdefault(result.plan.level, []).append(result.verdict.slos)
    first = confirmations[0].plan.level if confirmations else 0
    return tuple(
        judge_level(
            level, statuses[level], contract.rules, slos.get(level, ()), steps_down(level, statuses, first)
        )
        for level in sorted(statuses)
    )


def _differing(recorded: Verdicts, recomputed: Verdicts, named: Levels) -> list[str]:
    """Name the levels that differ."""
    ours = {level.level: level for level in recomputed}
    theirs = {level.level: level for level in recorded}
    found = []
    for level in sorted(ours.keys() | theirs.keys()):
        here, there = theirs.get(level), ours.get(level)
        if here != there:
            found.append(f"{named.name(level)} is {_level(here)}, recomputed {_level(there)}")
    return found


def _level(level: LevelVerdict | None) -> str:
    return "not there" if level is None else f"{level.status} ({', '.join(level.trials)})"


def _boundary(contract: Contract, verdict: ShapeVerdict, levels: Verdicts) -> Boundary:
    """Return the boundary that the levels prove, or the one that an early end leaves."""
    named, recorded = levels_of(contract), verdict.boundary
    settled: dict[int, LevelStatus] = {
        level.level: level.status for level in levels if level.status in _SETTLED
    }
    if recorded.status in (Status.invalid, Status.interrupted, Status.budget):
        code = None
        if recorded.status is Status.interrupted and recorded.exit_code in _CUT_CODES:
            code = recorded.exit_code
        return boundary(recorded.status, settled, exit_code=code)
    proven = settle(settled, named.lowest, named.highest, zero_below=named.zero_below)
    # Levels that settle nothing cannot carry any of the other statuses.
    return proven if proven is not None else boundary(Status.interrupted, settled)


def _spent(contract: Contract, own: Sequence[TrialResult]) -> bool:
    rules = contract.rules
    # A time budget is the study's: what earlier shapes spent counts, so a limit that exists may be used up.
    return len(own) >= rules.max_trials or rules.max_s is not None


def _check_plate(
    directory: Path,
    record: StudyRecord,
    plate: Plate,
    verdicts: tuple[ShapeVerdict, ...],
    ordered: Sequence[TrialResult],
    ledger: Ledger,
) -> None:
    identity = ordered[-1].identity_before if ordered else Identity(plate.identity.facts)
    try:
        ours = build_plate(
            record.contract,
            verdicts,
            ordered,
            identity,
            study_manifest_sha256=plate.study_manifest_sha256,
            tool_version=plate.tool_version,
        )
        recorded = with_levels(decoded(directory / layout.PLATE))
    except (EvidenceError, ValueError, ArithmeticError) as error:
        ledger.fail(Name.plate, f"the plate cannot be built again: {error}")
        return
    recomputed = msgspec.json.decode(msgspec.json.encode(ours))
    for found in differences(recorded, recomputed, same_version=plate.tool_version == __version__):
        ledger.fail(Name.plate, told(*found))
    ledger.close(Name.plate, f"{len(plate.shapes)} shapes, every value as recomputed", len(plate.shapes))
