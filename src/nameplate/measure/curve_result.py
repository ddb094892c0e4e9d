"""The result of a curve study: `result.json`, current after every trial and recomputed by whoever doubts it.

A JSON object with

`schema`        `nameplate.curve/1`
`contract`      everything that was fixed before the first request; the levels are its `curve`
`identity`      the server as it was surveyed when the study began
`rows`          every level in ascending order: status with its reason, its trials, and the points of the valid ones
`probes`        single requests that looked for an unknown context limit
`border`        the longest input that was accepted and the shortest that was refused, where the climb went to the limit
`basis`         `steady` or `whole`: the sample that curves and their words are made of
`curves`        one a configuration of the server: levels, steps, knee; each with its `sentence` in `sentences`
`losses`        every loss of service, named
`spoiled`       trials that were cut short and do not count
`exit_code`     null while the study runs
`reason`        how it ended, in words

Version history: 1 - first.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import Identity
from nameplate.measure.curve_loss import Loss
from nameplate.measure.curve_point import Basis, Point
from nameplate.measure.study_record import check_schema
from nameplate.verdict.curve import Curve
from nameplate.verdict.curve_level import LevelStatus

CURVE_SCHEMA = "nameplate.curve/1"


class LevelRow(Struct, frozen=True, kw_only=True):
    """Hold one level: `load` is clients, requests a second or prompt tokens, as the contract's kind says.

    Without the status `valid` it has no points: status beats number. `trials` are all of its trials, replaced ones
    included.
    """

    load: float
    status: LevelStatus
    reason: str
    trials: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()


class Probe(Struct, frozen=True):
    """Hold one request that looked for the context limit; without a trial its prompt was refused while counted."""

    input_tokens: int
    trial: str | None
    accepted: bool
    reason: str


class Border(Struct, frozen=True, kw_only=True):
    """Hold where the context ends: told by the server, or found between an accepted and a refused input in tokens."""

    source: Literal["told", "found"]
    context_tokens: int | None = None
    accepted_tokens: int | None = None
    refused_tokens: int | None = None


class CurveResult(Struct, frozen=True, kw_only=True):
    """Hold a curve study as it stands; the module's text is the format."""

    schema: str = CURVE_SCHEMA
    contract: Contract
    identity: Identity
    rows: tuple[LevelRow, ...]
    probes: tuple[Probe, ...]
    border: Border | None
    basis: Basis
    curves: tuple[Curve, ...]
    sentences: tuple[str, ...]
    losses: tuple[Loss, ...]
    spoiled: tuple[str, ...]
    spent_s: float
    exit_code: int | None
    reason: str
    command: tuple[str, ...] = ()
    tool: str = ""

    @property
    def finished(self) -> bool:
        return self.exit_code is not None


def encode_curve(result: CurveResult) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(result)) + b"\n"


def decode_curve(data: bytes) -> CurveResult:
    """Decode `result.json`; EvidenceError where it is damaged or of a schema that this program does not know."""
    check_schema(data, CURVE_SCHEMA, "result.json")
    try:
        return msgspec.json.decode(data, type=CurveResult)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"result.json cannot be read: {error}.") from error
