"""Each check fails for what it is there for, and no other check does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nameplate.evidence import layout, manifest, timeline
from nameplate.evidence.frames import read_frames
from nameplate.evidence.records import Kind
from nameplate.prompts.body import user_text_of
from nameplate.prompts.store import PromptStore
from nameplate.verdict.gate import Gate
from nameplate.verify import verify
from nameplate.verify.check import Report
from nameplate.verify.names import GATES, INTEGRITY, VERDICT, Name
from nameplate.verify.published import GATES_OF
from nameplate.verify.tests.making import (
    edit_json,
    edit_lines,
    edit_stream,
    follow,
    record,
    records_of,
    reseal,
    write_frames,
    write_records,
)


def failing(report: Report) -> set[str]:
    return {check.name.value for check in report.checks if check.status == "fail"}


def only(directory: Path, name: Name) -> str:
    """Verify, see that exactly this check fails with exit code 4, and return its words."""
    report = verify(directory)
    assert failing(report) == {name.value}, [c for c in report.checks if c.status == "fail"]
    assert report.exit_code == 4
    return report.check(name).detail


def test_real_evidence_passes_every_check(sealed: Path) -> None:
    """An untouched trial passes every check of the closed list, with exit code 0."""
    report = verify(sealed)
    assert [check.name for check in report.checks] == [*INTEGRITY, *GATES, *VERDICT]
    assert {check.status for check in report.checks} == {"pass"}
    assert report.exit_code == 0
    assert report.verdict == "pass"


def test_counts_are_those_of_the_evidence(sealed: Path) -> None:
    """What is counted is shown: streams, tokens, events, bytes, unique hashes and prompts, records."""
    counts = verify(sealed).counts
    assert (counts.requests, counts.streams, counts.unique_prompts, counts.unique_outputs) == (8, 8, 8, 8)
    assert counts.output_tokens == counts.output_events == 8 * 8
    assert counts.records == len(records_of(sealed))
    assert counts.output_bytes > 8 * 8


def test_manifest_sees_a_byte_that_changed(trial: Path) -> None:
    """A file that was changed after sealing fails the manifest's check alone."""
    path = trial / layout.HEADER
    path.write_bytes(path.read_bytes().replace(b'"trial"', b'"other"'))
    assert "its content changed" in only(trial, Name.manifest)


def test_manifest_sees_a_file_that_it_does_not_list(trial: Path) -> None:
    """A worker's file that was slipped in beside the sealed ones is not read as if it belonged."""
    (trial / "server.jsonl.1").write_bytes(b"")
    assert "not in the manifest" in only(trial, Name.manifest)


def test_manifest_must_list_the_result(trial: Path) -> None:
    """A manifest that leaves out the result seals nothing."""
    names = [path.name for path in trial.iterdir() if path.name not in (layout.MANIFEST, layout.RESULT)]
    manifest.seal(trial, names)
    assert layout.RESULT in only(trial, Name.manifest)


def test_files_sees_a_torn_store(trial: Path) -> None:
    """A prompt store with bytes behind its last body fails the check of files alone."""
    with (trial / layout.PROMPTS).open("ab") as stream:
        stream.write(b"junk")
    reseal(trial)
    assert "prompts.zst" in only(trial, Name.files)


def test_record_count_sees_a_missing_row(trial: Path) -> None:
    """A request with raw reads and no row is missed."""
    edit_lines(trial, layout.REQUESTS, lambda rows: rows.pop())
    assert "no row" in only(trial, Name.record_count)


def test_record_count_sees_a_row_twice(trial: Path) -> None:
    """Two rows of one index are seen."""
    edit_lines(trial, layout.REQUESTS, lambda rows: rows.append(rows[3]))
    assert "two rows" in only(trial, Name.record_count)


def test_raw_reads_sees_a_request_outside_the_plan(trial: Path) -> None:
    """A record of a request that the plan does not have is seen."""
    records = records_of(trial)
    write_records(trial, [*records, record(Kind.SCHEDULED, 999, records[-1].t_ns)])
    assert "which the plan does not have" in only(trial, Name.raw_reads)


