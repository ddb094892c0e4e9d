"""What was not kept is unverified, what is unfinished says so, and what honestly failed verifies."""

from __future__ import annotations

from pathlib import Path

import pytest

from nameplate.evidence import layout
from nameplate.evidence.header import Keeping
from nameplate.evidence.records import Kind
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.verify import verify
from nameplate.verify.check import Report
from nameplate.verify.names import Name
from nameplate.verify.tests.making import edit_json, edit_lines, make_trial, record, records_of, write_records


def statuses(report: Report) -> dict[str, set[Name]]:
    found: dict[str, set[Name]] = {}
    for check in report.checks:
        found.setdefault(check.status, set()).add(check.name)
    return found


def test_without_raw_reads_nothing_of_the_streams_is_verified(tmp_path: Path) -> None:
    """A trial that kept no raw reads agrees with its rows, and that is all that is said."""
    make_trial(tmp_path / "t", keeping=Keeping(reads="none"))
    report = verify(tmp_path / "t")
    found = statuses(report)
    assert "fail" not in found
    assert {Name.times, Name.outputs, Name.published_numbers, Name.trial_verdict} <= found["unverified"]
    assert {Name.manifest, Name.record_count, Name.plan, Name.prompts_as_sent} <= found["pass"]
    assert report.exit_code == 3
    assert report.verdict == "pass"


def test_a_sample_is_checked_and_the_rest_is_unverified(tmp_path: Path) -> None:
    """With one request in two kept, a lie about a kept one is seen, and the others are unverified."""
    make_trial(tmp_path / "t", keeping=Keeping(reads="sample", sample_every=2))
    report = verify(tmp_path / "t")
    assert report.exit_code == 3 and "4 of 8" in report.check(Name.times).detail

    def edit(rows: list[dict[str, int]]) -> None:
        for row in rows:
            row["output_tokens"] += row["index"] == 4

    edit_lines(tmp_path / "t", layout.REQUESTS, edit)
    assert verify(tmp_path / "t").check(Name.usage_and_finish).status == "fail"


def test_numbers_without_raw_reads_are_held_against_the_rows(tmp_path: Path) -> None:
    """A published number that is not that of the rows fails even where no raw reads were kept."""
    make_trial(tmp_path / "t", keeping=Keeping(reads="none"))
    edit_json(
        tmp_path / "t",
        layout.RESULT,
        lambda r: r["measurement"]["latencies"]["whole"]["ttft"].update(p50=1.0),
    )
    assert verify(tmp_path / "t").check(Name.published_numbers).status == "fail"


def test_without_prompts_coldness_is_unverified(tmp_path: Path) -> None:
    """A trial that dropped its prompts cannot show that they are disjoint."""
    make_trial(tmp_path / "t", keeping=Keeping(prompts=False))
    report = verify(tmp_path / "t")
    assert statuses(report)["unverified"] == {Name.prompts_as_sent, Name.prompts_disjoint}
    assert report.exit_code == 3


def test_a_trial_without_manifest_is_unfinished(trial: Path) -> None:
    """Without its manifest nothing is sealed; what is there still agrees."""
    (trial / layout.MANIFEST).unlink()
    report = verify(trial)
    assert statuses(report)["unverified"] == {Name.manifest}
    assert report.exit_code == 3


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a_killed_trial_is_read_as_far_as_it_goes(trial: Path, kept: float) -> None:
    """Files that end anywhere, without result and manifest, are unverified and never a contradiction."""
    for name in (layout.MANIFEST, layout.RESULT):
        (trial / name).unlink()
    reads = records_of(trial)
    cut = reads[: int(len(reads) * kept)]
    write_records(trial, cut)
    whole = (trial / layout.READS).read_bytes()
    (trial / layout.READS).write_bytes(whole + whole[: len(whole) // 2])
    ended = {r.request for r in cut} - {r.request for r in reads[len(cut) :]}
    lines = (trial / layout.REQUESTS).read_bytes().splitlines(keepends=True)
    rows = [line for line in lines if any(b'"index":%d,' % index in line for index in ended)]
    (trial / layout.REQUESTS).write_bytes(b"".join(rows) + b'{"index":')
    (trial / layout.EVENTS).write_bytes(b"")
    (trial / layout.MANIFEST).unlink()
    report = verify(trial)
    assert "fail" not in statuses(report), report.checks
    assert report.exit_code == 3
    assert "dropped, as the trial is unfinished" in report.check(Name.files).detail


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        ("429@every 3", "fail"),
        ("503", "fail"),
        ("error_event:3@every 4", "fail"),
        ("cut:3@every 4", "fail"),
        ("wrong_usage", "invalid"),
        ("no_usage", "pass"),
        ("early_stop:3", "invalid"),
        ("html@every 5", "fail"),
        ("no_cached", "pass"),
    ],
)
def test_an_honest_verdict_verifies_whatever_it_is(tmp_path: Path, fault: str, verdict: str) -> None:
    """A server that misbehaves gives a trial that fails or is invalid, and evidence that is whole."""
    make_trial(tmp_path / "t", faults=FaultPlan((parse_fault(fault),)), warmup=0)
    report = verify(tmp_path / "t")
    assert "fail" not in statuses(report), [c for c in report.checks if c.status == "fail"]
    assert (report.exit_code, report.verdict) == (0, verdict)


@pytest.mark.parametrize("start", ["burst", "staggered", "handover"])
def test_every_start_policy_verifies(tmp_path: Path, start: str) -> None:
    """Phases and concurrency follow from the plan under every start policy."""
    make_trial(tmp_path / "t", start=start, stagger_ns=1_000_000, requests=12, concurrency=3)
    report = verify(tmp_path / "t")
    assert "fail" not in statuses(report), [c for c in report.checks if c.status == "fail"]
    assert report.exit_code == 0


def test_a_request_that_stood_open_when_the_client_died_has_no_row(trial: Path) -> None:
    """A sealed trial may lack the rows of requests that never ended, where its result counts them as unfinished."""
    records = records_of(trial)
    end = records[-1].t_ns
    reads = [r for r in records if r.request != 7 or r.kind != Kind.READ]
    write_records(trial, [*reads, record(Kind.SENT, 999, end)])
    assert verify(trial).check(Name.times).status == "fail"


def test_a_history_too_long_to_replay_is_unverified(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Honest reads that compress beyond the bound (one byte repeated for minutes) are not called false."""
    monkeypatch.setattr("nameplate.verify.history.EXPANSION_FLOOR_BYTES", 0)
    monkeypatch.setattr("nameplate.verify.history.EXPANSION_LIMIT", 1)
    report = verify(trial)
    assert report.exit_code == 3
    assert not [check for check in report.checks if check.status == "fail"]
    (reads,) = [check for check in report.checks if check.name == Name.raw_reads]
    assert reads.status == "unverified" and "not replayed further" in reads.detail
