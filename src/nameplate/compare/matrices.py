"""The cells of a speed matrix: each is one measurement a study, whatever number of requests stand behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nameplate.compare.measures import Statistic
from nameplate.compare.side import Cell, Member, Observed
from nameplate.compare.trials import distribution
from nameplate.exchange.inference_bench.definitions import FIELDS
from nameplate.measure.speed_result import CellRow, CellValues, SpeedResult
from nameplate.statistics.percentile import Distribution

# A prefill cell's own number is a rate of prompts; the others' is one of output.
_MAIN = {"prefill": "prefill_rate", "decode": "output_rate", "burst": "output_rate", "mixed": "output_rate"}


def cells_of_matrix(result: SpeedResult) -> tuple[Cell, ...]:
    """Return every planned cell; one that is not valid has no member, and says its status."""
    contract, theirs = result.contract, dict(_meanings(result))
    return tuple(
        Cell(
            group=row.kind,
            shape="",
            load=f"{row.label} x {row.concurrency}",
            terms={} if row.output_tokens is None else {"load.output_tokens": row.output_tokens},
            members=(
                Member(
                    key=row.trials[-1] if row.trials else f"{row.kind} {row.label} x {row.concurrency}",
                    nonce=contract.nonce if contract is not None else "",
                    observed=dict(_observed(row, row.values)),
                    session=result.identity.text("process_start_time_s"),
                    meanings=theirs,
                ),
            )
            if row.status == "valid" and row.values is not None
            else (),
            left_out=() if row.status == "valid" else (f"{row.status}: {row.reason}",),
        )
        for row in result.rows
    )


def tool_of(result: SpeedResult) -> str:
    """Name whose numbers a matrix holds."""
    return result.tool if result.origin is None else f"{result.origin.tool} {result.origin.version}".strip()


def _observed(row: CellRow, values: CellValues) -> Iterator[tuple[Statistic, Observed]]:
    if values.tokens_per_s is not None:
        n = values.prefill.n if values.prefill is not None else values.requests
        yield Statistic(_MAIN[row.kind]), Observed(values.tokens_per_s, n)
    held: Mapping[str, Distribution | None] = {
        "ttft": values.ttft,
        "itl": values.itl,
        "chunk_gaps": values.chunk_gaps,
        "per_user": values.per_user,
        "e2e": values.e2e,
    }
    for name, found in held.items():
        if found is not None:
            for percentile, seen in distribution(found).items():
                yield Statistic(name, percentile), seen


def _meanings(result: SpeedResult) -> Iterator[tuple[str, str]]:
    """Yield what measures of an imported matrix mean where they come from."""
    if result.origin is None:
        return
    ours = {"tokens_per_s": "output_rate", "prefill": "prefill_rate"}
    for field in FIELDS:
        if field.field in result.origin.definitions:
            name = ours.get(field.ours, field.ours)
            # The first of several is the number itself, the others say more of it.
            if name not in ours:
                yield name, f"{field.field}: {result.origin.definitions[field.field]}"
