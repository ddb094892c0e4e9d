"""A soak that is not what it claims to be is found out, wherever it was changed; one that was killed is no lie."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nameplate.cli.tests.soaks import go_on, kill, soak
from nameplate.evidence import layout, manifest
from nameplate.evidence.records import Kind
from nameplate.verify import verify
from nameplate.verify.check import Report
from nameplate.verify.names import Name
from nameplate.verify.tests.making import edit_json, edit_lines, records_of, reseal, write_records


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a soak of two segments: killed half way, and gone on with."""
    directory = tmp_path_factory.mktemp("soak") / "x"
    assert soak(directory, "--duration", "40s", "--slo", "ttft p95 < 1s") == 0
    kill(directory, 0.5)
    assert go_on(directory) == 0
    return directory


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "x")
    return tmp_path / "x"


def again(directory: Path) -> Report:
    """Seal the soak itself again, and verify it."""
    sealed = manifest.read(directory)
    assert sealed is not None
    manifest.seal(directory, [name for name in sealed.files if (directory / name).exists()])
    return verify(directory)


def failed(report: Report) -> set[Name]:
    return {check.name for check in report.all_checks() if check.status == "fail"}


def test_what_a_kill_cut_short_is_stated_and_no_error(made: Path) -> None:
    """Both segments and the soak verify; the first one says what it lacks."""
    report = verify(made)
    assert report.exit_code == 0, [check for check in report.all_checks() if check.status == "fail"]
    first, second = report.trials
    said = {check.name: check for check in first.checks if check.status == "invalid"}
    assert Name.files in said and "cut off" in said[Name.files].detail
    assert all(check.status == "pass" for check in second.checks)
    assert report.check(Name.segments).detail == "2 segments in order, 1 gaps between them"


def in_result(change: Callable[[Any], None]) -> Callable[[Path], None]:
    return lambda soak: edit_json(soak / layout.TRIALS / "soak.s2", layout.RESULT, change)


def in_record(change: Callable[[Any], None]) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        path = directory / layout.SOAK
        document = json.loads(path.read_bytes())
        change(document)
        path.write_text(json.dumps(document))

    return edit


def in_header(change: Callable[[Any], None]) -> Callable[[Path], None]:
    return lambda soak: edit_json(soak / layout.TRIALS / "soak.s2", layout.HEADER, change)


def in_rows(change: Callable[[list[Any]], None]) -> Callable[[Path], None]:
    return lambda soak: edit_lines(soak / layout.TRIALS / "soak.s2", layout.REQUESTS, change)


def in_journal(change: Callable[[list[Any]], None]) -> Callable[[Path], None]:
    return lambda soak: edit_lines(soak / layout.TRIALS / "soak.s2", layout.JOURNAL, change)


def _set(*path: str | int, value: object) -> Callable[[Any], None]:
    """Return a change that sets one value of a document."""

    def change(document: Any) -> None:
        *way, last = path
        for step in way:
            document = document[step]
        assert document[last] != value
        document[last] = value

    return change


def _earlier(entries: list[Any]) -> None:
    for entry in entries:
        if entry["what"] == "submit_ended":
            entry["t_ns"] -= 10**9


def _overran(entries: list[Any]) -> None:
    for entry in entries:
        if entry["what"] == "submit_ended":
            entry["detail"]["reason"] = "outstanding_limit"


