"""A study's own checks: what its trials share, and the rated result that follows from them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.contract.errors import Interrupted
from nameplate.evidence import layout
from nameplate.evidence.header import Keeping
from nameplate.measure.plate import decode_plate
from nameplate.prompts.body import user_text_of
from nameplate.prompts.store import PromptStore
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import conduct, prepare, prepare_again
from nameplate.verify import verify
from nameplate.verify.names import STUDY_INTEGRITY, STUDY_VERDICT, Name
from nameplate.verify.tests.making import (
    Unwatched,
    conditions,
    edit_json,
    edit_lines,
    edit_study,
    make_study,
    seal_study,
    wanted,
)


def only(directory: Path, *names: Name) -> str:
    """Verify, see that exactly these checks fail with exit code 4, and return the first one's words."""
    report = verify(directory)
    found = {check.name for check in report.all_checks() if check.status == "fail"}
    assert found == set(names), [c for c in report.all_checks() if c.status == "fail"]
    assert report.exit_code == 4
    return next(
        check.detail for check in report.all_checks() if check.name == names[0] and check.status == "fail"
    )


def first_trial(directory: Path) -> Path:
    return min((directory / layout.TRIALS).iterdir())


def test_a_real_study_passes_every_check(sealed_study: Path) -> None:
    """An untouched study passes its own checks and those of all its trials, with exit code 0."""
    report = verify(sealed_study)
    assert [check.name for check in report.checks] == [*STUDY_INTEGRITY, *STUDY_VERDICT]
    assert {check.status for check in report.all_checks()} == {"pass"}
    assert report.exit_code == 0
    rated = decode_plate((sealed_study / layout.PLATE).read_bytes()).shapes[0].rated
    assert report.verdict == f"64/8: confirmed, rated {rated}"
    assert len(report.trials) == len(list((sealed_study / layout.TRIALS).iterdir()))


def test_study_manifest_sees_a_record_that_changed(study: Path) -> None:
    """A study's file that was changed after sealing fails its manifest's check alone."""
    path = study / layout.CONTRACT
    path.write_bytes(path.read_bytes() + b" ")
    assert "contract.json" in only(study, Name.study_manifest)


def test_study_manifest_sees_a_trial_that_was_sealed_again(study: Path) -> None:
    """A trial whose own manifest was made again is not the one that the study sealed."""
    edit_json(first_trial(study), layout.HEADER, lambda header: header.update(command=["other"]))
    assert "manifest.json" in only(study, Name.study_manifest)


def test_study_manifest_sees_a_plate_of_another_study(study: Path) -> None:
    """A plate that names another manifest is seen."""
    path = study / layout.PLATE
    plate = msgspec.json.decode(path.read_bytes())
    plate["study_manifest_sha256"] = "0" * 64
    path.write_bytes(msgspec.json.encode(plate))
    assert "another manifest" in only(study, Name.study_manifest)


def test_study_manifest_refuses_to_look_outside(study: Path) -> None:
    """Names that lead out of the directory are refused, however they are written."""

    def edit(manifest: Any) -> None:
        digest = {"sha256": "0" * 64, "size_bytes": 1}
        for name in ("../../etc/passwd", "/etc/passwd", "a/../b", "trials/./x", "x\u0000", "~/x", ""):
            manifest["files"][name] = digest

    path = study / layout.MANIFEST
    manifest = msgspec.json.decode(path.read_bytes())
    edit(manifest)
    path.write_bytes(msgspec.json.encode(manifest))
    assert "no file of this directory" in only(study, Name.study_manifest)


def test_study_files_sees_a_torn_journal(study: Path) -> None:
    """A study's journal that ends inside a line is seen."""
    with (study / layout.JOURNAL).open("ab") as stream:
        stream.write(b'{"t_ns":1')
    seal_study(study)
    assert "journal.jsonl" in only(study, Name.study_files)


def test_study_trials_sees_another_verdict_in_the_record(study: Path) -> None:
    """A record whose reasons are not the trial's own is seen."""
    edit_study(study, layout.STUDY, lambda record: record["trials"][0].update(reasons=["it was fine"]))
    assert "it was fine" in only(study, Name.study_trials)


