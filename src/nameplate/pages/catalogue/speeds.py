"""The numbers of a speed matrix as ratings: every cell, and the best ones with the cells they were chosen from."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from nameplate.contract.matrix import exact_label
from nameplate.measure.speed_result import CellRow, SpeedResult
from nameplate.pages.catalogue.entry import Measure, Rating
from nameplate.pages.catalogue.terms import conditions, extent, matrix_conditions
from nameplate.report.safe import safe
from nameplate.verdict.cell import CellStatus

_LIMIT = 240


def speed_ratings(result: SpeedResult) -> Iterator[Rating]:
    """Return the best numbers first, then every cell of decode and prefill with its status."""
    under, alone_under = _under(result), _under_alone(result)
    decode = [_cell(row, under) for row in result.rows_of("decode")]
    alone = [_one_user(row, under) for row in result.rows_of("decode") if row.concurrency == 1]
    prefill = [_prefill(row, alone_under) for row in result.rows_of("prefill")]
    contexts, levels, lengths = _tried(result)
    grid = safe(f"{under}, {extent(contexts, levels)}", _LIMIT)
    first = safe(f"{under}, of {'/'.join(map(exact_label, contexts))}", _LIMIT)
    longest = safe(f"{alone_under}, of {'/'.join(map(exact_label, lengths))}", _LIMIT)
    yield from _best(alone, "best_decode", first)
    yield from _best(decode, "best_output", grid)
    yield from _best(prefill, "best_prefill", longest)
    yield from (*decode, *alone, *prefill)


def _under(result: SpeedResult) -> str:
    contract, origin = result.contract, result.origin
    if contract is None or contract.speed is None:
        return safe(f"as {origin.tool} measures" if origin is not None else "not stated", _LIMIT)
    return safe(", ".join((*matrix_conditions(contract.speed), conditions(contract))), _LIMIT)


def _under_alone(result: SpeedResult) -> str:
    """Say what prefills depend on, which have no window."""
    return _under(result) if result.contract is None else conditions(result.contract, alone=True)


def _tried(result: SpeedResult) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    decode, prefill = result.rows_of("decode"), result.rows_of("prefill")
    return (
        tuple(sorted({row.context_tokens for row in decode})),
        tuple(sorted({row.concurrency for row in decode})),
        tuple(sorted({row.context_tokens for row in prefill})),
    )


def _best(ratings: list[Rating], measure: str, under: str) -> Iterator[Rating]:
    known = [(rating.value, rating) for rating in ratings if rating.value is not None]
    if known:
        best = max(known, key=lambda pair: pair[0])[1]
        yield structs.replace(best, measure=measure, of="", under=under, detail=best.of)


def _cell(row: CellRow, under: str) -> Rating:
    of = f"{safe(row.label, 40)} context x {row.concurrency}"
    return _rating(row, "output", of, under, _rate(row))


def _one_user(row: CellRow, under: str) -> Rating:
    per_user = None if row.values is None or row.values.per_user is None else row.values.per_user.p50
    # At one stream the whole is the user's; imported matrices tell no more.
    return _rating(
        row, "decode", f"{safe(row.label, 40)} context", under, _rate(row) if per_user is None else per_user
    )


def _prefill(row: CellRow, under: str) -> Rating:
    return _rating(row, "prefill", f"{row.context_tokens:,} tokens", under, _rate(row))


def _rate(row: CellRow) -> float | None:
    return None if row.values is None else row.values.tokens_per_s


def _rating(row: CellRow, measure: Measure, of: str, under: str, value: float | None) -> Rating:
    """Return a cell's number as a rating; status beats number."""
    valid = row.status is CellStatus.valid
    return Rating(
        measure=measure, of=of, under=under, value=value if valid else None, unit="tok/s", status=row.status
    )
