"""The table of requests: a row a request, as `requests.jsonl` has it, with its trial before it.

Times that end in `_ns` are the trial's own monotonic nanoseconds, latencies nanoseconds; `sent_wall_ns` is the send by
the wall clock. The latencies are computed from the row by our definitions. Rows stand in the order in which the
requests ended, trial by trial.

Version history of `nameplate.requests`: 1 - first.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nameplate.evidence.reader import TrialReader
from nameplate.evidence.rows import RequestRow
from nameplate.exchange.subject import Subject
from nameplate.exchange.tables.column import Column, Kind, Table, column, table_of
from nameplate.exchange.tables.origin import Origin, origin_columns, origin_of

SCHEMA = "nameplate.requests/1"

# Fields of a row as they are, by their kind; `class_` is `class`, and `loop` is three columns.
_FIELDS: tuple[tuple[str, Kind], ...] = (
    ("index", "int"), ("phase", "name"), ("class_", "name"), ("slot", "int"),
    ("scheduled_ns", "int"), ("sent_ns", "int"), ("body_sent_ns", "int"), ("first_output_ns", "int"),
    ("first_answer_ns", "int"), ("second_output_ns", "int"), ("last_output_ns", "int"), ("finish_ns", "int"),
    ("end_ns", "int"), ("outcome", "name"), ("http_status", "int"), ("finish_reason", "name"),
    ("asked_output_tokens", "int"), ("prompt_tokens", "int"), ("cached_tokens", "int"), ("reasoning_tokens", "int"),
    ("output_tokens", "int"), ("output_tokens_source", "name"), ("output_events", "int"),
    ("first_event_tokens", "int"), ("longest_gap_ns", "int"), ("output_bytes", "int"),
    ("longest_channel_chars", "int"), ("prompt_sha256", "text"), ("prompt_head_sha256", "text"),
    ("output_sha256", "text"), ("error", "text"), ("warnings", "texts"), ("connect_ns", "int"), ("idle_ns", "int"),
    ("worker", "int"),
)  # fmt: skip


class _Request(Struct, frozen=True):
    origin: Origin
    row: RequestRow


def requests_of(subject: Subject) -> Table:
    """Return the requests of all trials with a result."""
    return table_of(SCHEMA, _columns(), _requests(subject), subject.about())


def _requests(subject: Subject) -> Iterator[_Request]:
    for path in subject.trials:
        origin = origin_of(path)
        for row in TrialReader(path).each_row():
            yield _Request(origin, row)


def _columns() -> list[Column[_Request]]:
    found: list[Column[_Request]] = origin_columns(lambda request: request.origin)
    found += [column(name.rstrip("_"), kind, f"row.{name}") for name, kind in _FIELDS]
    found += [
        column("loop_channel", "name", "row.loop.channel"),
        column("loop_period_chars", "int", "row.loop.period_chars"),
        column("loop_length_chars", "int", "row.loop.length_chars"),
        column("measured", "flag", "row.measured"),
        Column("sent_wall_ns", "int", _wall),
        Column("send_lag_ns", "int", lambda request: _since(request, "sent_ns")),
        column("ttft_ns", "int", "row.ttft_ns"),
        Column("ttft_from_schedule_ns", "int", lambda request: _since(request, "first_output_ns")),
        column("e2e_ns", "int", "row.e2e_ns"),
        column("itl_ns", "float", "row.itl_ns"),
        column("tpot_ns", "float", "row.tpot_ns"),
    ]
    return found


def _wall(request: _Request) -> int | None:
    sent = request.row.sent_ns
    return None if sent is None else sent + request.origin.wall_offset_ns


def _since(request: _Request, name: str) -> int | None:
    """Return an event - when the request was due."""
    event: int | None = getattr(request.row, name)
    return None if event is None else event - request.row.scheduled_ns