def test_raw_reads_sees_records_out_of_order(trial: Path) -> None:
    """A record that stands before the one it follows in time is seen."""
    records = records_of(trial)
    at = next(i for i, r in enumerate(records) if r.kind == Kind.BODY_SENT and r.request == 4)
    sent = next(r for r in records if r.kind == Kind.SENT and r.request == 4)
    records[at] = records[at]._replace(t_ns=sent.t_ns - 1)
    write_records(trial, records)
    follow(trial)
    assert "before the one that it follows" in only(trial, Name.raw_reads)


def test_raw_reads_sees_a_record_after_the_end(trial: Path) -> None:
    """A read after a request's end is seen, and changes nothing else."""
    records = records_of(trial)
    last = records[-1]
    write_records(trial, [*records, last])
    assert "after its end" in only(trial, Name.raw_reads)


def test_raw_reads_sees_bytes_that_were_taken_out(trial: Path) -> None:
    """Bytes that the header says are kept cannot be passed off as not kept."""
    records = [
        r._replace(kind=int(Kind.BARE), payload=b"") if r.request == 5 and r.kind == Kind.READ else r
        for r in records_of(trial)
    ]
    write_records(trial, records)
    assert "the header says that they are kept" in verify(trial).check(Name.raw_reads).detail


def test_plan_sees_a_result_of_another_plan(trial: Path) -> None:
    """A result whose plan is not the header's is seen."""
    edit_json(trial, layout.RESULT, lambda result: result["plan"].update(quiet_s=15.0))
    assert "quiet_s" in only(trial, Name.plan)


ROW_TAMPERS: list[tuple[Name, str, Callable[[Any], Any]]] = [
    (Name.plan, "phase", lambda phase: "steady" if phase == "opening" else "opening"),
    (Name.plan, "class", lambda _: "64/9"),
    (Name.times, "scheduled_ns", lambda t: t - 1),
    (Name.times, "sent_ns", lambda t: t + 1),
    (Name.times, "first_output_ns", lambda t: t - 1_000_000),
    (Name.times, "last_output_ns", lambda t: t - 1),
    (Name.times, "end_ns", lambda t: t + 1),
    (Name.times, "longest_gap_ns", lambda t: t - 1),
    (Name.outcomes, "outcome", lambda _: "reset"),
    (Name.outcomes, "http_status", lambda _: 201),
    (Name.outcomes, "error", lambda _: "nothing happened"),
    (Name.outcomes, "warnings", lambda _: ["buffered"]),
    (Name.usage_and_finish, "output_tokens", lambda n: n + 1),
    (Name.usage_and_finish, "prompt_tokens", lambda n: n - 1),
    (Name.usage_and_finish, "cached_tokens", lambda _: 0),
    (Name.usage_and_finish, "finish_reason", lambda _: "stop"),
    (Name.outputs, "output_sha256", lambda _: "0" * 64),
    (Name.outputs, "output_events", lambda n: n - 1),
    (Name.outputs, "output_bytes", lambda n: n + 1),
    (Name.loops, "longest_channel_chars", lambda n: n + 1),
    (Name.loops, "longest_channel_chars", lambda _: None),
    (Name.loops, "loop", lambda _: {"channel": "content", "period_chars": 24, "length_chars": 5000}),
    (Name.prompts_as_sent, "prompt_sha256", lambda _: "0" * 64),
    (Name.prompts_as_sent, "prompt_head_sha256", lambda _: "0" * 64),
    (Name.prompts_as_sent, "asked_output_tokens", lambda n: n + 1),
]


@pytest.mark.parametrize(("name", "field", "change"), ROW_TAMPERS)
def test_every_field_of_a_row_is_held_against_raw_reads(
    trial: Path, name: Name, field: str, change: Callable[[Any], Any]
) -> None:
    """A row that says anything else than its raw reads fails the check that owns the field, and no other."""

    def edit(rows: list[Any]) -> None:
        row = next(row for row in rows if row["index"] == 3)
        row[field] = change(row.get(field))

    edit_lines(trial, layout.REQUESTS, edit)
    assert "request 3" in only(trial, name)


