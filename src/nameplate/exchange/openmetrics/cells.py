"""Cells of a matrix as metric families: every planned cell with its status, numbers of the valid ones alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nameplate.exchange.openmetrics.family import Family, Sample
from nameplate.exchange.tables.column import PERCENTILES, at
from nameplate.measure.speed_result import CellRow, SpeedResult

_RATES: Mapping[str, tuple[str, str]] = {
    "tokens": ("tokens_per_s", "Tokens a second of a cell: output of decode and burst, prompt of prefill."),
    "user_output_tokens": ("per_user", "1 / ITL of each request."),
}
_TIMES: Mapping[str, str] = {
    "ttft": "Send to the first output.",
    "itl": "(Last output - first) / (output tokens - those of the first event), within the window.",
    "e2e": "Send to the last output.",
}


def families_of(result: SpeedResult) -> Iterator[Family]:
    """Yield the families of a matrix."""
    cells = tuple(Sample({**_labels(result, row), "status": row.status}, 1) for row in result.rows)
    yield Family("nameplate_cell", "info", "", "A planned cell of the matrix with its status.", cells)
    path, says = _RATES["tokens"]
    rates = [(row, at(f"values.{path}")(row)) for row in result.rows]
    yield Family(
        "nameplate_cell_tokens_per_second", "gauge", "", says,
        tuple(Sample(_labels(result, row), rate) for row, rate in rates if rate is not None),
    )  # fmt: skip
    path, says = _RATES["user_output_tokens"]
    yield _distributions(result, "nameplate_cell_user_output_tokens_per_second", "", 1.0, says, path)
    for name, says in _TIMES.items():
        yield _distributions(result, f"nameplate_cell_{name}_seconds", "seconds", 1e9, says, name)


def _distributions(result: SpeedResult, name: str, unit: str, factor: float, says: str, path: str) -> Family:
    samples = [
        Sample({**_labels(result, row), "statistic": key}, value / factor)
        for row in result.rows
        for key in ("mean", "min", "max", *PERCENTILES)
        if (value := _reach(path, key)(row)) is not None
    ]
    return Family(name, "gauge", unit, says, tuple(samples))


def _reach(path: str, key: str) -> Callable[[CellRow], float | None]:
    return at(f"values.{path}.{key}")


def _labels(result: SpeedResult, row: CellRow) -> dict[str, str]:
    return {
        "kind": row.kind,
        "cell": row.label,
        "context_tokens": str(row.context_tokens),
        "concurrency": str(row.concurrency),
        "model": result.model,
    }
