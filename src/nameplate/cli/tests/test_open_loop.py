"""`nameplate trial --rate`: what is refused before the server is asked anything, and open loops in simulated time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nameplate.cli.tests.conftest import Run
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.evidence.records import Kind
from nameplate.measure.result import TrialResult, decode
from nameplate.schedule.stage import stages_of
from nameplate.verdict.gate import Gate
from nameplate.verify import verify
from nameplate.verify.tests.making import edit_lines, follow, records_of, write_records

TRIAL = ("trial", "sim:demo", "--shape", "64/8")


def trial_of(out: Path) -> Path:
    (found,) = (out / "trials").iterdir()
    return found


def result_of(out: Path) -> TrialResult:
    return decode((trial_of(out) / layout.RESULT).read_bytes())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Either --concurrency or --rate"),
        (("-c", "4", "--rate", "5"), "Either --concurrency or --rate"),
        (("--rate", "0"), "no load"),
        (("--rate", "-1"), "no load"),
        (("--rate", "nan"), "no load"),
        (("--rate", "inf"), "not a rate that can be offered"),
        (("--rate", "1e9"), "not a rate that can be offered"),
        (("--rate", "1e-12"), "not a rate that can be offered"),
        (("--rate", "five"), "five"),
        (("--rate", "5", "--arrivals", "nonsense"), "poisson, constant, or gamma:SHAPE"),
        (("--rate", "5", "--arrivals", "poisson:2"), "poisson, constant, or gamma:SHAPE"),
        (("--rate", "5", "--arrivals", "gamma"), "poisson, constant, or gamma:SHAPE"),
        (("--rate", "5", "--arrivals", "gamma:0"), "poisson, constant, or gamma:SHAPE"),
        (("--rate", "5", "--arrivals", "gamma:x"), "poisson, constant, or gamma:SHAPE"),
        (("--rate", "5", "--arrivals", "gamma:nan"), "poisson, constant, or gamma:SHAPE"),
        (("--rate", "5", "--arrivals", "gamma:inf"), "not a burstiness"),
        (("--rate", "5", "--arrivals", "gamma:1e-9"), "not a burstiness"),
        (("--rate", "5", "--start", "handover"), "closed loop"),
        (("--rate", "5", "--start", "staggered", "--stagger", "1s"), "closed loop"),
        (("--rate", "5", "--stagger", "1s"), "closed loop"),
        (("--rate", "5", "--outstanding-limit", "0"), "--outstanding-limit"),
        (("--rate", "5", "--requests", "0"), "--requests"),
        (("--rate", "5", "--workers", "3", "--outstanding-limit", "2"), "cannot share"),
        (("-c", "4", "--arrivals", "constant"), "belongs to an open loop"),
        (("-c", "4", "--outstanding-limit", "9"), "belongs to an open loop"),
    ],
)
def test_what_cannot_be_is_refused_in_words(run: Run, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, what is wrong, and nothing asked of the server."""
    code, out, err = run(*TRIAL, *arguments)
    assert code == 2 and words in err + out
    assert "probing" not in err and not Path("runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--rate", "0.5", "--requests", "3"),
        ("--rate", "5", "--requests", "1"),
        ("--rate", "5", "--requests", "2", "--warmup", "0"),
        ("--rate", "20", "--requests", "30", "--arrivals", "constant"),
        ("--rate", "20", "--requests", "30", "--arrivals", "gamma:0.05"),
    ],
)
def test_an_open_loop_passes_and_verifies(run: Run, arguments: tuple[str, ...]) -> None:
    """Whatever its rate and kind, each request is due at the plan's own time and the evidence verifies."""
    code, out, _err = run(*TRIAL, *arguments, "--slo", "ttft p95 < 1s", "--out", "x")
    assert code == 0, out
    assert "Arrivals" in out and "outstanding end the load" in out and "judged from schedule" in out
    result, rows = result_of(Path("x")), TrialReader(trial_of(Path("x"))).rows()
    stage = stages_of(result.plan)[-1]
    measured = [row for row in rows if row.measured]
    began = {
        row.scheduled_ns - (stage.schedule.due_ns(row.index - stage.first_index) or 0) for row in measured
    }
    assert len(began) == 1
    assert sorted(row.index - stage.first_index for row in measured) == list(range(result.plan.requests))
    assert verify(trial_of(Path("x"))).exit_code == 0


