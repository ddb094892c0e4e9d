"""The rating plate of a capacity or rate study."""

from __future__ import annotations

from nameplate.contract.contract import Contract
from nameplate.contract.identity import Identity
from nameplate.contract.levels import levels_of
from nameplate.contract.shape import Shape
from nameplate.measure.plate import Plate, PlateShape
from nameplate.ratingplate.machine import machine_of, stamps_of
from nameplate.ratingplate.model import Field, Provenance, Rating, RatingPlate
from nameplate.report import numbers
from nameplate.report.certainty import percent
from nameplate.report.safe import safe
from nameplate.report.words import answer, promise
from nameplate.verdict.boundary import Status
from nameplate.verdict.qualified import scope_of

STAMPS = {
    Status.confirmed: "NONE",
    Status.noisy: "NOISY",
    Status.open_above: "OPEN ABOVE",
    Status.open_below: "OPEN BELOW",
    Status.budget: "UNSETTLED",
    Status.invalid: "INVALID",
    Status.interrupted: "INTERRUPTED",
}


def plate_of_boundary(plate: Plate, provenance: Provenance) -> RatingPlate:
    """Return the rating plate of a capacity or rate study's `plate.json`."""
    contract, identity = plate.contract, Identity(plate.identity.facts)
    return RatingPlate(
        title="Rated capacity" if contract.rate is None else "Rated request rate",
        machine=machine_of(identity, plate.target.model),
        terms=(Field("Promise", promise(contract.slos)), Field("Load", _load(plate))),
        ratings=tuple(rating_of(shape, contract) for shape in plate.shapes),
        stamps=stamps_of(identity, provenance),
        date=provenance.date,
        evidence_sha256=plate.study_manifest_sha256 or provenance.evidence_sha256,
        tool=f"nameplate {safe(plate.tool_version, 40)}".strip(),
    )


def rating_of(shape: PlateShape, contract: Contract) -> Rating:
    """Return one shape's rating: a number only where it is confirmed, otherwise its status and what it came to."""
    levels = levels_of(contract)
    subject = subject_of(shape.shape)
    unit = "concurrent requests" if contract.rate is None else "requests/s"
    rated = shape.status is Status.confirmed and shape.pass_level is not None and shape.rated
    notes = []
    if shape.operate_at is not None and rated:
        notes.append(Field("Operate at", levels.told(shape.operate_at)))
    if rated:
        notes += _evidence(shape, contract)
    elif shape.rated:
        held = f"{levels.told(shape.rated)} {unit} {_trials(shape, shape.rated)}"
        notes.append(Field("Held", f"{held}, no rating"))
    return Rating(
        subject=subject,
        number=levels.value(shape.rated) if rated and shape.rated is not None else None,
        value=levels.told(shape.rated) if rated and shape.rated is not None else None,
        unit=unit,
        stamp=None if rated else STAMPS[shape.status],
        reason="" if rated else answer(shape, contract),
        notes=tuple(notes),
    )


def subject_of(shape: Shape) -> str:
    """Say a request's shape: how many tokens go in and come out."""
    return f"{shape.input_tokens:,} tokens in, {shape.output_tokens:,} out"


def _evidence(shape: PlateShape, contract: Contract) -> list[Field]:
    """Say what carries a rated number: trials on both sides, and what the sample certifies."""
    levels = levels_of(contract)
    said = []
    if shape.pass_level is not None and shape.fail_level is not None:
        held, broke = levels.told(shape.pass_level), levels.told(shape.fail_level)
        above, below = _trials(shape, shape.pass_level), _trials(shape, shape.fail_level)
        told = f"{held} held, {broke} did not, {above}"
        if above != below:
            told = f"{held} held {above}; {broke} did not, {below}"
        said.append(Field("Confirmed", told))
    for one in shape.certified:
        bound = one.whole.bound
        said_of = f"{one.whole.over:,} of {one.whole.n:,} over the limit"
        if bound is not None:
            said_of += f", so at most {numbers.share(bound)} with {percent(one.confidence)} confidence"
        name = numbers.promise(one.slo).partition(" <")[0] if len(shape.certified) > 1 else ""
        said_of += f"; {one.claim * 100:.6g}% allowed"
        verdict = "yes" if one.holds else "no"
        said.append(Field(f"Certified {name}".strip(), f"{verdict}, {said_of}"))
    return said


def _trials(shape: PlateShape, level: int) -> str:
    """Say how many valid trials of a level agree, and how many requests were measured in each."""
    judged = next((one for one in shape.levels if one.level == level), None)
    sizes = [
        one.correctness.sent for one in shape.confirmations if one.level == level and one.status != "invalid"
    ]
    if judged is None or not sizes:
        return "in no trial that the plate lists"
    least, most = (numbers.count(size, "request") for size in (min(sizes), max(sizes)))
    agree = max(judged.passes, judged.fails)
    return f"in {agree} of {judged.valid} trials of {numbers.between(least, most)} each"


def _load(plate: Plate) -> str:
    """Say what the qualified kind of load is, without promise and shape, which stand elsewhere."""
    if not plate.shapes:
        return ""
    scope, slos = scope_of(plate.contract, plate.shapes[0].shape), len(plate.contract.slos)
    told = [said for said in scope.qualified[slos:] if not said.startswith("shape ")]
    if not plate.contract.sampling.ignore_eos:
        told.append("answers stop naturally")
    return "; ".join(told)
