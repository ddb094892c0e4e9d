"""The record of a study: `study.json`, rewritten after every trial, so that nothing is lost with the process.

A JSON object with

`schema`        `nameplate.study/2`
`study`         the kind of study, `capacity` or `rate`
`contract`      everything that was fixed before the first request
`expectations`  what the baselines were compared with, one entry a shape that had one
`decisions`     every decision in order: shape, step, what, reason, level, trial
`trials`        every sealed trial in order: key, role, shape, level, attempt, status, reasons
`spoiled`       keys of trials that began and do not count, because they were cut short
`shapes`        the verdicts of the shapes that are finished
`exit_code`     null while the study runs
`command`       the command line, redacted
`tool_version`  the program that wrote this

A level is a concurrency, or in a rate study the level of a rate in the grid that the contract fixes.

Version history: 1 - first, with `concurrency` in the place of `level`; 2 - rates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError
from nameplate.contract.plan import Role
from nameplate.contract.shape import Shape
from nameplate.measure.result import TrialResult
from nameplate.verdict.boundary import combined_exit_code
from nameplate.verdict.expectation import Expectation
from nameplate.verdict.shape import Decision, ShapeVerdict
from nameplate.verdict.trial import TrialStatus

STUDY_SCHEMA = "nameplate.study/2"


class TrialEntry(Struct, frozen=True, kw_only=True):
    """Hold one sealed trial's part in the study; `key` is also its directory's name."""

    key: str
    role: Role
    shape: Shape
    level: int
    attempt: int
    status: TrialStatus
    reasons: tuple[str, ...]


class ShapeExpectation(Struct, frozen=True):
    """Hold what one shape's baseline was compared with."""

    shape: Shape
    expectation: Expectation


class StudyRecord(Struct, frozen=True, kw_only=True):
    """Hold a study as it stands; the module's text is the format."""

    schema: str = STUDY_SCHEMA
    study: str
    contract: Contract
    expectations: tuple[ShapeExpectation, ...]
    decisions: tuple[Decision, ...]
    trials: tuple[TrialEntry, ...]
    spoiled: tuple[str, ...]
    shapes: tuple[ShapeVerdict, ...]
    exit_code: int | None
    command: tuple[str, ...]
    tool_version: str


def study_record(
    contract: Contract,
    results: Iterable[TrialResult],
    decisions: Sequence[Decision],
    verdicts: Sequence[ShapeVerdict],
    *,
    expectations: Mapping[Shape, Expectation] | None = None,
    spoiled: Collection[str] = (),
    finished: bool = False,
    command: Sequence[str] = (),
    tool_version: str = "",
) -> StudyRecord:
    """Build the record of a study so far; `finished` gives it the exit code of its verdicts."""
    return StudyRecord(
        study="capacity" if contract.rate is None else "rate",
        contract=contract,
        expectations=tuple(ShapeExpectation(shape, held) for shape, held in (expectations or {}).items()),
        decisions=tuple(decisions),
        trials=tuple(entry_of(result) for result in results),
        spoiled=tuple(sorted(spoiled)),
        shapes=tuple(verdicts),
        exit_code=combined_exit_code(v.boundary.exit_code for v in verdicts) if finished else None,
        command=tuple(command),
        tool_version=tool_version,
    )


def entry_of(result: TrialResult) -> TrialEntry:
    """Return a trial's entry."""
    plan = result.plan
    return TrialEntry(
        key=plan.key,
        role=plan.role,
        shape=plan.shape,
        level=plan.level,
        attempt=plan.attempt,
        status=result.verdict.status,
        reasons=result.verdict.reasons,
    )


def encode_study(record: StudyRecord) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(record)) + b"\n"


def decode_study(data: bytes) -> StudyRecord:
    """Decode `study.json`; EvidenceError where it is damaged or of a schema that this program does not know."""
    check_schema(data, STUDY_SCHEMA, "study.json")
    try:
        return msgspec.convert(with_levels(msgspec.json.decode(data)), StudyRecord)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"study.json cannot be read: {error}.") from error


def check_schema(data: bytes, known: str, name: str) -> None:
    """Raise EvidenceError where a document is no JSON object of the known schema, or of an earlier version of it."""
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
    except (msgspec.MsgspecError, RecursionError) as error:
        raise EvidenceError(f"{name} cannot be read: {error}.") from error
    family, _, version = known.rpartition("/")
    earlier = {f"{family}/{number}" for number in range(1, int(version) + 1)}
    if schema not in earlier:
        raise EvidenceError(
            f"{name} has the schema {schema!r}; this program reads {known!r}.", hint="Use a newer nameplate."
        )


# Where documents hold levels: below these names, in lists or in lists of shapes.
_WITH_LEVELS = ("decisions", "trials", "levels", "certified", "confirmations")


def with_levels(document: Any) -> Any:
    """Return a record or plate as version 2 has it: version 1 called a level `concurrency`."""
    if not isinstance(document, dict) or not str(document.get("schema", "")).endswith("/1"):
        return document
    family = str(document["schema"]).removesuffix("1")
    return {**_renamed(document), "schema": f"{family}2"}


def _renamed(value: dict[str, Any]) -> dict[str, Any]:
    found = dict(value)
    for name in _WITH_LEVELS:
        if isinstance(found.get(name), list):
            found[name] = [_level(entry) for entry in found[name]]
    if isinstance(found.get("shapes"), list):
        found["shapes"] = [_renamed(one) if isinstance(one, dict) else one for one in found["shapes"]]
    return found


def _level(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    return {"level" if name == "concurrency" else name: value for name, value in entry.items()}


class _Schema(Struct):
    schema: str