def test_the_outstanding_limit_fails_the_trial_by_name(run: Run) -> None:
    """A server that falls behind ends the load: the trial fails, nothing was thinned before, and nothing sent after."""
    code, out, _err = run(
        *TRIAL,
        "--shape",
        "64/400",
        "--rate",
        "2000",
        "--requests",
        "500",
        "--outstanding-limit",
        "40",
        "--out",
        "x",
    )
    assert code == 1, out
    result = result_of(Path("x"))
    assert result.verdict.status == "fail"
    assert result.gate(Gate.outstanding).status == "fail"
    assert (
        result.gate(Gate.arrivals).status != "invalid" and result.gate(Gate.concurrency).status != "invalid"
    )
    assert "ended by the limit of outstanding requests" in " ".join(out.split())
    found = result.measurement.delivered
    assert found is not None and found.overrun and 40 <= found.sent < 500 and found.misplaced == 0
    # What was unanswered then is cancelled, as a live load does it.
    assert result.measurement.correctness.cancelled > 0
    assert result.measurement.concurrency.max == 40
    assert verify(trial_of(Path("x"))).exit_code == 0


def test_one_changed_due_time_is_found(run: Run) -> None:
    """A due time that is changed by a nanosecond and sealed again does not verify."""
    run(*TRIAL, "--rate", "20", "--requests", "20", "--slo", "ttft p95 < 1s", "--out", "x")
    directory = trial_of(Path("x"))
    assert verify(directory).exit_code == 0

    def change(rows: list[dict[str, Any]]) -> None:
        rows[-1]["scheduled_ns"] -= 1

    edit_lines(directory, layout.REQUESTS, change)
    report = verify(directory)
    assert report.exit_code == 4
    assert [
        check.detail for check in report.checks if check.status == "fail" and "scheduled_ns" in check.detail
    ]


def test_a_due_time_that_is_not_the_plan_s_is_found_even_in_the_raw_records(run: Run) -> None:
    """Where records, rows and result were all made to agree, the plan itself still says when each request was due."""
    run(*TRIAL, "--rate", "20", "--requests", "20", "--slo", "ttft p95 < 1s", "--out", "x")
    directory = trial_of(Path("x"))
    last = max(record.request for record in records_of(directory))
    moved = [
        record._replace(t_ns=record.t_ns - 1)
        if record.kind == Kind.SCHEDULED and record.request == last
        else record
        for record in records_of(directory)
    ]
    write_records(directory, moved)
    follow(directory)
    result = result_of(Path("x"))
    assert result.gate(Gate.arrivals).status == "invalid"
    assert "1 of 20 requests were not due" in result.gate(Gate.arrivals).detail


def test_the_result_says_how_arrivals_were_delivered(run: Run) -> None:
    """`--json` has the plan of arrivals and what was delivered of it, with its tests."""
    code, out, _err = run(*TRIAL, "--rate", "50", "--requests", "200", "--json", "--out", "x")
    assert code == 0
    said = msgspec.json.decode(out)
    assert said["plan"]["arrivals"]["rate"] == 50
    delivered = said["measurement"]["delivered"]
    assert (delivered["sent"], delivered["misplaced"], delivered["overrun"]) == (200, 0, False)
    assert {test["test"]: test["held"] for test in delivered["tests"]["tests"]} == {
        "count": True, "gaps": True, "dispersion": True,
    }  # fmt: skip