def test_timelines_sees_a_shifted_event(trial: Path) -> None:
    """One output event's kept time, a nanosecond off, is seen."""
    entries = [one for frame in read_frames(trial / layout.EVENTS) for one in timeline.unpack(frame)]
    entries[2].times_ns[1] += 1
    write_frames(trial, layout.EVENTS, [b"".join(map(timeline.pack, entries))])
    assert f"request {entries[2].index}" in only(trial, Name.timelines)


def test_timelines_sees_one_that_is_missing(trial: Path) -> None:
    """A sealed trial without one request's timeline is seen."""
    entries = [one for frame in read_frames(trial / layout.EVENTS) for one in timeline.unpack(frame)]
    write_frames(trial, layout.EVENTS, [b"".join(map(timeline.pack, entries[1:]))])
    assert "no timeline" in only(trial, Name.timelines)


def test_prompts_as_sent_sees_a_contract_that_was_not_sent(trial: Path) -> None:
    """A contract that claims another sampling than the bodies ask for is seen."""
    edit_json(trial, layout.HEADER, lambda header: header["contract"]["sampling"].update(temperature=1.0))
    assert "temperature" in only(trial, Name.prompts_as_sent)


def test_prompts_disjoint_sees_a_prompt_of_the_probe(trial: Path) -> None:
    """A measured prompt that the probe had asked before is seen."""
    with PromptStore.open(trial / layout.PROMPTS) as store:
        text = user_text_of(store.body(4))
    entry = {"t_ns": 1, "what": "probe", "detail": {"prompt": text}}
    edit_lines(trial, layout.JOURNAL, lambda entries: entries.insert(0, entry))
    assert "request 4" in only(trial, Name.prompts_disjoint)


def test_totals_sees_a_count_that_does_not_add_up(trial: Path) -> None:
    """A published total that is not that of the rows is seen."""
    edit_json(trial, layout.RESULT, lambda r: r["measurement"]["correctness"].update(ok=5))
    assert "correctness.ok" in only(trial, Name.totals)


def test_concurrency_sees_a_number_that_was_not_in_flight(trial: Path) -> None:
    """A published concurrency that the raw reads do not show is seen."""
    edit_json(trial, layout.RESULT, lambda r: r["measurement"]["concurrency"].update(max=3))
    assert "concurrency.max" in only(trial, Name.concurrency)


def test_identity_sees_another_server(trial: Path) -> None:
    """A result that names another server than header and journal is seen."""

    def edit(result: Any) -> None:
        for moment in ("identity_before", "identity_after"):
            result[moment]["facts"]["version"]["value"] = "9.9"

    edit_json(trial, layout.RESULT, edit)
    assert "identity_" in only(trial, Name.identity)


@pytest.mark.parametrize(
    "path",
    [
        ("measurement", "latencies", "whole", "ttft", "p95"),
        ("measurement", "latencies", "steady", "itl", "p50"),
        ("measurement", "rates", "tokens_whole", "per_s"),
        ("measurement", "lateness", "since_empty", "p99_ns"),
        ("measurement", "whole_run", "end_ns"),
        ("facts", "prompt_asked"),
        ("ended_ns",),
    ],
)
def test_published_numbers_sees_every_number(trial: Path, path: tuple[str, ...]) -> None:
    """Any published number that is off by a millionth is seen."""

    def edit(result: Any) -> None:
        for key in path[:-1]:
            result = result[key]
        value = result[path[-1]]
        result[path[-1]] = value * 1.000001 if isinstance(value, float) and value else value + 1

    edit_json(trial, layout.RESULT, edit)
    assert path[-1] in only(trial, Name.published_numbers)


def test_published_numbers_sees_one_that_nobody_computes(trial: Path) -> None:
    """A number that was added to the result is seen."""
    edit_json(trial, layout.RESULT, lambda r: r["measurement"].update(score=100))
    assert "measurement.score" in only(trial, Name.published_numbers)


@pytest.mark.parametrize("name", list(GATES_OF))
def test_each_gate_is_held_against_what_it_recomputes_to(trial: Path, name: Name) -> None:
    """A recorded gate that does not follow from the evidence fails the check of that gate, and no other."""

    def edit(result: Any) -> None:
        gate = next(gate for gate in result["gates"] if gate["gate"] == GATES_OF[name][0].value)
        gate["status"] = "invalid"

    edit_json(trial, layout.RESULT, edit)
    assert "recorded invalid" in only(trial, name)


