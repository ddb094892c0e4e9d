"""A table: typed columns, whose names carry their unit, and rows that come as they are read.

CSV and Parquet hold the same columns in the same order. Absent is null (an empty cell), never zero; a percentile that
reaches requests which count as never is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from nameplate.statistics.percentile import Distribution

Row = TypeVar("Row")

# `name` is a text of few values, `texts` a list of texts.
Kind = Literal["int", "float", "text", "name", "flag", "texts"]
Value = int | float | str | bool | tuple[str, ...] | None

PERCENTILES = ("p50", "p90", "p95", "p99")


class Column(Struct, Generic[Row], frozen=True):
    """Hold one column: how it is called, what its values are, and how a row gives one."""

    name: str
    kind: Kind
    of: Callable[[Row], Value]


class Table(Struct, frozen=True, kw_only=True):
    """Hold a table: `schema` names its columns and their version, `about` are facts that concern all of it."""

    schema: str
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: Iterator[tuple[Value, ...]]
    about: Mapping[str, str] = {}


def table_of(
    schema: str, columns: Sequence[Column[Row]], rows: Iterable[Row], about: Mapping[str, str]
) -> Table:
    """Return the table of rows, each of which is read when it is asked for."""
    getters = [column.of for column in columns]
    return Table(
        schema=schema,
        names=tuple(column.name for column in columns),
        kinds=tuple(column.kind for column in columns),
        rows=(tuple(getter(row) for getter in getters) for row in rows),
        about=about,
    )


def at(path: str) -> Callable[[Any], Any]:
    """Return how to reach a value through attributes, by their names joined with dots; None where one is None."""
    names = path.split(".")

    def reach(row: Any) -> Any:
        for name in names:
            if row is None:
                return None
            row = getattr(row, name)
        return row

    return reach


def column(name: str, kind: Kind, path: str = "") -> Column[Any]:
    """Return a column that holds the value at a path; by default at its own name."""
    return Column(name, kind, at(path or name))


def distribution(name: str, of: Callable[[Row], Distribution | None], unit: str = "ns") -> list[Column[Row]]:
    """Return the columns of a distribution: how many values, how many never came, mean, extremes and percentiles."""

    def told(key: str) -> Callable[[Row], Value]:
        def value(row: Row) -> Value:
            found = of(row)
            return None if found is None else _statistic(found, key)

        return value

    kept: list[Column[Row]] = [Column(f"{name}_{key}", "int", told(key)) for key in ("n", "censored")]
    return kept + [
        Column(f"{name}_{key}_{unit}", "float", told(key)) for key in ("mean", "min", "max", *PERCENTILES)
    ]


def _statistic(found: Distribution, key: str) -> Value:
    value: Value = getattr(found, key)
    if value is None and key in PERCENTILES and found.n and found.unit == "ns":
        return math.inf
    return value
