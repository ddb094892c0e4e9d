"""From a result file of llm-inference-bench to our result: its numbers in our units, its cells judged anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import structs

from nameplate.contract.identity import Fact, Identity
from nameplate.contract.limits import ServerLimits
from nameplate.contract.matrix import CellPlan, label
from nameplate.exchange.inference_bench.claims import claim_of, contradicted
from nameplate.exchange.inference_bench.definitions import definitions
from nameplate.exchange.inference_bench.events import Log, read_log
from nameplate.exchange.inference_bench.foreign import TOOL, Cell, Document, Told
from nameplate.exchange.inference_bench.grid import unwritten
from nameplate.exchange.inference_bench.imported_host import host_of
from nameplate.exchange.inference_bench.imported_phases import mixed_row, prefill_row
from nameplate.exchange.inference_bench.imported_values import prompts_of, values_of
from nameplate.exchange.inference_bench.rejudge import rejudge
from nameplate.exchange.inference_bench.sharing import stairs_of
from nameplate.exchange.redact import redact
from nameplate.measure.speed_result import CellRow, Origin, SpeedResult
from nameplate.verdict.cell import CellStatus, CellVerdict

_MISSING_SHOWN = 12
_KINDS = ("prefill", "decode", "burst", "mixed")


def imported(document: Document, file: str, sha256: str, tool: str) -> SpeedResult:
    """Return our result of a file; `tool` names this program, `file` and `sha256` what was read."""
    setup, log = document.setup, read_log(document.events)
    rows, doubled = _rows(document, log)
    return SpeedResult(
        tool=tool,
        origin=Origin(
            tool=TOOL,
            version=f"{setup.version}, written by {setup.generator}" if setup.generator else setup.version,
            file=file,
            sha256=sha256,
            definitions=definitions(document),
            metadata=redact(dict(document.metadata)),
        ),
        target=redact(setup.server),
        model=setup.model,
        limits=ServerLimits(context_tokens=log.context_limit, kv_tokens=setup.pool_tokens),
        identity=_identity(document, log),
        hosts=host_of(document.hardware),
        rows=rows,
        warnings=(*_warnings(document, log), *doubled),
        finished=not any(row.status is CellStatus.interrupted for row in rows),
    )


def _rows(document: Document, log: Log) -> tuple[tuple[CellRow, ...], tuple[str, ...]]:
    told = {CellPlan(t.kind, t.context_tokens, t.concurrency): t for t in document.told}
    found: dict[CellPlan, CellRow] = {}
    doubled: list[str] = []
    measured = [_cell_row(cell, document) for cell in document.cells]
    measured += [prefill_row(entry) for entry in document.prefill]
    measured += [mixed_row(entry) for entry in document.mixed]
    for row in measured:
        plan = plan_of(row)
        if plan in found:
            doubled.append(f"The file has more than one row for {plan}: the last one counts.")
        found[plan] = _as_told(row, told.get(plan))
    # A file of ours names every planned cell itself; its grid says nothing beyond that.
    for plan, verdict in unwritten(document, log, found) if not told else ():
        found[plan] = _as_told(_empty(plan, verdict), told.get(plan))
    for plan, tale in told.items():
        if plan not in found:
            found[plan] = _as_told(_empty(plan, CellVerdict(tale.status, tale.reason)), tale)
    return tuple(sorted(found.values(), key=_order(found))), tuple(doubled)


def plan_of(row: CellRow) -> CellPlan:
    return CellPlan(row.kind, row.context_tokens, row.concurrency)


def _order(found: Iterable[CellPlan]) -> Callable[[CellRow], tuple[int, ...]]:
    """Order as `telling_order` does, without the grid: a file can name many more lengths than cells."""
    plans = list(found)
    column = min((plan.concurrency for plan in plans), default=1)
    line = min((plan.context_tokens for plan in plans), default=0)

    def place(row: CellRow) -> tuple[int, ...]:
        part = 0 if row.concurrency == column else 1 if row.context_tokens == line else 2
        return _KINDS.index(row.kind), part, row.context_tokens, row.concurrency

    return place


def _cell_row(cell: Cell, document: Document) -> CellRow:
    verdict = rejudge(cell, document.setup)
    values = values_of(cell, document.setup)
    return CellRow(
        kind="burst" if cell.burst else "decode",
        label=label(cell.context),
        context_tokens=cell.context,
        concurrency=cell.concurrency,
        output_tokens=document.setup.max_tokens,
        status=verdict.status,
        reason=verdict.reason,
        notes=verdict.notes,
        prompt_tokens=prompts_of(cell),
        ready_s=cell.warmup_s if not cell.timed_out else None,
        ready_deadline_s=cell.warmup_s if cell.timed_out else None,
        values=values if verdict.valid else None,
        discarded=values if not verdict.valid else None,
    )


def _empty(plan: CellPlan, verdict: CellVerdict) -> CellRow:
    return CellRow(
        kind=plan.kind,
        label=label(plan.context_tokens),
        context_tokens=plan.context_tokens,
        concurrency=plan.concurrency,
        status=verdict.status,
        reason=verdict.reason,
        notes=verdict.notes,
    )


def _as_told(row: CellRow, told: Told | None) -> CellRow:
    """Take the status that we gave the cell when we wrote the file, which knows more than the file shows."""
    if told is None:
        return row
    numbers = row.values if row.values is not None else row.discarded
    valid = told.status is CellStatus.valid
    return structs.replace(
        row,
        status=told.status,
        reason=told.reason,
        notes=told.notes,
        values=numbers if valid else None,
        discarded=None if valid else numbers,
    )


def _identity(document: Document, log: Log) -> Identity:
    setup = document.setup
    pool = "event_log: given by hand" if log.pool_by_hand else "metadata.max_total_tokens"
    known = (
        ("engine", setup.engine or None, "metadata.engine"),
        ("version", log.engine_version, "event_log"),
        ("model", setup.model or None, "metadata.model"),
        ("context_limit_tokens", log.context_limit, "event_log"),
        ("kv_tokens", setup.pool_tokens, pool),
    )
    return Identity({name: Fact(value, source) for name, value, source in known if value is not None})


def _warnings(document: Document, log: Log) -> list[str]:
    setup = document.setup
    said = []
    unshared = [stairs for stairs in stairs_of(document) if stairs.unshared]
    if unshared:
        share = 100 - (setup.unique_percent or 0.0)
        said.append(
            f"The {share:g}% sharing of prompts did not hold everywhere: "
            + "; ".join(map(str, unshared))
            + ". Those cells are of prompts that were prefilled whole."
        )
    said += _claims(document, log)
    if setup.metrics is False:
        said.append("The server's metrics were not available: running and waiting requests are unknown.")
    if document.missing:
        names = ", ".join(document.missing[:_MISSING_SHOWN])
        more = len(document.missing) - _MISSING_SHOWN
        said.append(
            f"The file lacks {names}{f' and {more} more' if more > 0 else ''}: those values are null."
        )
    said += [f"Mixed prefill at {label(m.context)}: {text}" for m in document.mixed for text in m.warnings]
    return said


def _claims(document: Document, log: Log) -> list[str]:
    """Say in how many cells the pool was much fuller than the tool's arithmetic allows."""
    setup = document.setup
    weighed = [(cell, claim_of(cell, setup)) for cell in document.cells if cell.rate and cell.rate > 0]
    against = [(cell, claim) for cell, claim in weighed if claim is not None and contradicted(cell, claim)]
    if not against:
        return []
    cell, claim = against[0]
    by_hand = ", which was given by hand" if log.pool_by_hand else ""
    said = (
        f"The KV claim is contradicted in {len(against)} of {len(weighed)} cells, {label(cell.context)} x "
        f"{cell.concurrency} for one: it should need {claim}, and the server's pool was {cell.utilisation or 0:.0%} "
        f"full. Either prompts were not shared as planned, or the pool is not {claim.pool:,} tokens{by_hand}: the "
        "tool's over-capacity rule cannot be relied on here."
    )
    return [said]
