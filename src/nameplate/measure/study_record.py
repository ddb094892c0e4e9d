"""The record of a study: `study.json`, rewritten after every trial, so that nothing is lost with the process.

A JSON object with

`schema`        `nameplate.study/1`
`study`         the kind of study, `capacity`
`contract`      everything that was fixed before the first request
`expectations`  what the baselines were compared with, one entry a shape that had one
`decisions`     every decision in order: shape, step, what, reason, concurrency, trial
`trials`        every sealed trial in order: key, role, shape, concurrency, attempt, status, reasons
`spoiled`       keys of trials that began and do not count, because they were cut short
`shapes`        the verdicts of the shapes that are finished
`exit_code`     null while the study runs
`command`       the command line, redacted
`tool_version`  the program that wrote this

Version history: 1 - first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

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

STUDY_SCHEMA = "nameplate.study/1"


class TrialEntry(Struct, frozen=True, kw_only=True):
    """Hold one sealed trial's part in the study; `key` is also its directory's name."""

    key: str
    role: Role
    shape: Shape
    concurrency: int
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
        study="capacity",
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
        concurrency=plan.concurrency,
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
        return msgspec.json.decode(data, type=StudyRecord)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"study.json cannot be read: {error}.") from error


def check_schema(data: bytes, known: str, name: str) -> None:
    """Raise EvidenceError where a document is no JSON object of the known schema."""
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"{name} cannot be read: {error}.") from error
    if schema != known:
        raise EvidenceError(
            f"{name} has the schema {schema!r}; this program reads {known!r}.", hint="Use a newer nameplate."
        )


class _Schema(Struct):
    schema: str
