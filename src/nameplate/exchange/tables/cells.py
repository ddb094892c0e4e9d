"""The table of cells: a row a planned cell of a speed study or an imported matrix.

A cell that is not valid has its status and reason and no number: status beats number.

Version history of `nameplate.cells`: 1 - first.
"""

from __future__ import annotations

from nameplate.evidence import layout
from nameplate.exchange.subject import Subject
from nameplate.exchange.tables.column import Column, Kind, Table, at, column, distribution, table_of
from nameplate.measure.speed_result import CellRow, SpeedResult, decode_speed

SCHEMA = "nameplate.cells/1"

_FIELDS: tuple[tuple[str, Kind], ...] = (
    ("kind", "name"), ("label", "text"), ("context_tokens", "int"), ("concurrency", "int"), ("output_tokens", "int"),
    ("status", "name"), ("reason", "text"), ("notes", "texts"),
)  # fmt: skip
_AFTER: tuple[tuple[str, Kind], ...] = (
    ("cached_mean", "float"), ("ready_s", "float"), ("ready_deadline_s", "float"), ("trials", "texts"),
)  # fmt: skip
_VALUES: tuple[tuple[str, Kind, str], ...] = (
    ("tokens_per_s", "float", "tokens_per_s"), ("estimated", "flag", "estimated"), ("window_s", "float", "window_s"),
    ("window_output_tokens", "float", "output_tokens"), ("requests", "int", "requests"),
    ("completed", "int", "completed"), ("tokens_per_chunk", "float", "tokens_per_chunk"),
    ("in_flight", "float", "in_flight"), ("queue_share", "float", "queue_share"), ("samples", "int", "samples"),
    ("preemptions", "int", "preemptions"), ("restarts", "int", "restarts"),
    ("looped_streams", "int", "looped_streams"), ("judged_streams", "int", "judged_streams"),
    ("alone_ttft_ns", "float", "alone_ttft_ns"), ("slowdown", "float", "slowdown"),
    ("energy_per_token_j", "float", "energy_per_token_j"), ("prefill_n", "int", "prefill.n"),
    ("prefill_low_per_s", "float", "prefill.low"), ("prefill_high_per_s", "float", "prefill.high"),
    ("prefill_ttft_median_ns", "float", "prefill.ttft_median_ns"), ("mixed_ttft_ns", "float", "mixed.ttft_ns"),
    ("mixed_tokens_before_per_s", "float", "mixed.before.rate"),
    ("mixed_tokens_during_per_s", "float", "mixed.during.rate"),
    ("mixed_tokens_after_per_s", "float", "mixed.after.rate"),
)  # fmt: skip
_TIMES = ("ttft", "second_output", "itl", "chunk_gaps", "e2e")
_RATES = {"tokens_per_user": "per_user", "tokens_per_user_e2e": "e2e_per_user"}
_GAUGES = ("running", "waiting", "kv_usage")


def speed_result(subject: Subject) -> SpeedResult:
    """Read a speed study's result."""
    return decode_speed((subject.directory / layout.RESULT).read_bytes())


def cells_of(subject: Subject) -> Table:
    """Return all planned cells."""
    result = speed_result(subject)
    about = {**subject.about(), "model": result.model}
    if result.origin is not None:
        about |= {"origin": f"{result.origin.tool} {result.origin.version}".strip()}
    return table_of(SCHEMA, _columns(), result.rows, about)


def _columns() -> list[Column[CellRow]]:
    found: list[Column[CellRow]] = [column(name, kind) for name, kind in _FIELDS]
    for name in ("prompt_tokens", "cached_tokens"):
        found += [column(f"{name}_{key}", "int", f"{name}.{key}") for key in ("low", "high")]
    found += [column(name, kind) for name, kind in _AFTER]
    found += [column(name, kind, f"values.{path}") for name, kind, path in _VALUES]
    for name in _TIMES:
        found += distribution(name, at(f"values.{name}"))
    for name, path in _RATES.items():
        found += distribution(name, at(f"values.{path}"), "per_s")
    for name in _GAUGES:
        found += [column(f"server_{name}_{key}", "float", f"values.{name}.{key}") for key in ("mean", "max")]
    return found
