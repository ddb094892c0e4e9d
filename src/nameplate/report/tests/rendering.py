"""Render for tests: text of a fixed width, and studies whose numbers are known."""

from __future__ import annotations

import io
import os
from pathlib import Path

from rich.console import Console, RenderableType

from nameplate.contract.contract import Contract
from nameplate.contract.plan import Role, TrialPlan
from nameplate.contract.shape import Shape
from nameplate.measure.plate import Plate
from nameplate.measure.plate_builder import build_plate
from nameplate.measure.result import TrialResult, evaluate
from nameplate.measure.study_record import StudyRecord, study_record
from nameplate.measure.tests.trials import MS, SHAPE, closed_loop, contract, evidence, identity
from nameplate.verdict.boundary import Boundary, Status, boundary, settle
from nameplate.verdict.level import judge_level
from nameplate.verdict.shape import ShapeVerdict

GOLDEN = Path(__file__).parent / "golden"

# The opening wave waits k x 2.4 s: the p95 of 64 is 11.64 s at C=8 and 14.04 s at C=9.
CONTRACT = contract("ttft p95 < 12s")
COMMAND = 'nameplate capacity http://127.0.0.1:8000 --shape 1000/11 --slo "ttft p95 < 12s"'
DIRECTORY = "runs/capacity-1"


def text_of(body: RenderableType, width: int = 80, *, color: bool = False) -> str:
    """Render as a terminal of this width would show it; with `color` as one with colours."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=color,
        color_system="truecolor" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    console.print(body)
    return file.getvalue()


def hold_golden(name: str, text: str) -> None:
    """Compare with the golden file; UPDATE_GOLDEN=1 writes it, for a person to read the difference."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def run_trial(
    role: Role, concurrency: int, number: int, held: Contract = CONTRACT, shape: Shape = SHAPE
) -> TrialResult:
    """Return a perfect closed loop's result whose opening wave queues for its prefill."""
    requests = 10 if role == "baseline" else 64
    rows = closed_loop(
        concurrency, requests, ttft=lambda n: (n + 1) * 2400 * MS if 1 < concurrency > n else 200 * MS
    )
    plan = TrialPlan(f"{role}.c{concurrency}.t{number}", role, shape, concurrency, requests, 2)
    return evaluate(evidence(rows, concurrency=concurrency, requests=requests, plan=plan, contract=held))


def results_of(held: Contract = CONTRACT) -> list[TrialResult]:
    """Return the trials of a study whose boundary lies between 8 and 9."""
    results = [run_trial("baseline", 1, 1, held)]
    results += [run_trial("locator", level, 1, held) for level in (2, 4, 8, 16, 12, 10, 9)]
    for number in (1, 2, 3):
        results += [run_trial("confirmation", level, number, held) for level in (8, 9)]
    return results


def verdict_of(results: list[TrialResult], held: Contract = CONTRACT, shape: Shape = SHAPE) -> ShapeVerdict:
    """Settle the levels that were confirmed."""
    levels = [
        judge_level(
            level,
            [
                r.verdict.status
                for r in results
                if r.plan.role == "confirmation" and r.plan.concurrency == level
            ],
            held.rules,
        )
        for level in (8, 9)
    ]
    found = settle({level.level: level.status for level in levels}, 1, 1024, zero_below=True)
    assert found is not None
    keys = tuple((result.plan.key, result.verdict.status) for result in results)
    return ShapeVerdict(shape, found, tuple(levels), 7, "C=8 passes and C=9 fails", keys, 754.0)


def studied(held: Contract = CONTRACT) -> tuple[Plate, StudyRecord, list[TrialResult]]:
    """Return a finished study's plate, record and results."""
    results = results_of(held)
    verdict = verdict_of(results, held)
    server = identity(engine="vllm", version="0.11.0", model="m", kv_tokens=65536, running_limit_effective=8)
    plate = build_plate(held, [verdict], results, server, study_manifest_sha256="ab" * 32)
    record = study_record(held, results, [], [verdict], finished=True, command=("nameplate", "capacity"))
    return plate, record, results


def ended(status: Status, rated: int | None = None) -> Boundary:
    """Return a boundary that ended early with nothing confirmed."""
    return boundary(status, {}, rated=rated)
