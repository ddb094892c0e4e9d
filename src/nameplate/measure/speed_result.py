"""The result of a speed study: `result.json` of its directory, a row for every planned cell.

A JSON object with

`schema`        `nameplate.speed/1`
`tool`          the program that wrote this, with its version
`origin`        null for our own measurements; of an imported file: tool, version, digest, and what its fields mean
`contract`      everything that was fixed before the first request; null where the origin tells none
`target`, `model`, `limits`   the server, and what it says that it can hold
`identity`      the facts known of the server, each with its source
`hosts`         descriptions of hardware, each saying of which host
`launch_command`, `note`      as given, keys redacted
`rows`          one for every planned cell, in the order in which they were measured
`methodology`   what each measure is: formula, unit, notes
`warnings`      sentences that concern the whole result
`finished`      whether every planned cell has its final status
`exit_code`     null while the study runs
`spent_s`       time that the trials took

A row's `values` are null unless its status is `valid`; what was measured in another cell is under `discarded`.
Distributions carry their unit (`ns` or `1/s`), n, and percentiles; null is absent, never zero.

Version history: 1 - first.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from nameplate.contract.contract import Contract
from nameplate.contract.errors import EvidenceError
from nameplate.contract.identity import Identity
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import Kind
from nameplate.hosts.description import HostDescription
from nameplate.hosts.summary import GpuSummary
from nameplate.measure.cell import CounterView, Speculation, Warmth
from nameplate.measure.kv_claim import KvClaim
from nameplate.measure.mixed import Mixed
from nameplate.measure.prefill import Prefill
from nameplate.measure.server_side import Gauge
from nameplate.measure.study_record import check_schema
from nameplate.statistics.percentile import Distribution
from nameplate.verdict.cell import CellStatus
from nameplate.verdict.facts import PromptRange

SPEED_SCHEMA = "nameplate.speed/1"


class CellValues(Struct, frozen=True, kw_only=True):
    """Hold a cell's numbers; which ones it has depends on its kind.

    `tokens_per_s` is the aggregate output rate of decode and burst, the median prefill rate of a prefill cell, and
    of a mixed cell the streams' rate before the arrival. `slowdown` is the arrival's TTFT under load / alone.
    """

    tokens_per_s: float | None = None
    estimated: bool = False
    window_s: float | None = None
    output_tokens: float | None = None
    requests: int | None = None
    completed: int | None = None
    ttft: Distribution | None = None
    warmth: Warmth | None = None
    second_output: Distribution | None = None
    itl: Distribution | None = None
    chunk_gaps: Distribution | None = None
    per_user: Distribution | None = None
    e2e: Distribution | None = None
    e2e_per_user: Distribution | None = None
    tokens_per_chunk: float | None = None
    speculation: Speculation | None = None
    in_flight: float | None = None
    running: Gauge | None = None
    waiting: Gauge | None = None
    kv_usage: Gauge | None = None
    queue_share: float | None = None
    samples: int | None = None
    preemptions: int | None = None
    counter: CounterView | None = None
    kv: KvClaim | None = None
    restarts: int | None = None
    judged_streams: int | None = None
    looped_streams: int | None = None
    prefill: Prefill | None = None
    mixed: Mixed | None = None
    alone_ttft_ns: float | None = None
    slowdown: float | None = None
    gpu: GpuSummary | None = None
    energy_per_token_j: float | None = None


class CellRow(Struct, frozen=True, kw_only=True):
    """Hold one planned cell: its status with the reason, and its values where it is valid.

    `cached_tokens` are by usage, `cached_mean` is the mean of the ramp's prompts by the server's counter.
    `trials` are the keys of its attempts, the last of which counts. `ready_s` is how long it took to be ready,
    `ready_deadline_s` how long it might have taken.
    """

    kind: Kind
    label: str
    context_tokens: int
    concurrency: int
    output_tokens: int | None = None
    status: CellStatus
    reason: str
    notes: tuple[str, ...] = ()
    prompt_tokens: PromptRange | None = None
    cached_tokens: PromptRange | None = None
    cached_mean: float | None = None
    ready_s: float | None = None
    ready_deadline_s: float | None = None
    trials: tuple[str, ...] = ()
    values: CellValues | None = None
    discarded: CellValues | None = None


class Method(Struct, frozen=True):
    """State what one measure is."""

    name: str
    unit: str
    formula: str
    notes: str = ""


class Origin(Struct, frozen=True, kw_only=True):
    """Say where an imported result comes from; `definitions` are what its fields mean there, `metadata` its words."""

    tool: str
    version: str
    file: str
    sha256: str
    definitions: dict[str, str] = {}
    metadata: dict[str, Any] = {}


class SpeedResult(Struct, frozen=True, kw_only=True):
    """Hold the result of a speed study; the module's text is the format."""

    schema: str = SPEED_SCHEMA
    tool: str
    origin: Origin | None = None
    contract: Contract | None = None
    target: str = ""
    model: str = ""
    limits: ServerLimits = ServerLimits()
    identity: Identity = Identity()
    hosts: tuple[HostDescription, ...] = ()
    launch_command: str | None = None
    note: str | None = None
    rows: tuple[CellRow, ...]
    methodology: tuple[Method, ...] = ()
    warnings: tuple[str, ...] = ()
    finished: bool = False
    exit_code: int | None = None
    spent_s: float = 0.0

    def rows_of(self, kind: Kind) -> tuple[CellRow, ...]:
        return tuple(row for row in self.rows if row.kind == kind)


def encode_speed(result: SpeedResult) -> bytes:
    """Encode as readable JSON with a final line feed."""
    return msgspec.json.format(msgspec.json.encode(result)) + b"\n"


def decode_speed(data: bytes) -> SpeedResult:
    """Decode `result.json` of a speed study; EvidenceError where it is damaged or of an unknown schema."""
    check_schema(data, SPEED_SCHEMA, "result.json")
    try:
        return msgspec.json.decode(data, type=SpeedResult)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"result.json cannot be read: {error}.") from error
