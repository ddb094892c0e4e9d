"""Each status by what a file shows, whatever the tool made of the cell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nameplate.exchange.inference_bench.tests.making import cell, read, result_of
from nameplate.measure.speed_result import CellRow
from nameplate.verdict.cell import CellStatus


def judged(row: dict[str, Any], **metadata: Any) -> CellRow:
    (found,) = result_of(row, **metadata).rows
    return found


TIMED_OUT: dict[str, Any] = {
    "warmup_timed_out": True,
    "ready_reason": "warmup_timeout",
    "avg_running_reqs": 2.0,
    "max_running_reqs": 2,
    "avg_queue_reqs": 2.0,
    "max_queue_reqs": 2,
    "queue_fraction": 1.0,
    "timeout_reason": "running_reqs=2/4",
}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, CellStatus.valid, "4 streams over the whole window"),
        ({"aggregate_tps": -3, "loop_detected": True}, CellStatus.looped, "a stream repeated"),
        (
            {
                "loop_detected": True,
                "loop_diagnostics": [
                    {"status": "suspected", "stream_index": 0},
                    {"status": "confirmed", "stream_index": 1},
                ],
            },
            CellStatus.looped,
            "1 of 4 streams repeated",
        ),
        ({"aggregate_tps": -1}, CellStatus.over_capacity, "not run: 4 at this context would need"),
        ({"aggregate_tps": -2}, CellStatus.skipped, "skipped by the person"),
        ({"aggregate_tps": -9}, CellStatus.skipped, "no known version"),
        ({"aggregate_tps": None}, CellStatus.skipped, "gives no rate"),
        ({"status": "loop"}, CellStatus.looped, "repeated"),
        ({"failure_reason": "stream 2: reset"}, CellStatus.server_error, "stream 2: reset"),
        ({"status": "error"}, CellStatus.server_error, "reports: error"),
        ({"num_errors": 2}, CellStatus.server_error, "2 of 4 streams failed"),
        (
            {"aggregate_tps": 0.0, "client_output_tokens": 0, "total_tokens": 0},
            CellStatus.server_error,
            "no output",
        ),
        ({"aggregate_source": "prometheus_fallback"}, CellStatus.server_error, "whoever it produced it for"),
        (TIMED_OUT, CellStatus.not_ready, "running_reqs=2/4"),
        (TIMED_OUT | {"timeout_reason": "running_reqs=6/4"}, CellStatus.extra_traffic, "6 running of 4"),
        ({"measurement_wall_seconds": 12.0}, CellStatus.interrupted, "12.0 of 30 s"),
        ({"avg_running_reqs": 4.6, "max_running_reqs": 5}, CellStatus.extra_traffic, "5 running of 4"),
        ({"avg_queue_reqs": 1.0, "queue_fraction": 0.9}, CellStatus.extra_traffic, "1.0 waiting"),
        (
            {"avg_running_reqs": 3.0, "max_running_reqs": 3, "avg_queue_reqs": 1.0},
            CellStatus.underfilled,
            "3.0 running of 4",
        ),
        ({"underfilled": True, "avg_running_reqs": 3.9}, CellStatus.underfilled, "3.9 running of 4"),
        (
            {"avg_running_reqs": 0.0, "max_running_reqs": 0, "ready_reason": "metrics_unavailable"},
            CellStatus.valid,
            "gauges were not seen",
        ),
    ],
)
def test_status_by_what_the_file_shows(changes: dict[str, Any], status: CellStatus, words: str) -> None:
    """Each sign in a row gives its status and a reason that says what was seen."""
    row = judged(cell(**changes))
    assert row.status is status, row.reason
    assert words in row.reason
    assert (row.values is not None) == (status is CellStatus.valid)


def test_a_full_pool_without_room_is_no_contradiction() -> None:
    """A warm-up that timed out because the prompts really do not fit is not ready, and nothing contradicts that."""
    row = judged(
        cell(65536, 16, **TIMED_OUT | {"server_utilization": 0.99, "timeout_reason": "running_reqs=2/16"})
    )
    assert row.status is CellStatus.not_ready and "contradicted" not in row.reason


def test_a_contradiction_needs_the_pool_to_be_known() -> None:
    """Without the server's word on the pool the claim is neither right nor wrong."""
    unknown = judged(cell(**TIMED_OUT))
    known = judged(cell(**TIMED_OUT | {"server_utilization": 0.9}))
    assert "contradicted" not in unknown.reason and "contradicted" in known.reason


def test_a_wave_of_requests_may_run_out() -> None:
    """In a burst fewer run towards the end: that is no underfilled cell."""
    wave = cell(
        benchmark_mode="request-count", request_count_target=20, avg_running_reqs=2.5, request_count=20
    )
    row = judged(wave, decode_mode="request-count")
    assert row.kind == "burst" and row.status is CellStatus.valid and "wave of 20" in row.reason


def test_a_rate_by_the_last_token_gets_a_word() -> None:
    """Where the tool's denominator changes the rate by more than a percent, the window's rate stands beside it."""
    row = judged(cell(measurement_seconds=25.0, aggregate_tps=120.0))
    assert row.values is not None and row.values.tokens_per_s == 120.0
    assert any("100.00 tok/s, not 120.00" in note for note in row.notes)


@settings(deadline=None, max_examples=60)
@given(
    rate=st.one_of(st.none(), st.floats(-5, 1e6)),
    running=st.floats(0, 300),
    waiting=st.floats(0, 300),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    errors=st.integers(0, 5),
    concurrency=st.integers(1, 256),
)
def test_only_a_valid_cell_has_a_rate(
    rate: float | None,
    running: float,
    waiting: float,
    flags: tuple[bool, bool, bool],
    errors: int,
    concurrency: int,
) -> None:
    """Whatever a row says, it gets one status with a reason, and values stand in `values` only where it is valid."""
    row = judged(
        cell(
            concurrency=concurrency,
            aggregate_tps=rate,
            avg_running_reqs=running,
            max_running_reqs=int(running) + 1,
            avg_queue_reqs=waiting,
            underfilled=flags[0],
            warmup_timed_out=flags[1],
            loop_detected=flags[2],
            num_errors=errors,
        )
    )
    assert row.reason and (row.values is not None) == (row.status is CellStatus.valid)
    if row.status is CellStatus.valid:
        assert rate is not None and rate > 0 and not errors and not any(flags)
        assert running <= concurrency and row.discarded is None


def test_missing_fields_are_named() -> None:
    """What a row of its version should have and lacks is said, and the values are null."""
    bare = {"concurrency": 1, "context_tokens": 0, "aggregate_tps": 50.0, "client_output_tokens": 1500}
    document = read(bare)
    assert {"results.num_errors", "results.ttft_*", "results.measurement_seconds"} <= set(document.missing)
    result = result_of(bare)
    (row,) = result.rows
    assert row.status is CellStatus.valid and row.values is not None and row.values.ttft is None
    assert any("The file lacks" in warning for warning in result.warnings)
