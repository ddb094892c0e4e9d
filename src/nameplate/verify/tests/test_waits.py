"""Queue, prefill and what the limit is made of are computed again: a forged figure is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nameplate.evidence import layout
from nameplate.evidence.reader import TrialReader
from nameplate.measure.plate import decode_plate
from nameplate.verify import verify
from nameplate.verify.names import Name
from nameplate.verify.tests.making import edit_json, edit_lines, edit_study, seal_study


def failing(directory: Path) -> set[Name]:
    return {check.name for check in verify(directory).all_checks() if check.status == "fail"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("queue", "mean_ns"), 1),
        (("prefill", "p95", "high"), 1e6),
        (("rest_mean_ns",), -7),
        (("unobserved",), 1),
        (("source",), "estimated"),
    ],
)
def test_a_forged_part_of_the_ttft_is_found(trial: Path, path: tuple[str, ...], value: object) -> None:
    """Every figure of a trial's waits follows from its rows and the journal's readings."""

    def forge(result: Any) -> None:
        held = result["measurement"]["waits"]
        for name in path[:-1]:
            held = held[name]
        assert held[path[-1]] != value
        held[path[-1]] = value

    edit_json(trial, layout.RESULT, forge)
    assert failing(trial) == {Name.published_numbers}


def test_forged_buckets_are_found(trial: Path) -> None:
    """Other buckets in the journal give other intervals than were published."""

    def forge(entries: list[Any]) -> None:
        for entry in entries:
            held = entry["detail"].get("histograms") if entry["detail"].get("moment") == "after" else None
            if held:
                held["queue"]["buckets"] = [[edge * 2, count] for edge, count in held["queue"]["buckets"]]

    edit_lines(trial, layout.JOURNAL, forge)
    assert failing(trial) == {Name.published_numbers}


@pytest.mark.parametrize("held", ["no histogram", {"queue": 3}, {"queue": {"sum_s": "much", "count": 1}}])
def test_hostile_histograms_end_in_a_report(trial: Path, held: object) -> None:
    """What cannot be read is said, without a traceback."""

    def forge(entries: list[Any]) -> None:
        for entry in entries:
            if entry["detail"].get("moment") == "after" and "histograms" in entry["detail"]:
                entry["detail"]["histograms"] = held

    edit_lines(trial, layout.JOURNAL, forge)
    assert verify(trial).exit_code == 4


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("made_of",), []),
        (("made_of", 0, "name"), "rest"),
        (("parts", 0, "share"), 0.5),
        (("levels", 2, "queue_mean_ns"), 5),
        (("fail_ns",), 5),
    ],
)
def test_a_forged_limit_is_found(study: Path, path: tuple[str | int, ...], value: object) -> None:
    """What the limit is made of is built again from the trials."""
    shape = decode_plate((study / layout.PLATE).read_bytes()).shapes[0]
    assert shape.limit is not None and shape.limit.made_of

    def forge(plate: Any) -> None:
        held = plate["shapes"][0]["limit"]
        for name in path[:-1]:
            held = held[name]
        assert held[path[-1]] != value
        held[path[-1]] = value

    edit_study(study, layout.PLATE, forge)
    assert failing(study) == {Name.plate}


def test_a_study_knows_what_a_request_alone_takes(study: Path) -> None:
    """Every trial after the baseline carries its TTFT, lowest to highest, in the plan."""
    plans = [TrialReader(trial).header().plan for trial in sorted((study / layout.TRIALS).iterdir())]
    assert {plan.alone_ttft_ns is None for plan in plans if plan.role == "baseline"} == {True}
    later = {plan.alone_ttft_ns for plan in plans if plan.role != "baseline"}
    (alone,) = later
    assert alone is not None and 0 < alone[0] <= alone[1] <= alone[2]


def test_a_forged_ttft_of_a_request_alone_is_found(study: Path) -> None:
    """What an estimate would rest on is the baseline's, and no other."""
    trial = next(path for path in (study / layout.TRIALS).iterdir() if "confirm" in path.name)
    edit_json(trial, layout.HEADER, lambda header: header["plan"].update(alone_ttft_ns=[1.0, 2.0, 3.0]))
    seal_study(study)
    assert Name.levels in failing(study)
