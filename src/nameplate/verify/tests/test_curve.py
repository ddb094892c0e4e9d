"""What verification sees of a curve study: every number, status, word and exit code that does not follow."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from nameplate.contract.contract import Contract
from nameplate.contract.curve import CurvePlan
from nameplate.contract.rules import Rules
from nameplate.contract.shape import Shape
from nameplate.contract.target import Target
from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.curve_builder import NOT_RUN
from nameplate.sim.app import App
from nameplate.sim.faults import FaultPlan, parse_fault
from nameplate.sim.presets import DEMO
from nameplate.studies.archive import StudyArchive
from nameplate.studies.curve_conduct import conduct_curve, prepare_curve
from nameplate.trial.ground import VirtualGround
from nameplate.verify import verify
from nameplate.verify.names import CURVE_VERDICT, Name
from nameplate.verify.study import OF_SINGLE_TRIALS
from nameplate.verify.tests.making import conditions, edit_json

RULES = Rules(requests=8, warmup=1, quiet_s=0.0)
LOADS = CurvePlan(concurrencies=(1, 2, 3))
CLIMB = CurvePlan(inputs=(256, 512), output_tokens=8)
SERVER = Target("http", "sim", 80)


def conduct(directory: Path, plan: CurvePlan, *faults: str, rules: Rules = RULES) -> None:
    shapes = () if plan.kind == "input" else (Shape(64, 8),)
    contract = Contract(SERVER, shapes, (), "nonce", rules=rules, curve=plan)
    surroundings = conditions()
    app = App(DEMO, faults=FaultPlan(tuple(parse_fault(text) for text in faults)))
    surroundings = structs.replace(surroundings, ground=VirtualGround(app))
    conduct_curve(prepare_curve(surroundings, contract, StudyArchive.create(directory)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One curve over clients, one climb whose server is lost, made once."""
    root = tmp_path_factory.mktemp("curves")
    conduct(root / "loads", LOADS)
    conduct(root / "lost", CLIMB, "die:4@12", rules=Rules(requests=3, warmup=1, quiet_s=0.0))
    return root


@pytest.fixture
def loads(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "loads", tmp_path / "loads"))


@pytest.fixture
def lost(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "lost", tmp_path / "lost"))


def edit(directory: Path, change: Callable[[Any], None], name: str = layout.RESULT) -> None:
    """Change one document of a study and seal it again."""
    path = directory / name
    document = msgspec.json.decode(path.read_bytes())
    change(document)
    path.write_bytes(msgspec.json.encode(document))
    StudyArchive.open(directory).seal()


def seen(directory: Path) -> str:
    """Verify, see that the curve's check alone fails, and return its words."""
    report = verify(directory)
    failed = [check for check in report.all_checks() if check.status == "fail"]
    assert [check.name for check in failed] == [Name.curve], failed
    assert report.exit_code == 4
    return failed[0].detail


def test_a_curve_passes_every_check(made: Path) -> None:
    """Untouched studies pass, and the verdict says how many levels there are and where the knee is."""
    report = verify(made / "loads")
    assert [check.name for check in report.checks] == [*OF_SINGLE_TRIALS, *CURVE_VERDICT]
    assert {check.status for check in report.all_checks()} == {"pass"} and report.exit_code == 0
    assert str(report.verdict).startswith("3 levels: 3 valid; knee ")
    assert verify(made / "lost").exit_code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r["rows"][0]["points"][0]["whole"].update(output_per_s=9e9), "output_per_s"),
        (lambda r: r["rows"][1]["points"][0]["whole"]["ttft"].update(p50=1.0), "ttft.p50"),
        (lambda r: r["rows"][1]["points"][0].update(running_limit=99), "running_limit"),
        (lambda r: r["rows"][1].update(status="failed", points=[]), ""),
        (lambda r: r["rows"][2].update(status="over_limit"), "over_limit"),
        (lambda r: r["rows"].pop(), "no level rests on it"),
        (lambda r: r["rows"][0]["trials"].pop(), "no level rests on it"),
        (lambda r: r["curves"][0]["knee"].update(level=7.0), "knee.level"),
        (lambda r: r["curves"][0]["knee"].update(least_load=1e9), "least_load"),
        (lambda r: r["curves"][0]["steps"][0].update(output_gain=3.0), "output_gain"),
        (lambda r: r["curves"][0]["configuration"].update(kv_tokens=1), "kv_tokens"),
        (lambda r: r["sentences"].__setitem__(0, "All is well."), "All is well"),
        (lambda r: r.update(basis="whole"), "basis"),
        (lambda r: r.update(spent_s=0.0), "spent_s"),
        (lambda r: r.update(exit_code=3), "exit code is 3"),
        (lambda r: r.update(exit_code=5), "exit code is 5"),
        (lambda r: r["losses"].append({"load": 1.0, "trial": None, "error": "gone."}), "losses"),
    ],
)
def test_a_result_that_does_not_follow_is_seen(
    loads: Path, change: Callable[[Any], None], words: str
) -> None:
    """Every number, status, curve, sentence and exit code is recomputed; one that differs fails."""
    edit(loads, change)
    assert words in seen(loads)


