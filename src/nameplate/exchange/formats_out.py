"""What can be written from what: every kind of directory by every format, and the tables that CSV and Parquet hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from nameplate.contract.errors import CallerError
from nameplate.exchange.subject import Kind

Format = Literal["csv", "parquet", "prometheus", "aiperf", "llm-d", "llm-inference-bench"]
TableName = Literal["requests", "trials", "measures", "windows", "cells"]

FORMATS: tuple[Format, ...] = get_args(Format)
TABLES: tuple[TableName, ...] = get_args(TableName)

_OF_TRIALS: tuple[TableName, ...] = ("requests", "trials", "measures")
TABLES_OF: Mapping[Kind, tuple[TableName, ...]] = {
    "trial": _OF_TRIALS,
    "capacity": _OF_TRIALS,
    "rate": _OF_TRIALS,
    "curve": _OF_TRIALS,
    # Their trials are held or cut as planned: the numbers of a trial are those of its cell.
    "speed": ("cells", "requests"),
    "soak": ("windows", "requests"),
    "imported runs": ("measures",),
    "imported matrix": ("cells",),
}
# Beside tables, which every kind has, and OpenMetrics text.
_FURTHER: Mapping[Kind, tuple[Format, ...]] = {
    "trial": ("aiperf", "llm-d"),
    "capacity": ("aiperf", "llm-d"),
    "rate": ("aiperf", "llm-d"),
    "curve": ("aiperf", "llm-d"),
    "speed": ("llm-inference-bench",),
    "soak": ("aiperf", "llm-d"),
    "imported runs": (),
    "imported matrix": ("llm-inference-bench",),
}
# What a person who names no table is given: measures to read, requests to compute with.
_FIRST: Mapping[Format, TableName] = {"csv": "measures", "parquet": "requests"}


def formats_of(kind: Kind) -> tuple[Format, ...]:
    """Return the formats that a kind of directory can be written in."""
    further = _FURTHER[kind]
    return tuple(name for name in FORMATS if name in ("csv", "parquet", "prometheus") or name in further)


def check_format(directory: Path, kind: Kind, format_: Format) -> None:
    """Raise CallerError, saying what can be used instead, where the format does not take such a directory."""
    known = formats_of(kind)
    if format_ not in known:
        raise CallerError(
            f"{directory} is {_said(kind)}, which {format_} has no place for.",
            why=_WHY[format_],
            hint=f"It can be written as {', '.join(known)}.",
        )


def table_for(directory: Path, kind: Kind, format_: Format, asked: TableName | None) -> TableName:
    """Return which table is written; CallerError where the directory has no such table."""
    known = TABLES_OF[kind]
    if asked is None:
        return _FIRST[format_] if known == _OF_TRIALS else known[0]
    if asked not in known:
        raise CallerError(
            f"{directory} is {_said(kind)}, which has no table of {asked}.",
            hint=f"It has: {', '.join(known)} (--table).",
        )
    return asked


def _said(kind: Kind) -> str:
    return {
        "trial": "a trial",
        "imported runs": "an imported load test",
        "imported matrix": "an imported matrix",
        "soak": "a soak",
    }.get(kind, f"a {kind} study")


_WHY: Mapping[Format, str] = {
    "aiperf": "AIPerf's summary holds one load test of ours; cells of held streams and other tools' numbers have other "
    "definitions.",
    "llm-d": "A report holds one load test of ours; cells of held streams and other tools' numbers have other "
    "definitions.",
    "llm-inference-bench": "Its files hold matrices of context length by concurrency.",
}
