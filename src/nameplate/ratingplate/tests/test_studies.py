"""From results to plates: numbers only where their status carries them, facts only where they are known."""

from __future__ import annotations

import pytest
from msgspec import structs

from nameplate.contract.identity import Fact, Identity
from nameplate.measure.curve_result import CurveResult
from nameplate.measure.plate import Plate, PlateShape, PlateTrial
from nameplate.ratingplate.boundary import STAMPS, plate_of_boundary
from nameplate.ratingplate.curve import plate_of_curve
from nameplate.ratingplate.machine import machine_of, stamps_of
from nameplate.ratingplate.model import Provenance, Rating
from nameplate.ratingplate.speed import plate_of_speed
from nameplate.report.tests.rendering import studied
from nameplate.report.tests.speed_results import imported_result, speed_result
from nameplate.report.tests.test_curve import climb, loads
from nameplate.verdict.boundary import Status
from nameplate.verdict.cell import CellStatus
from nameplate.verdict.level import LevelVerdict

PROVENANCE = Provenance(date="2026-11-30", evidence_sha256="cd" * 32)


@pytest.fixture(scope="module")
def study() -> Plate:
    return studied()[0]


def with_shape(plate: Plate, **changes: object) -> Plate:
    shape: PlateShape = structs.replace(plate.shapes[0], **changes)
    return structs.replace(plate, shapes=(shape,))


def notes_of(rating: Rating) -> dict[str, str]:
    return {note.name: note.told for note in rating.notes}


def test_confirmed_capacity(study: Plate) -> None:
    """A confirmed study's plate has the rated number of plate.json, its promise, and what carries it."""
    held = plate_of_boundary(study, PROVENANCE)
    (rating,) = held.ratings
    assert (rating.number, rating.value, rating.unit, rating.stamp) == (8, "8", "concurrent requests", None)
    assert held.terms[0].told == "ttft p95 < 12 s"
    notes = notes_of(rating)
    assert notes["Operate at"] == "7"
    sizes = {one.level: one.correctness.sent for one in study.shapes[0].confirmations}
    assert sizes[8] == sizes[9]
    assert notes["Confirmed"] == f"8 held, 9 did not, in 3 of 3 trials of {sizes[8]} requests each"
    certified = study.shapes[0].certified[0].whole
    assert f"{certified.over} of {certified.n} over the limit" in notes["Certified"]
    assert held.evidence_sha256 == study.study_manifest_sha256
    assert held.stamps == ()
    assert {one.name: one.text for one in held.machine}["Hardware"] is None


def sized(trial: PlateTrial, sent: int) -> PlateTrial:
    return structs.replace(trial, correctness=structs.replace(trial.correctness, sent=sent))


def test_ratings_of_other_samples_read_otherwise(study: Plate) -> None:
    """How many requests a trial measured stands on the plate, for either side where they differ."""
    shape = study.shapes[0]
    larger = tuple(sized(one, 1200) for one in shape.confirmations)
    (rating,) = plate_of_boundary(with_shape(study, confirmations=larger), PROVENANCE).ratings
    assert notes_of(rating)["Confirmed"] == "8 held, 9 did not, in 3 of 3 trials of 1,200 requests each"
    uneven = tuple(sized(one, 32 if one.level == 8 else 36) for one in shape.confirmations)
    (rating,) = plate_of_boundary(with_shape(study, confirmations=uneven), PROVENANCE).ratings
    assert notes_of(rating)["Confirmed"] == (
        "8 held in 3 of 3 trials of 32 requests each; 9 did not, in 3 of 3 trials of 36 requests each"
    )


def test_what_was_held_without_a_rating_says_on_how_much(study: Plate) -> None:
    """A level that held below noise has its trials and their requests beside it, invalid ones not counted."""
    levels = (LevelVerdict(8, "pass", ("pass", "invalid", "pass", "pass", "inconclusive")),)
    spoiled = [one for one in study.shapes[0].confirmations if one.level == 8]
    trials = (structs.replace(sized(spoiled[0], 3), status="invalid"), *(sized(one, 64) for one in spoiled))
    held = with_shape(study, status=Status.noisy, levels=levels, confirmations=trials)
    (rating,) = plate_of_boundary(held, PROVENANCE).ratings
    assert notes_of(rating)["Held"] == "8 concurrent requests in 3 of 4 trials of 64 requests each, no rating"


