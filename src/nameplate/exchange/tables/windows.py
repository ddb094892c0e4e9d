"""The table of windows: a row a window of a soak, with what server and client said meanwhile.

Latencies are of what happened in the window: a request that is still open is in none of them. `kv_usage` is a share.

Version history of `nameplate.windows`: 1 - first.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nameplate.contract.errors import CallerError
from nameplate.evidence import layout
from nameplate.exchange.subject import Subject
from nameplate.exchange.tables.column import Column, Kind, Table, at, column, distribution, table_of
from nameplate.measure.soak.result import SoakResult
from nameplate.measure.soak.window import WindowResult
from nameplate.measure.soak_record import SoakRecord, decode_soak_record

SCHEMA = "nameplate.windows/1"

_FIELDS: tuple[tuple[str, Kind], ...] = (
    ("begin_ns", "int"), ("end_ns", "int"), ("observed_ns", "int"), ("begin_wall_ns", "int"), ("load", "name"),
    ("part", "int"), ("partial", "flag"), ("notes", "texts"), ("sent", "int"), ("completed", "int"),
)  # fmt: skip
_AFTER: tuple[tuple[str, Kind], ...] = (
    ("cancelled", "int"), ("output_tokens", "float"), ("estimated", "flag"), ("output_tokens_per_s", "float"),
    ("input_tokens", "int"), ("input_tokens_per_s", "float"), ("requests_per_s", "float"),
)  # fmt: skip
_TIMES = ("ttft", "ttft_from_schedule", "itl", "e2e", "send_lag")
_SERVER: tuple[tuple[str, Kind], ...] = (
    ("scrapes", "int"), ("scrape_failures", "int"), ("preemptions", "int"), ("requests", "int"),
    ("prompt_tokens", "int"), ("output_tokens", "int"), ("cache_hits", "int"), ("timed", "int"),
    ("queue_mean_s", "float"), ("prefill_mean_s", "float"),
)  # fmt: skip
_GAUGES = ("running", "waiting", "kv_usage")
_CLIENT = ("memory_bytes", "descriptors", "backlog", "queued_blocks")


class _Window(Struct, frozen=True):
    segment: str
    window: WindowResult


def soak_record(subject: Subject) -> SoakRecord:
    """Read a soak's record."""
    return decode_soak_record((subject.directory / layout.SOAK).read_bytes())


def soak_result(subject: Subject) -> SoakResult:
    """Read what a soak came to so far; CallerError where it came to nothing yet."""
    result = soak_record(subject).result
    if result is None:
        raise CallerError(
            f"{subject.directory} is a soak without a window yet.", hint="Wait for its first window."
        )
    return result


def windows_of(subject: Subject) -> Table:
    """Return all windows of a soak, segment by segment."""
    return table_of(SCHEMA, _columns(), _windows(soak_result(subject)), subject.about())


def _windows(result: SoakResult) -> Iterator[_Window]:
    for segment in result.segments:
        for window in segment.windows:
            yield _Window(segment.segment, window)


def _columns() -> list[Column[_Window]]:
    found: list[Column[_Window]] = [column("segment", "name"), column("window", "int", "window.number")]
    found += [column(name, kind, f"window.{name}") for name, kind in _FIELDS]
    found += [
        Column("failed", "int", lambda held: sum(held.window.failed.values())),
        Column("failed_by", "texts", _failed_by),
    ]
    found += [column(name, kind, f"window.{name}") for name, kind in _AFTER]
    for name in _TIMES:
        found += distribution(name, at(f"window.{name}"))
    found += _spread("outstanding", "window.outstanding")
    found += [column(f"server_{name}", kind, f"window.server.{name}") for name, kind in _SERVER]
    for name in _GAUGES:
        found += _spread(f"server_{name}", f"window.server.{name}")
    found.append(column("client_samples", "int", "window.client.samples"))
    for name in _CLIENT:
        found += _spread(f"client_{name}", f"window.client.{name}")
    return found


def _failed_by(held: _Window) -> tuple[str, ...]:
    return tuple(f"{name}: {count}" for name, count in sorted(held.window.failed.items()))


def _spread(name: str, path: str) -> list[Column[_Window]]:
    return [column(f"{name}_{key}", "float", f"{path}.{key}") for key in ("mean", "min", "max")]