def _twice(rows: list[Any]) -> None:
    rows.append(rows[0])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (in_result(_set("counts", "ok", value=7)), Name.totals),
        (in_result(_set("windows", 1, "ttft", "p95", value=1.0)), Name.published_numbers),
        (in_result(_set("parts", 0, "kv_tokens", value=7)), Name.published_numbers),
        (in_rows(_set(0, "output_tokens", value=9)), Name.usage_and_finish),
        (in_rows(_set(0, "first_output_ns", value=9)), Name.times),
        (in_rows(_set(0, "outcome", value="reset")), Name.outcomes),
        (in_rows(_set(1, "prompt_sha256", value="0" * 64)), Name.prompts_as_sent),
        (in_rows(_twice), Name.record_count),
        (in_rows(lambda rows: rows.pop()), Name.record_count),
        (in_journal(_earlier), Name.published_numbers),
        (in_journal(_overran), Name.published_numbers),
        # Each segment's budget of raw reads would be that of the whole soak.
        (in_header(_set("plan", "soak", "raw_budget_bytes", value=8 << 30)), Name.segments),
        (in_record(_set("result", "verdict", "status", value="fail")), Name.soak_verdict),
        (in_record(_set("result", "drift", "series", 0, "level", value=1.0)), Name.drift),
        (in_record(_set("result", "counts", "failed", value=1)), Name.soak_record),
        (in_record(_set("result", "gaps", value=[])), Name.soak_record),
        (in_record(_set("exit_code", value=1)), Name.soak_verdict),
        (in_record(_set("left_ns", value=9)), Name.soak_record),
        (in_record(_set("segments", 0, "state", value="ended")), Name.segments),
        (in_record(_set("segments", 1, "covered_ns", value=9)), Name.segments),
        (in_record(_set("segments", 1, "key", value="soak.s9")), Name.segments),
        (in_record(_set("contract", "soak", "concurrency", value=9)), Name.study_contract),
    ],
)
def test_a_forgery_is_found_where_it_is(copy: Path, change: Callable[[Path], None], name: Name) -> None:
    """A value is changed and everything sealed again: the check whose business it is fails."""
    change(copy)
    report = again(copy)
    assert name in failed(report) and report.exit_code == 4


def test_raw_reads_that_were_taken_away_are_missed(copy: Path) -> None:
    """A request of a segment that ended in order has its reads."""
    segment = copy / layout.TRIALS / "soak.s2"
    write_records(segment, [record for record in records_of(segment) if record.request != 5])
    assert Name.record_count in failed(again(copy))


def test_bytes_that_the_header_says_are_kept_are_missed(copy: Path) -> None:
    """Bare records stand only where the keeping, or the budget in the journal, allows them."""
    segment = copy / layout.TRIALS / "soak.s2"
    bare = [
        record
        if record.kind != Kind.READ or record.request != 5
        else record._replace(kind=Kind.BARE, payload=b"")
        for record in records_of(segment)
    ]
    write_records(segment, bare)
    report = again(copy)
    assert Name.raw_reads in failed(report)


@pytest.mark.parametrize(
    "name", [layout.REQUESTS, layout.EVENTS, layout.SERVER, layout.PROMPTS, layout.JOURNAL]
)
def test_a_tail_that_was_cut_is_found(copy: Path, name: str) -> None:
    """Of a segment that ended in order nothing may be torn, even where it was sealed again."""
    segment = copy / layout.TRIALS / "soak.s2"
    path = segment / name
    path.write_bytes(path.read_bytes()[:-9])
    reseal(segment)
    assert again(copy).exit_code == 4


def test_a_segment_that_is_gone_is_missed(copy: Path) -> None:
    """The record lists it, and the next one was planned for less."""
    shutil.rmtree(copy / layout.TRIALS / "soak.s1")
    assert {Name.segments, Name.soak_record} & failed(again(copy))


@pytest.mark.parametrize(
    "name", [layout.CONTRACT, layout.SOAK, "trials/soak.s1/trial.json", "trials/soak.s2/result.json"]
)
@pytest.mark.parametrize("data", [b"", b'{"schema": 7}', b"\xff\xfe"])
def test_hostile_documents_end_in_words(copy: Path, name: str, data: bytes) -> None:
    """No traceback, and no exit code 0."""
    (copy / name).write_bytes(data)
    assert again(copy).exit_code in (3, 4)


def test_a_changed_file_is_found_by_its_digest(copy: Path) -> None:
    """Without sealing again any change is one of the manifest's."""
    with (copy / layout.TRIALS / "soak.s2" / layout.REQUESTS).open("ab") as file:
        file.write(b"\n")
    report = verify(copy)
    assert Name.manifest in failed(report) and report.exit_code == 4
