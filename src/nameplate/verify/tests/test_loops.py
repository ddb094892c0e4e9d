"""Loops in real evidence: a server that repeats itself, its trial, and what can be made of it afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.result import TrialResult, decode
from nameplate.report.tests.rendering import text_of
from nameplate.report.trial import trial_summary
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.verdict.gate import Gate
from nameplate.verify import verify
from nameplate.verify.names import Name
from nameplate.verify.tests.making import edit_json, edit_lines, make_trial

# Five words of at least 4.4 characters on average.
LONG = "64/1300"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One trial of four answers whose server repeats itself, after a baseline that did not."""
    directory = tmp_path_factory.mktemp("loops") / "trial"
    make_trial(
        directory,
        shape=LONG,
        requests=4,
        warmup=1,
        slo="ttft p95 < 100s",
        faults=FaultPlan((parse_fault("loop"),)),
        outputs_must_not_loop=True,
    )
    return directory


@pytest.fixture
def looping(made: Path, tmp_path: Path) -> Path:
    """A copy that the test may change."""
    return Path(shutil.copytree(made, tmp_path / "trial"))


def result_of(directory: Path) -> TrialResult:
    return decode((directory / layout.RESULT).read_bytes())


def failing(directory: Path) -> dict[Name, str]:
    return {check.name: check.detail for check in verify(directory).checks if check.status == "fail"}


def edit_row(directory: Path, change: Callable[[Any], None]) -> None:
    edit_lines(directory, layout.REQUESTS, lambda rows: change(next(r for r in rows if r["index"] == 3)))


def test_a_looping_server_makes_the_trial_invalid(looping: Path) -> None:
    """After a baseline without loops they break the contract; the rows say which answers, and verify agrees."""
    rows = TrialReader(looping).rows()
    assert all(row.loop is not None and row.loop.length_chars >= 4096 for row in rows)
    result = result_of(looping)
    assert result.gate(Gate.looping).status == "invalid"
    assert "4 of 4 judged answers (100.0%), above the limit of 5%" in result.gate(Gate.looping).detail
    report = verify(looping)
    assert (report.exit_code, report.verdict) == (0, "invalid")
    assert report.check(Name.loops).status == "pass" and report.check(Name.looping).says == "invalid"
    assert "4 of 4 long enough to judge end in a loop" in " ".join(
        text_of(trial_summary(result, looping), 200).split()
    )


def test_without_a_baseline_it_is_a_warning(tmp_path: Path) -> None:
    """A single trial of a looping model is valid, and warns."""
    trial = tmp_path / "trial"
    make_trial(
        trial,
        shape=LONG,
        requests=2,
        warmup=0,
        slo="ttft p95 < 100s",
        faults=FaultPlan((parse_fault("loop"),)),
    )
    result = result_of(trial)
    assert result.gate(Gate.looping).status == "pass" and result.verdict.status == "pass"
    assert "looping" in {warned.code for warned in result.warnings}
    assert verify(trial).exit_code == 0


def test_an_answer_without_loop_is_judged_and_not_warned_of(tmp_path: Path) -> None:
    """The same server without the fault: long enough to judge, and no loop."""
    trial = tmp_path / "trial"
    make_trial(trial, shape=LONG, requests=2, warmup=0, slo="ttft p95 < 100s")
    result = result_of(trial)
    assert result.gate(Gate.looping).detail == "none of 2 judged answers loops"
    assert "looping" not in {warned.code for warned in result.warnings}
    assert "in a loop" not in text_of(trial_summary(result, trial), 200)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(loop=None),
        lambda row: row.update(loop=None, longest_channel_chars=None),
        lambda row: row["loop"].update(period_chars=row["loop"]["period_chars"] + 1),
        lambda row: row["loop"].update(length_chars=row["loop"]["length_chars"] - 1),
        lambda row: row["loop"].update(channel="reasoning"),
    ],
)
def test_a_flag_that_was_changed_is_seen(looping: Path, change: Callable[[Any], None]) -> None:
    """A row that denies its loop, or tells of another, contradicts its raw reads."""
    edit_row(looping, change)
    found = failing(looping)
    assert set(found) == {Name.loops} and "request 3" in found[Name.loops]


def test_a_gate_that_denies_the_loops_is_seen(looping: Path) -> None:
    """A result that says that all is well, where answers loop, fails the gate's check."""

    def edit(result: Any) -> None:
        for gate in result["gates"]:
            if gate["gate"] == "looping":
                gate["status"] = "pass"

    edit_json(looping, layout.RESULT, edit)
    assert set(failing(looping)) == {Name.looping}


def test_evidence_from_before_is_read_and_not_called_false(trial: Path) -> None:
    """Rows and results of a version that did not look for loops read as null; verify looks itself, and says so."""

    def forget(rows: list[Any]) -> None:
        for row in rows:
            del row["loop"], row["longest_channel_chars"]

    def forget_result(result: Any) -> None:
        result["gates"] = [gate for gate in result["gates"] if gate["gate"] != "looping"]
        for name in ("loops", "loop_limit", "outputs_must_not_loop"):
            del result["facts"][name]
        del result["measurement"]["correctness"]["loops"], result["plan"]["outputs_must_not_loop"]

    edit_lines(trial, layout.REQUESTS, forget)
    edit_json(trial, layout.RESULT, forget_result)
    edit_json(trial, layout.HEADER, lambda header: header.update(tool_version="0.0.1"))
    assert {(row.loop, row.longest_channel_chars) for row in TrialReader(trial).rows()} == {(None, None)}
    assert result_of(trial).measurement.correctness.loops is None
    report = verify(trial)
    assert report.exit_code == 0 and {check.status for check in report.checks} == {"pass"}
    assert "version 0.0.1" in report.check(Name.loops).detail