def test_study_trials_sees_a_decision_that_judges_otherwise(study: Path) -> None:
    """A decision that says another status than the trial has is seen."""

    def edit(record: Any) -> None:
        decision = next(d for d in record["decisions"] if d["step"] == "judge" and d["trial"])
        decision["what"] = f"{decision['trial']}: fail"

    edit_study(study, layout.STUDY, edit)
    assert "a decision says" in only(study, Name.study_trials)


def test_a_trial_that_was_left_out_is_seen(study: Path) -> None:
    """A sealed trial that the record keeps silent about is seen, in the levels too."""

    def edit(record: Any) -> None:
        record["trials"] = [t for t in record["trials"] if not t["key"].endswith(".t2")]

    edit_study(study, layout.STUDY, edit)
    said = only(study, Name.study_trials, Name.levels, Name.boundary, Name.plate)
    assert "does not list it" in said


def test_study_contract_sees_another_contract_in_a_trial(study: Path) -> None:
    """A trial under another nonce than the study's contract is seen."""
    edit_study(study, layout.CONTRACT, lambda contract: contract.update(seed=7))
    assert "seed" in only(study, Name.study_contract)


def test_study_prompts_sees_a_prompt_of_the_calibration(study: Path) -> None:
    """A measured prompt that the calibration had asked before is seen."""
    with PromptStore.open(first_trial(study) / layout.PROMPTS) as store:
        text = user_text_of(store.body(4))
    with (study / layout.JOURNAL).open("ab") as stream:
        entry = {"t_ns": 1, "what": "calibration", "detail": {"prompt": text}}
        stream.write(msgspec.json.encode(entry) + b"\n")
    seal_study(study)
    assert "the probe or the calibration" in only(study, Name.study_prompts)


def test_study_identity_sees_another_server(study: Path) -> None:
    """A trial that met another server than the first fails, however consistent it is with itself."""
    trial = sorted((study / layout.TRIALS).iterdir())[2]

    def facts(identity: Any) -> None:
        identity["facts"]["version"]["value"] = "9.9"

    def journal(entries: list[Any]) -> None:
        for entry in entries:
            if entry["what"] == "identity":
                facts(entry["detail"]["identity"])

    def result(document: Any) -> None:
        facts(document["identity_before"])
        facts(document["identity_after"])

    edit_json(trial, layout.HEADER, lambda header: facts(header["identity"]))
    edit_lines(trial, layout.JOURNAL, journal)
    edit_json(trial, layout.RESULT, result)
    seal_study(study)
    assert "version changed" in only(study, Name.study_identity)


def test_levels_sees_a_verdict_that_does_not_follow(study: Path) -> None:
    """A level that is said to pass with other statuses than its trials have is seen."""

    def edit(record: Any) -> None:
        level = record["shapes"][0]["levels"][0]
        level["trials"] = ["pass", "fail"]

    edit_study(study, layout.STUDY, edit)
    assert "recomputed pass (pass, pass)" in only(study, Name.levels)


@pytest.mark.parametrize(
    "change",
    [
        lambda shape: shape["boundary"].update(rated=shape["boundary"]["rated"] + 1),
        lambda shape: shape["boundary"].update(status="open_above"),
        lambda shape: shape.update(operate_at=shape["operate_at"] + 1),
        lambda shape: shape.update(spent_s=shape["spent_s"] / 2),
    ],
)
def test_boundary_sees_a_result_that_does_not_follow(study: Path, change: Callable[[Any], None]) -> None:
    """A rated number, status, operating number or time that the levels do not give is seen."""
    edit_study(study, layout.STUDY, lambda record: change(record["shapes"][0]))
    assert "64/8" in only(study, Name.boundary)


@pytest.mark.parametrize(
    "change",
    [
        lambda plate: plate["shapes"][0].update(rated=plate["shapes"][0]["rated"] + 1),
        lambda plate: plate["shapes"][0]["confirmations"][0]["ttft"].update(p95_ns=1.0),
        lambda plate: plate["shapes"][0].update(warnings=[]),
        lambda plate: plate["shapes"][0]["certified"][0]["whole"].update(over=0, n=1000),
        lambda plate: plate["shapes"][0]["certified"][0].update(further_requests=17),
        lambda plate: plate["identity"].update(missing=[]),
        lambda plate: plate.update(exit_code=1),
        lambda plate: plate.update(endorsed=True),
    ],
)
def test_plate_sees_every_value_that_does_not_follow(study: Path, change: Callable[[Any], None]) -> None:
    """Any value on the plate that the trials do not give is seen."""
    edit_study(study, layout.PLATE, change)
    assert "recomputed" in only(study, Name.plate)


