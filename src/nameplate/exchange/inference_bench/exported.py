"""Our result as a result file of llm-inference-bench, in the shape of its version 0.4.30.

`metadata.version` is the version whose shape this is, in digits alone, because that tool's own reader turns it into a
tuple of integers; who wrote the file is in `metadata.generator`, in `startup_diagnostics.version` as a build of that
version (`0.4.30+nameplate...`), and in the event log's first line. The statuses of all cells with their reasons are
under `nameplate`, a name that its readers do not know and pass over.

An imported result goes back as the file that it was: every number of it, keys redacted, and our statuses beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nameplate import __version__
from nameplate.contract.matrix import CellPlan, Matrix
from nameplate.exchange.inference_bench.exported_host import (
    P2pOut,
    StartupOut,
    StatusOut,
    chosen_host,
    p2p_out,
    startup_out,
)
from nameplate.exchange.inference_bench.exported_meta import (
    MetadataOut,
    arguments_out,
    event_log,
    metadata_out,
    methodology,
)
from nameplate.exchange.inference_bench.exported_phases import MixedOut, PrefillOut, mixed_out, prefills_out
from nameplate.exchange.inference_bench.exported_row import RowOut, row_out
from nameplate.exchange.inference_bench.samples import Requests
from nameplate.exchange.loose import decode_object
from nameplate.exchange.redact import redact
from nameplate.measure.speed_result import CellRow, SpeedResult
from nameplate.verdict.cell import CellStatus

SHAPE_VERSION = "0.4.30"
GENERATOR = f"nameplate {__version__}"
BUILD = f"{SHAPE_VERSION}+nameplate.{__version__}"

Table = dict[str, dict[str, float]]


class ToldOut(Struct, frozen=True):
    """Hold our status of one cell."""

    kind: str
    context_tokens: int
    concurrency: int
    status: CellStatus
    reason: str
    notes: tuple[str, ...] = ()


class OwnOut(Struct, frozen=True):
    """Hold what is ours in the file."""

    tool: str
    cells: tuple[ToldOut, ...]
    warnings: tuple[str, ...] = ()


class DocumentOut(Struct, frozen=True, kw_only=True):
    """Hold a whole file; field names and order are that tool's, `mixed_prefill` from its later versions."""

    metadata: MetadataOut
    startup_diagnostics: StartupOut
    nvidia_p2p_override: P2pOut
    p2pmark: StatusOut
    amd_fabric: StatusOut
    hardware_run_summary: dict[str, float]
    event_log: tuple[str, ...]
    prefill: dict[str, PrefillOut]
    results: tuple[RowOut, ...]
    summary_table: Table
    burst_results: tuple[RowOut, ...]
    burst_summary_table: Table
    methodology: dict[str, Any]
    mixed_prefill: dict[str, MixedOut]
    nameplate: OwnOut


def exported(result: SpeedResult, requests: Mapping[CellPlan, Requests], written_at: str = "") -> DocumentOut:
    """Return the file for a result; `requests` are what the cells' evidence tells, `written_at` an ISO time."""
    matrix = (result.contract.speed if result.contract else None) or Matrix()
    host = chosen_host(result.hosts)
    rows = {
        kind: [
            row_out(row, requests.get(_plan(row), Requests()), matrix.stable_ns / 1e9)
            for row in result.rows_of(kind)
        ]
        for kind in ("decode", "burst")
    }
    prefill = prefills_out(result.rows_of("prefill"))
    mixed = mixed_out(result.rows_of("mixed"))
    effective = host.p2p.effective if host else False
    return DocumentOut(
        metadata=metadata_out(
            result,
            matrix,
            SHAPE_VERSION,
            GENERATOR,
            written_at,
            p2p_effective=effective,
            has_host=host is not None,
        ),
        startup_diagnostics=startup_out(host, BUILD, redact(result.target), arguments_out(result, matrix)),
        nvidia_p2p_override=p2p_out(host),
        p2pmark=StatusOut(),
        amd_fabric=StatusOut(),
        hardware_run_summary=_hardware(result),
        event_log=event_log(result, GENERATOR, BUILD),
        prefill=prefill,
        results=tuple(rows["decode"]),
        summary_table=_table(rows["decode"]),
        burst_results=tuple(rows["burst"]),
        burst_summary_table=_table(rows["burst"]),
        methodology=methodology(
            bool(prefill), bool(rows["decode"]), bool(rows["burst"]), bool(mixed), GENERATOR
        ),
        mixed_prefill=mixed,
        nameplate=_own(result),
    )


def exported_again(result: SpeedResult, original: bytes, name: str) -> dict[str, Any]:
    """Return an imported file with our statuses beside its own numbers; keys in it are redacted."""
    document: dict[str, Any] = redact(decode_object(original, name))
    document["nameplate"] = msgspec.to_builtins(_own(result))
    return document


def encode_export(document: DocumentOut | dict[str, Any]) -> bytes:
    """Encode as that tool writes it: JSON with two blanks a level."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _own(result: SpeedResult) -> OwnOut:
    cells = tuple(
        ToldOut(row.kind, row.context_tokens, row.concurrency, row.status, row.reason, row.notes)
        for row in result.rows
    )
    return OwnOut(GENERATOR, cells, result.warnings)


def _plan(row: CellRow) -> CellPlan:
    return CellPlan(row.kind, row.context_tokens, row.concurrency)


def _table(rows: list[RowOut]) -> Table:
    """Return the rates by context and concurrency; cells without one are left out, as that tool does."""
    table: Table = {}
    for row in rows:
        if row.has_rate:
            table.setdefault(str(row.context_tokens), {})[str(row.concurrency)] = row.aggregate_tps
    return table


def _hardware(result: SpeedResult) -> dict[str, float]:
    seen = [row.values.gpu for row in result.rows if row.values is not None and row.values.gpu is not None]
    hottest = [gpu.all_gpus.temperature_max_c for gpu in seen if gpu.all_gpus.temperature_max_c is not None]
    if not seen:
        return {}
    return {
        "gpu_count": max(len(gpu.gpus) for gpu in seen),
        **({"temp_max_c": max(hottest)} if hottest else {}),
    }
