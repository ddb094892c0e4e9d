"""The table of measures: a row a measure of a run, ours or another tool's, with its definition.

Times are nanoseconds, rates a second. An invalid trial of ours has one row without a measure: status beats number.

Version history of `nameplate.measures`: 1 - first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from nameplate.exchange.peers.run import Measure, Run
from nameplate.exchange.peers.sources import OURS
from nameplate.exchange.tables.column import PERCENTILES, Column, Table, Value, column, table_of

SCHEMA = "nameplate.measures/1"


class _Held(Struct, frozen=True):
    run: Run
    measure: Measure | None


def measures_of(runs: Sequence[Run], about: Mapping[str, str]) -> Table:
    """Return all measures of all runs."""
    return table_of(SCHEMA, _columns(), _held(runs), about)


def _held(runs: Sequence[Run]) -> Iterable[_Held]:
    for run in runs:
        if run.tool == OURS and run.judged is not None and run.judged.verdict.status == "invalid":
            yield _Held(run, None)
        else:
            yield from (_Held(run, measure) for measure in run.measures)


def _columns() -> list[Column[_Held]]:
    return [
        column("run", "name", "run.label"),
        column("tool", "name", "run.tool"),
        column("version", "name", "run.version"),
        column("model", "name", "run.model"),
        column("endpoint", "name", "run.endpoint"),
        column("concurrency", "int", "run.load.concurrency"),
        column("rate_per_s", "float", "run.load.rate_per_s"),
        column("requests", "int", "run.counts.requests"),
        column("completed", "int", "run.counts.completed"),
        column("failed", "int", "run.counts.failed"),
        column("verdict", "name", "run.judged.verdict.status"),
        column("measure", "name", "measure.name"),
        column("unit", "name", "measure.unit"),
        column("n", "int", "measure.n"),
        *(column(name, "float", f"measure.{name}") for name in ("mean", "std", "min", "max")),
        *(Column(key, "float", _percentile(key)) for key in PERCENTILES),
        column("unsupported", "texts", "measure.unsupported"),
        Column("definition", "text", _definition),
    ]


def _percentile(key: str) -> Callable[[_Held], Value]:
    def value(held: _Held) -> Value:
        if held.measure is None:
            return None
        return math.inf if key in held.measure.infinite else held.measure.percentiles.get(key)

    return value


def _definition(held: _Held) -> str | None:
    definition = held.run.definitions.get(held.measure.name) if held.measure is not None else None
    return None if definition is None else definition.meaning
