"""Which trial a row belongs to: the columns that the tables of requests and of trials begin with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from nameplate.contract.plan import TrialPlan
from nameplate.evidence import layout
from nameplate.evidence.header import TrialHeader
from nameplate.evidence.reader import TrialReader
from nameplate.exchange.tables.column import Column, at
from nameplate.measure.result import TrialResult, decode

Row = TypeVar("Row")


class Origin(Struct, frozen=True):
    """Hold a trial; `result` is None of a segment of a soak, which has no verdict of its own."""

    trial: str
    header: TrialHeader
    result: TrialResult | None

    @property
    def plan(self) -> TrialPlan:
        return self.header.plan

    @property
    def wall_offset_ns(self) -> int:
        """Return what makes wall time of the trial's monotonic time."""
        return self.header.started.wall_ns - self.header.started.monotonic_ns


def origin_of(directory: Path) -> Origin:
    """Read which trial a directory is, and what became of it."""
    header = TrialReader(directory).header()
    if header.plan.soak is not None:
        return Origin(directory.name, header, None)
    return Origin(directory.name, header, decode((directory / layout.RESULT).read_bytes()))


def origin_columns(of: Callable[[Row], Origin]) -> list[Column[Row]]:
    """Return the columns that name a row's trial.

    `level` is that of a capacity or rate study, `concurrency` of a closed loop alone, `rate_per_s` of an open one.
    """

    return [
        Column("trial", "name", lambda row: of(row).trial),
        Column("role", "name", lambda row: of(row).plan.role),
        Column("trial_status", "name", lambda row: at("result.verdict.status")(of(row))),
        Column("attempt", "int", lambda row: of(row).plan.attempt),
        Column("level", "int", lambda row: _level(of(row).plan)),
        Column("concurrency", "int", lambda row: _concurrency(of(row).plan)),
        Column("rate_per_s", "float", lambda row: at("plan.arrivals.rate")(of(row))),
        Column("shape_input_tokens", "int", lambda row: of(row).plan.shape.input_tokens),
        Column("shape_output_tokens", "int", lambda row: of(row).plan.shape.output_tokens),
    ]


def _level(plan: TrialPlan) -> int | None:
    return plan.level if plan.arrivals is None or plan.rate_level is not None else None


def _concurrency(plan: TrialPlan) -> int | None:
    return plan.concurrency if plan.arrivals is None else None
