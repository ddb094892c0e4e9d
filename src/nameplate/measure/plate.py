"""The plate: `plate.json`, the rated result of a study, written after its manifest.

A JSON object with

`schema`                 `nameplate.plate/2`
`target`                 the server's address, model and dialect, without secrets
`identity`               `facts`, each with value and source, and `missing`: without those the plate is not portable
`contract`               everything that was fixed before the first request
`shapes`                 one entry a shape of the contract, see below
`warnings`               of the plate as a whole: what, why, hint
`exit_code`              of the study
`study_manifest_sha256`  digest of the study's `manifest.json`
`tool_version`           the program that wrote this

A shape has `shape`, `rated` (integer or null), `pass` and `fail` (levels or null), `noisy` (levels), `status`,
`exit_code`, `reason`, `operate_at` (the operating policy: it never stands in for `rated`), `levels` (every confirmed
level with its trials' statuses), `certified`, `qualified`, `not_qualified`, `warnings`, `prompt_tokens` (the range
that the server counted), `baseline`, `confirmations`: each confirmation trial, invalid ones too, and `limit`: what
holds the failing level below its promise (null where none failed). Times are nanoseconds; null is absent.
In a rate study a level counts the grid of rates that the contract fixes; `rates` has the same in requests a second,
and each confirmation its `open_loop`.

Version history: 1 - first.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import Fact
from nameplate.contract.shape import Shape
from nameplate.contract.target import Target
from nameplate.measure.correctness import Correctness
from nameplate.measure.limit import Limit
from nameplate.measure.plate_open import PlateOpen, PlateRates
from nameplate.measure.quantiles import Quantiles
from nameplate.measure.study_record import check_schema, with_levels
from nameplate.verdict.boundary import Status
from nameplate.verdict.certify import Certified
from nameplate.verdict.expectation import Expectation
from nameplate.verdict.facts import PromptRange
from nameplate.verdict.level import LevelVerdict
from nameplate.verdict.trial import SloResult, TrialStatus
from nameplate.verdict.warnings import Warned

PLATE_SCHEMA = "nameplate.plate/2"


class PlateTrial(Struct, frozen=True, kw_only=True):
    """Hold one trial as the plate shows it; rates are null where their window is empty."""

    key: str
    level: int
    attempt: int
    status: TrialStatus
    reasons: tuple[str, ...]
    slos: tuple[SloResult, ...]
    ttft: Quantiles
    itl: Quantiles
    e2e: Quantiles
    longest_gap: Quantiles
    requests_per_s: float | None
    requests_per_s_steady: float | None
    output_tokens_per_s: float | None
    output_tokens_per_s_steady: float | None
    output_tokens_per_s_per_user_p50: float | None
    concurrency_mean: float | None
    correctness: Correctness
    open_loop: PlateOpen | None = None


class PlateBaseline(Struct, frozen=True):
    """Hold the baseline's single-user numbers: nominal prefill is asked input length / median TTFT."""

    key: str
    ttft: Quantiles
    itl: Quantiles
    e2e: Quantiles
    prefill_nominal_per_s: float | None
    prefill_counted_per_s: float | None
    decode_per_s: float | None
    outputs_unique: bool


class PlateShape(Struct, frozen=True, kw_only=True):
    """Hold one shape's rated result; the module's text is the format."""

    shape: Shape
    rated: int | None
    pass_level: int | None = field(name="pass")
    fail_level: int | None = field(name="fail")
    noisy: tuple[int, ...]
    status: Status
    exit_code: int
    reason: str
    operate_at: int | None
    levels: tuple[LevelVerdict, ...]
    certified: tuple[Certified, ...]
    qualified: tuple[str, ...]
    not_qualified: tuple[str, ...]
    warnings: tuple[Warned, ...]
    prompt_tokens: PromptRange | None
    baseline: PlateBaseline | None
    confirmations: tuple[PlateTrial, ...]
    rates: PlateRates | None = None
    limit: Limit | None = None


class PlateIdentity(Struct, frozen=True):
    """Hold the server's facts with their sources, and the names of those that are missing."""

    facts: dict[str, Fact]
    missing: tuple[str, ...]


class Plate(Struct, frozen=True, kw_only=True):
    """Hold the rated result of a study; the module's text is the format."""

    schema: str = PLATE_SCHEMA
    target: Target
    identity: PlateIdentity
    contract: Contract
    shapes: tuple[PlateShape, ...]
    warnings: tuple[Warned, ...]
    exit_code: int
    study_manifest_sha256: str | None
    tool_version: str


def encode_plate(plate: Plate) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(plate)) + b"\n"


def decode_plate(data: bytes) -> Plate:
    """Decode `plate.json`; EvidenceError where it is damaged or of a schema that this program does not know."""
    check_schema(data, PLATE_SCHEMA, "plate.json")
    try:
        return msgspec.convert(with_levels(msgspec.json.decode(data)), Plate)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"plate.json cannot be read: {error}.") from error


def expectation_of(plate: Plate, shape: Shape, source: str = "the earlier plate") -> Expectation | None:
    """Return what an earlier plate leads to expect of a shape's baseline; None where it has none."""
    for entry in plate.shapes:
        if entry.shape == shape and entry.baseline is not None:
            alone = entry.baseline
            return Expectation(
                alone.ttft.p50_ns, alone.prefill_nominal_per_s, alone.decode_per_s, source=source
            )
    return None