def test_a_trial_that_fails_fails_the_study(study: Path) -> None:
    """A forged number in one trial's result is enough for exit code 4, at the trial's own check."""
    trial = first_trial(study)
    edit_json(trial, layout.RESULT, lambda r: r["measurement"]["latencies"]["whole"]["ttft"].update(p95=1.0))
    seal_study(study)
    assert "ttft.p95" in only(study, Name.published_numbers)


def test_an_unfinished_study_is_unverified(study: Path) -> None:
    """A study without manifest, plate and exit code has nothing that fails, and exit code 3."""
    edit_study(study, layout.STUDY, lambda record: record.update(exit_code=None, shapes=[]))
    (study / layout.PLATE).unlink()
    (study / layout.MANIFEST).unlink()
    report = verify(study)
    assert {check.status for check in report.all_checks()} == {"pass", "unverified"}
    assert report.exit_code == 3


def test_a_study_without_raw_reads_is_unverified(tmp_path: Path) -> None:
    """A study that kept no raw reads agrees with itself, and says that nothing was recomputed."""
    make_study(tmp_path / "study", keeping=Keeping(reads="none"))
    report = verify(tmp_path / "study")
    assert not [check for check in report.all_checks() if check.status == "fail"]
    assert report.check(Name.boundary).status == "unverified"
    assert report.exit_code == 3


def test_an_open_study_follows_its_rules(tmp_path: Path) -> None:
    """Statuses other than confirmed are recomputed too: a budget that ends, and a highest level that passes."""
    make_study(tmp_path / "budget", max_trials=4)
    make_study(tmp_path / "above", max_concurrency=2)
    for name, status in (("budget", "budget"), ("above", "open_above")):
        report = verify(tmp_path / name)
        assert {check.status for check in report.all_checks()} == {"pass"}, report.checks
        assert str(report.verdict).startswith(f"64/8: {status}")


def _made_single(study: Path) -> None:
    """Leave of a study what a single trial's directory holds: contract, journal, one trial, manifest."""
    for path in sorted((study / layout.TRIALS).iterdir())[1:]:
        shutil.rmtree(path)
    (study / layout.STUDY).unlink()
    (study / layout.PLATE).unlink()
    StudyArchive.open(study).seal()


def test_the_directory_of_a_single_trial_is_no_study_without_a_record(study: Path) -> None:
    """Where nobody decided anything, the checks of decisions do not stand in the list, and all others pass."""
    _made_single(study)
    report = verify(study)
    assert {check.name for check in report.checks} == set(STUDY_INTEGRITY) - {Name.study_trials}
    assert {check.status for check in report.all_checks()} == {"pass"}
    assert (report.exit_code, report.verdict) == (0, "pass")


def test_a_record_cannot_be_taken_away_from_under_a_plate(study: Path) -> None:
    """A plate without its record, or a manifest that names one, is no single trial."""
    (study / layout.STUDY).unlink()
    assert verify(study).exit_code == 4
    (study / layout.PLATE).unlink()
    assert verify(study).exit_code == 4


class _Interrupting(Unwatched):
    """Interrupt the study the third time that a trial does something."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._times = 0

    def step(self, plan: object, what: str) -> None:
        del plan
        self._times += what == self._what
        if what == self._what and self._times == 3:
            raise Interrupted("stopped")


@pytest.mark.parametrize(("what", "code"), [("writing prompts", 3), ("waiting for the server to drain", 0)])
def test_an_interrupted_study_verifies_before_and_after_it_is_resumed(
    tmp_path: Path, what: str, code: int
) -> None:
    """A trial that was cut before its load is unverified and one cut after it is sealed; resumed, neither counts."""
    archive = StudyArchive.create(tmp_path / "study")
    surrounding = conditions(watch=_Interrupting(what))
    conduct(prepare(surrounding, wanted(), archive))
    cut = verify(archive.directory)
    assert (str(cut.verdict), cut.exit_code) == ("64/8: interrupted, rated None", code)
    left = archive.reopen()
    conduct(prepare_again(structs.replace(surrounding, watch=Unwatched()), archive), left=left)
    resumed = verify(archive.directory)
    assert {check.status for check in resumed.all_checks()} == {"pass"}
    assert str(resumed.verdict).startswith("64/8: confirmed")