@pytest.mark.parametrize("status", [one for one in Status if one is not Status.confirmed])
def test_other_statuses_have_no_number(study: Plate, status: Status) -> None:
    """Every status but a confirmed one is stamped in the place of the number, with its reason."""
    held = plate_of_boundary(with_shape(study, status=status, rated=8), PROVENANCE)
    (rating,) = held.ratings
    assert (rating.number, rating.value, rating.stamp) == (None, None, STAMPS[status])
    assert rating.reason
    assert "Operate at" not in notes_of(rating)


def test_rated_zero_is_no_rating(study: Plate) -> None:
    """Where not even one request holds the promise, the plate says NONE."""
    held = plate_of_boundary(
        with_shape(study, rated=0, pass_level=None, fail_level=1, operate_at=0), PROVENANCE
    )
    (rating,) = held.ratings
    assert (rating.number, rating.stamp) == (None, "NONE")
    assert "Not one" in rating.reason


def test_simulation_is_stamped() -> None:
    """Simulated time and the built-in engine are stamped, a real server is not."""
    real, built_in = (Identity({"engine": Fact(name, "x")}) for name in ("vllm", "nameplate-sim"))
    assert stamps_of(real, PROVENANCE) == ()
    assert stamps_of(real, structs.replace(PROVENANCE, virtual=True)) == ("SIMULATED",)
    assert stamps_of(built_in, PROVENANCE) == ("SIMULATED",)


def test_facts_are_told_or_missing() -> None:
    """Known facts are written as they are, blank and unknown ones are not invented."""
    facts = {"engine": Fact("vllm", "x"), "hardware": Fact(" ", "x"), "kv_tokens": Fact(65536, "x")}
    told = {one.name: one.text for one in machine_of(Identity(facts))}
    assert told["Engine"] == "vllm"
    assert told["KV cache"] == "65,536 tokens"
    assert [name for name, text in told.items() if text is None] == [
        "Model",
        "Hardware",
        "Quantisation",
        "Context limit",
    ]


def test_speed() -> None:
    """A speed study states prefill and one user's decode at 8K and the most output, as its cells have them."""
    result = speed_result()
    held = plate_of_speed(result, PROVENANCE)
    prefill, alone, most = held.ratings
    cells = {(row.kind, row.label, row.concurrency): row.values for row in result.rows}
    assert prefill.subject == "Prefill, 8K context"
    values = cells["prefill", "8K", 1]
    assert values is not None
    assert prefill.number == values.tokens_per_s
    values = cells["decode", "8K", 1]
    assert values is not None
    assert values.per_user is not None
    assert alone.number == values.per_user.p50
    valid = [row.values.tokens_per_s or 0 for row in result.rows_of("decode") if row.values is not None]
    assert most.number == max(valid)


def test_an_imported_matrix_names_the_tool_that_measured_it() -> None:
    """The plate of another tool's matrix is stamped as imported and does not claim its numbers as ours."""
    held = plate_of_speed(imported_result(), PROVENANCE)
    assert held.tool == "llm-inference-bench 0.4.30"
    assert held.stamps == ("IMPORTED",)


def test_speed_without_valid_cells() -> None:
    """Cells without a number are stamped with their status."""
    result = speed_result()
    rows = tuple(
        structs.replace(row, status=CellStatus.looped, values=None, reason="looped") for row in result.rows
    )
    held = plate_of_speed(structs.replace(result, rows=rows, finished=False), PROVENANCE)
    assert {rating.stamp for rating in held.ratings} == {"LOOPED", "NO RATE"}
    assert all(rating.number is None for rating in held.ratings)
    assert "UNFINISHED" in held.stamps


@pytest.mark.parametrize("result", [loads(), climb()], ids=["loads", "climb"])
def test_curve(result: CurveResult) -> None:
    """A curve's plate is measured, not rated, and has numbers where the curve has."""
    held = plate_of_curve(result, PROVENANCE)
    assert held.verb == "Measured"
    assert held.ratings
    for rating in held.ratings:
        assert (rating.number is None) == (rating.stamp is not None)


def test_curve_without_a_level() -> None:
    """A curve without valid levels is stamped."""
    held = plate_of_curve(structs.replace(loads(), curves=(), sentences=()), PROVENANCE)
    assert [rating.stamp for rating in held.ratings] == ["NO RESULT"]
