"""The speed matrix again, from the recomputed trials: a row for every planned cell, each as the rules give it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from nameplate import __version__
from nameplate.contract.contract import Contract
from nameplate.contract.errors import NameplateError
from nameplate.contract.identity import compare
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, Matrix, planned_cells
from nameplate.evidence import layout
from nameplate.measure.result import TrialResult
from nameplate.measure.speed_builder import NOT_RUN, About, build_speed, exit_code_of
from nameplate.measure.speed_result import SpeedResult, decode_speed
from nameplate.verdict.cell import CellStatus, CellVerdict
from nameplate.verdict.cell_plan import foregone
from nameplate.verify.compare import differences, told
from nameplate.verify.files import document
from nameplate.verify.ledger import Ledger
from nameplate.verify.names import Name

# Trials that are no cell's attempt.
_BESIDE = ("warmup.", "alone.")
_UNRUN = (CellStatus.skipped, CellStatus.interrupted)


def check_matrix(
    directory: Path, contract: Contract, results: Mapping[str, TrialResult], ledger: Ledger
) -> SpeedResult | None:
    """Check `result.json` of a speed study against its trials; return it where it can be read."""
    path = directory / layout.RESULT
    if not path.exists() and not path.is_symlink():
        ledger.unverified(Name.study_files, f"there is no {layout.RESULT}: the study is unfinished")
        return None
    try:
        recorded = decode_speed(document(path))
    except (NameplateError, ValueError, RecursionError, OSError) as error:
        ledger.fail(Name.study_files, str(error))
        return None
    matrix = contract.speed
    assert matrix is not None
    try:
        counting = _counting(recorded, results, ledger)
        unrun = _unrun(recorded, matrix, ledger)
        _compare(recorded, contract, counting, unrun, ledger)
    except Exception as error:
        # Whatever values a hostile result can hold, they end here and not in a traceback.
        ledger.fail(Name.matrix, f"nothing can be computed from these values: {type(error).__name__}")
    ledger.close(Name.matrix, f"{len(recorded.rows)} planned cells as recomputed", len(recorded.rows))
    return recorded


def _counting(recorded: SpeedResult, results: Mapping[str, TrialResult], ledger: Ledger) -> list[TrialResult]:
    """Return the trials that the rows rest on, and hold that no sealed one was left out."""
    listed = {key for row in recorded.rows for key in row.trials}
    for key in sorted(listed - results.keys()):
        ledger.unverified(Name.matrix, f"{key} is listed, and cannot be recomputed")
    for key, result in results.items():
        if key in listed or key.startswith(_BESIDE) or result.interrupted:
            continue
        if recorded.finished:
            ledger.fail(Name.matrix, f"{key} is sealed, and no row rests on it")
        else:
            ledger.unverified(Name.matrix, f"{key} is in no row: the study ended before it was")
    return [
        result
        for key, result in results.items()
        if key in listed or (key.startswith(_BESIDE) and not result.interrupted)
    ]


def _unrun(recorded: SpeedResult, matrix: Matrix, ledger: Ledger) -> dict[CellPlan, CellVerdict]:
    """Return what the rows say of cells without a trial, where the rules allow it."""
    limits = ServerLimits.of(recorded.identity)
    said = {(row.kind, row.context_tokens, row.concurrency): row for row in recorded.rows}
    unrun = {}
    for cell in planned_cells(matrix):
        row = said.get((cell.kind, cell.context_tokens, cell.concurrency))
        verdict = foregone(matrix, cell, limits)
        if verdict is not None:
            unrun[cell] = verdict
        elif row is not None and not row.trials:
            # A server that does not tell its limit says it by refusing to count a prompt of that length.
            if row.status in _UNRUN or row.status is CellStatus.over_limit:
                unrun[cell] = CellVerdict(row.status, row.reason, row.notes)
            else:
                ledger.fail(
                    Name.matrix, f"{cell} is {row.status.value} without a trial, and could have been run"
                )
                unrun[cell] = NOT_RUN
    return unrun


def _compare(
    recorded: SpeedResult,
    contract: Contract,
    results: list[TrialResult],
    unrun: Mapping[CellPlan, CellVerdict],
    ledger: Ledger,
) -> None:
    about = About(
        tool=recorded.tool,
        identity=recorded.identity,
        hosts=recorded.hosts,
        launch_command=recorded.launch_command,
        note=recorded.note,
    )
    for result in results:
        for change in compare(recorded.identity, result.identity_before):
            if change.kind == "changed" and recorded.exit_code in (0, None):
                ledger.fail(Name.matrix, f"{result.plan.key} met another server: {change}")
    ours = build_speed(contract, about, results, unrun, exit_code=recorded.exit_code)
    same = recorded.tool == f"nameplate {__version__}"
    for found in differences(msgspec.to_builtins(recorded), msgspec.to_builtins(ours), same_version=same):
        ledger.fail(Name.matrix, told(*found))
    code = recorded.exit_code
    if code in (0, 4) and not any(row.status is CellStatus.interrupted for row in ours.rows):
        expected = exit_code_of(ours.rows)
        if code != expected:
            ledger.fail(Name.matrix, f"the study's exit code is {code}, recomputed {expected}")