def test_every_gate_belongs_to_one_check() -> None:
    """No gate is left out, and none is checked twice."""
    owned = [gate for gates in GATES_OF.values() for gate in gates]
    assert sorted(owned) == sorted(Gate)


def test_trial_verdict_sees_a_verdict_that_does_not_follow(trial: Path) -> None:
    """A recorded verdict against gates and SLOs is seen."""
    edit_json(trial, layout.RESULT, lambda r: r["verdict"].update(status="fail"))
    assert "verdict.status" in only(trial, Name.trial_verdict)


def _forge(directory: Path, gate: str) -> None:
    """Let the recorded gate say that all is well."""

    def edit(result: Any) -> None:
        for held in result["gates"]:
            if held["gate"] == gate:
                held["status"] = "pass"

    edit_json(directory, layout.RESULT, edit)


@pytest.mark.parametrize(
    ("gate", "name", "old", "new"),
    [
        ("cached_tokens", Name.cached_tokens, b'"cached_tokens":16', b'"cached_tokens":64'),
        ("output_length", Name.output_length, b'"completion_tokens":8', b'"completion_tokens":9'),
        ("finish_reason", Name.finish_reason, b'"length"', b'"stop"  '),
    ],
)
def test_a_gate_that_the_stream_breaks_cannot_be_recorded_as_held(
    trial: Path, gate: str, name: Name, old: bytes, new: bytes
) -> None:
    """Streams that break the contract, with a result that says otherwise at one gate only, fail that gate's check."""
    edit_stream(trial, 4, old, new)
    honest = verify(trial)
    assert honest.exit_code == 0 and honest.verdict == "invalid"
    _forge(trial, gate)
    assert "recomputed invalid" in only(trial, name)


def _silence(directory: Path) -> None:
    """Let one stream say nothing, framing and usage as before."""
    records = []
    for one in records_of(directory):
        if one.request == 4 and one.kind == Kind.READ:
            blank = re.sub(
                rb'"content":"([^"]+)"',
                lambda m: b'"content":""' + b" " * len(m[1]),
                one.payload,
            )
            one = one._replace(payload=blank)
        records.append(one)
    write_records(directory, records)
    follow(directory)


def test_non_empty_output_admits_what_the_trial_says_itself(trial: Path) -> None:
    """An ok stream without output does not hold; a trial that was judged invalid for it is no forgery."""
    _silence(trial)
    report = verify(trial)
    assert report.check(Name.non_empty_output).status == "invalid"
    assert (report.exit_code, report.verdict) == (0, "invalid")


def test_non_empty_output_sees_a_silent_stream_passed_off_as_an_answer(trial: Path) -> None:
    """A result that says that no answer is empty, where one is, fails."""
    _silence(trial)
    _forge(trial, "empty_output")
    assert "empty_output" in only(trial, Name.non_empty_output)


def _of_another_version(result: Any) -> None:
    """Say everything in other words, and leave out what only a later version tells."""
    result["verdict"]["reasons"] = ["it was fast"]
    for gate in result["gates"]:
        gate["detail"] = "held"
    result["measurement"]["rates"]["tokens_whole"]["of"] = "tokens"
    del result["measurement"]["correctness"]["silent_tails"]


def test_evidence_of_another_version_may_say_it_in_other_words(trial: Path) -> None:
    """Words and later additions are not held against an earlier version; numbers and statuses are."""
    edit_json(trial, layout.RESULT, _of_another_version)
    assert verify(trial).exit_code == 4
    edit_json(trial, layout.HEADER, lambda header: header.update(tool_version="0.0.1"))
    report = verify(trial)
    assert {check.status for check in report.checks} == {"pass"}
    assert "words are those of version 0.0.1" in report.check(Name.trial_verdict).detail
    edit_json(trial, layout.RESULT, lambda r: r["gates"][0].update(status="fail"))
    assert only(trial, Name.status_ok)
    edit_json(trial, layout.RESULT, lambda r: r["verdict"].update(status="fail"))
    assert failing(verify(trial)) == {"status_ok", "trial_verdict"}