def test_a_refusal_without_an_answer_is_unverified(loads: Path) -> None:
    """A prompt that is said to have been refused while it was counted needs the journal's word for it."""
    probe = {"input_tokens": 64, "trial": None, "accepted": False, "reason": "no"}
    edit(loads, lambda result: result["probes"].append(probe))
    report = verify(loads)
    assert report.check(Name.curve).status == "unverified" and report.exit_code == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r["losses"][0].update(completed=4), "completed"),
        (lambda r: r["losses"][0]["request"].update(index=0), "request.index"),
        (lambda r: r["losses"][0].update(returned=True), "returned"),
        (lambda r: r.update(losses=[]), "losses"),
        (lambda r: r.update(exit_code=0), "exit code is 0"),
        (lambda r: r["rows"][1].update(status="valid"), "rows"),
    ],
)
def test_a_loss_is_recomputed(lost: Path, change: Callable[[Any], None], words: str) -> None:
    """What a loss of service is said to be follows from the journal and the trial's own rows."""
    edit(lost, change)
    assert words in seen(lost)


def test_a_loss_that_the_journal_does_not_know_is_seen(lost: Path) -> None:
    """A journal without the loss contradicts a result that has one."""
    path = lost / layout.JOURNAL
    lines = [line for line in path.read_bytes().splitlines() if b"service_lost" not in line]
    path.write_bytes(b"\n".join(lines) + b"\n")
    StudyArchive.open(lost).seal()
    assert "losses" in seen(lost)


def test_a_trial_whose_numbers_changed_is_seen(loads: Path) -> None:
    """A trial's result that no longer follows from its evidence fails in the trial; the curve rests on the evidence."""
    path = min((loads / layout.TRIALS).iterdir())
    edit_json(path, layout.RESULT, lambda r: r["measurement"]["rates"]["tokens_whole"].update(per_s=1.0))
    StudyArchive.open(loads).seal()
    failed = {check.name for check in verify(loads).all_checks() if check.status == "fail"}
    assert failed == {Name.published_numbers}


def test_later_levels_know_what_one_client_alone_waited(loads: Path) -> None:
    """Every level after C=1 has its TTFT in the plan, lowest to highest; another one is seen."""
    trials = sorted((loads / layout.TRIALS).iterdir())
    plans = [TrialReader(trial).header().plan for trial in trials]
    first, *later = [plan.alone_ttft_ns for plan in plans]
    assert first is None and later[0] == later[1] and later[0] is not None
    assert 0 < later[0][0] <= later[0][1] <= later[0][2]
    edit_json(trials[2], layout.HEADER, lambda header: header["plan"].update(alone_ttft_ns=[1.0, 2.0, 3.0]))
    StudyArchive.open(loads).seal()
    assert "another TTFT of a request alone" in verify(loads).check(Name.curve).detail


def test_an_unfinished_study_is_unverified(lost: Path) -> None:
    """Killed before its result told of a loss, nothing is contradicted and nothing is sealed."""
    path = lost / layout.RESULT
    document = msgspec.json.decode(path.read_bytes())
    document.update(exit_code=None, reason="", losses=[])
    document["rows"][1].update(status="interrupted", reason=NOT_RUN.reason)
    path.write_bytes(msgspec.json.encode(document))
    (lost / layout.MANIFEST).unlink()
    report = verify(lost)
    assert report.exit_code == 3 and report.check(Name.curve).status == "pass", report.check(Name.curve)


def test_a_journal_leads_nowhere_else(lost: Path) -> None:
    """A loss whose trial is a way out of the study is read as a name inside it."""
    path = lost / layout.JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"in512.out8.t1"', b'"../../x/in512.out8.t1"'))
    StudyArchive.open(lost).seal()
    assert verify(lost).exit_code == 0


def test_a_hostile_result_ends_in_words(loads: Path) -> None:
    """Values that no study writes end in a failed check, never in a traceback."""
    for change in (
        lambda r: r["rows"][0].update(load=-1.0),
        lambda r: r["rows"][0].update(load=1e308),
        lambda r: r.update(schema="nameplate.curve/9"),
        lambda r: r.update(rows=[]),
    ):
        edit(loads, change)
        report = verify(loads)
        assert report.exit_code == 4
