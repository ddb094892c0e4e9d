"""A rate study verified: its rates, its queues, and that every load is the one of the contract."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nameplate.evidence import layout
from nameplate.measure.plate import decode_plate
from nameplate.studies.archive import StudyArchive
from nameplate.studies.conduct import conduct, prepare
from nameplate.verify import verify
from nameplate.verify.names import Name
from nameplate.verify.tests.making import (
    conditions,
    edit_json,
    edit_study,
    follow,
    seal_study,
    wanted_rate,
)


@pytest.fixture(scope="module")
def sealed_rate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("evidence") / "rate"
    conduct(prepare(conditions(), wanted_rate(), StudyArchive.create(directory)))
    return directory


@pytest.fixture
def study(sealed_rate: Path, tmp_path: Path) -> Path:
    """A copy of the sealed study that the test may change."""
    copy = tmp_path / "rate"
    shutil.copytree(sealed_rate, copy)
    return copy


def failing(directory: Path) -> dict[Name, str]:
    return {check.name: check.detail for check in verify(directory).all_checks() if check.status == "fail"}


def confirmation(directory: Path) -> Path:
    return min((directory / layout.TRIALS).glob("*confirm*"))


def test_a_rate_study_passes_every_check(sealed_rate: Path) -> None:
    """Untouched it verifies, and its verdict is told as a rate."""
    report = verify(sealed_rate)
    assert report.exit_code == 0, failing(sealed_rate)
    shape = decode_plate((sealed_rate / layout.PLATE).read_bytes()).shapes[0]
    assert shape.rates is not None and shape.rates.rated_per_s is not None
    assert report.verdict == f"64/8: {shape.status}, rated {shape.rates.rated_per_s:g}"


@pytest.mark.parametrize(
    "change",
    [
        lambda shape: shape["rates"].update(rated_per_s=1000.0),
        lambda shape: shape["rates"].update(noisy_per_s=[1.0]),
        lambda shape: shape["confirmations"][0]["open_loop"].update(goodput_per_s=1.0),
        lambda shape: shape["confirmations"][0]["open_loop"].update(growth=-0.1),
        lambda shape: shape["confirmations"][0]["open_loop"].update(queue="bounded, surely"),
        lambda shape: shape["confirmations"][0]["open_loop"]["ttft_from_schedule"].update(p95_ns=1.0),
        lambda shape: shape["confirmations"][0]["open_loop"].update(little=1.0),
        lambda shape: shape.update(operate_at=shape["rated"]),
    ],
)
def test_every_value_of_a_rate_on_the_plate_is_recomputed(study: Path, change: Callable[[Any], None]) -> None:
    """Rates, goodput, queue, latency and Little's law follow from the trials."""
    edit_study(study, layout.PLATE, lambda plate: change(plate["shapes"][0]))
    assert set(failing(study)) == {Name.plate}


def test_a_rate_that_does_not_follow_from_its_levels_is_seen(study: Path) -> None:
    """The record's boundary is judged anew."""

    def higher(record: Any) -> None:
        record["shapes"][0]["boundary"]["rated"] += 1

    edit_study(study, layout.STUDY, higher)
    assert Name.boundary in failing(study)


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["rate_level"].update(proves=False),
        lambda plan: plan["rate_level"].update(resolution=0.9),
        lambda plan: plan.update(outputs_must_differ=plan["outputs_must_differ"], stop_when_failed=True),
    ],
)
def test_a_trial_with_other_duties_than_the_contract_s_is_seen(
    study: Path, change: Callable[[Any], None]
) -> None:
    """A plan that asks less of its queue, consistent in itself and sealed again, is not the contract's."""
    trial = confirmation(study)
    edit_json(trial, layout.HEADER, lambda header: change(header["plan"]))
    follow(trial)
    seal_study(study)
    assert "is not the one that the contract has at its level" in failing(study)[Name.levels]


def test_a_queue_that_was_changed_in_a_result_is_seen(study: Path) -> None:
    """The gate's facts are recomputed from the evidence."""
    trial = confirmation(study)

    def calm(result: Any) -> None:
        result["facts"]["queue"]["growth"] = -0.5

    edit_json(trial, layout.RESULT, calm)
    seal_study(study)
    assert Name.published_numbers in failing(study)


def test_a_gate_of_the_queue_that_was_changed_in_a_result_is_seen(study: Path) -> None:
    """What a rate study alone judges by is held against the evidence like every other gate."""
    trial = confirmation(study)

    def forge(result: Any) -> None:
        for gate in result["gates"]:
            if gate["gate"] == "bounded_queue":
                gate["status"] = "fail" if gate["status"] == "pass" else "pass"

    edit_json(trial, layout.RESULT, forge)
    seal_study(study)
    assert "bounded_queue" in failing(study)[Name.planned_concurrency]
