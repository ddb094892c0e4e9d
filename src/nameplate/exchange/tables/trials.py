"""The table of trials: a row a trial, its counts, rates and latencies over all its measured requests.

An invalid trial has its status and reasons and no number: status beats number. Latencies are nanoseconds, with failed
and cut requests at infinity.

Version history of `nameplate.trials`: 1 - first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nameplate.exchange.subject import Subject
from nameplate.exchange.tables.column import Column, Kind, Table, at, column, distribution, table_of
from nameplate.exchange.tables.origin import Origin, origin_columns, origin_of
from nameplate.measure.measurement import Measurement
from nameplate.statistics.percentile import Distribution

SCHEMA = "nameplate.trials/1"

_COUNTS = ("sent", "ok", "failed", "cancelled", "unfinished")
_NUMBERS: tuple[tuple[str, Kind, str], ...] = (
    ("output_tokens_whole_run_per_s", "float", "rates.tokens_whole.per_s"),
    ("output_tokens_steady_per_s", "float", "rates.tokens_steady.per_s"),
    ("requests_whole_run_per_s", "float", "rates.requests_whole.per_s"),
    ("requests_steady_per_s", "float", "rates.requests_steady.per_s"),
    ("effective_concurrency", "float", "concurrency.mean_whole_run"),
    ("server_running_mean", "float", "server.running.mean"),
    ("server_waiting_mean", "float", "server.waiting.mean"),
    ("server_kv_usage_mean", "float", "server.kv_usage.mean"),
    ("server_preemptions", "int", "server.preemptions"),
)
_TIMES = ("ttft", "ttft_from_schedule", "first_answer", "itl", "tpot", "chunk_gaps", "longest_gap", "e2e")


def trials_of(subject: Subject) -> Table:
    """Return all trials with a result."""
    return table_of(SCHEMA, _columns(), _trials(subject), subject.about())


def _trials(subject: Subject) -> Iterator[Origin]:
    for path in subject.trials:
        yield origin_of(path)


def _columns() -> list[Column[Origin]]:
    found: list[Column[Origin]] = origin_columns(lambda origin: origin)
    found += [
        column("reasons", "texts", "result.verdict.reasons"),
        column("started_wall_ns", "int", "header.started.wall_ns"),
        column("elapsed_s", "float", "result.elapsed_s"),
    ]
    found += [column(name, "int", f"result.measurement.correctness.{name}") for name in _COUNTS]
    found += [_valid(name, kind, path) for name, kind, path in _NUMBERS]
    for name in _TIMES:
        found += distribution(name, _latency(name))
    return found + distribution("output_tokens_per_user", _latency("per_user"), "per_s")


def _measurement(origin: Origin) -> Measurement | None:
    result = origin.result
    return None if result is None or result.verdict.status == "invalid" else result.measurement


def _valid(name: str, kind: Kind, path: str) -> Column[Origin]:
    reach = at(path)
    return Column(name, kind, lambda origin: reach(_measurement(origin)))


def _latency(name: str) -> Callable[[Origin], Distribution | None]:
    def value(origin: Origin) -> Distribution | None:
        # In a closed loop a request is due when its slot is free: the two differ by our own lateness alone.
        if name == "ttft_from_schedule" and origin.plan.arrivals is None:
            return None
        found: Distribution | None = at(f"latencies.whole.{name}")(_measurement(origin))
        return found

    return value
