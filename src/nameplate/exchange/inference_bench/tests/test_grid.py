"""Planned cells without a row: every one has a status and a reason."""

from __future__ import annotations

from nameplate.exchange.inference_bench.tests.making import cell, result_of
from nameplate.verdict.cell import CellStatus


def test_every_planned_cell_has_a_row() -> None:
    """Cells that the file leaves out are over capacity by its arithmetic, interrupted or skipped, never absent.

    The log calls what does not fit skipped, too: the arithmetic tells the two apart.
    """
    log = [
        "10:00:00 cell start C=1 ctx=8k",
        "10:00:40 cell done C=1 ctx=8k 100.0 tok/s",
        "10:00:41 cell skipped C=2 ctx=8k",
        "10:00:42 cell start C=4 ctx=8k",
        "10:00:43 cell skipped C=2 ctx=512k",
    ]
    result = result_of(
        cell(8192, 1),
        top={"event_log": log},
        concurrency_levels=[1, 2, 4],
        context_lengths=[8192, 524288],
    )
    by = {(row.label, row.concurrency): row for row in result.rows}
    assert len(result.rows) == 6 and not result.finished
    assert by["8K", 2].status is CellStatus.skipped and "event log" in by["8K", 2].reason
    assert by["8K", 4].status is CellStatus.interrupted
    assert by["512K", 1].status is CellStatus.skipped and "no row" in by["512K", 1].reason
    assert by["512K", 2].status is CellStatus.over_capacity
    assert "1,052,672 of 1,000,000 tokens" in by["512K", 2].reason


def test_sharing_counts_in_the_arithmetic() -> None:
    """With shared prompts the same cell fits: it was left out for another reason."""
    result = result_of(
        cell(8192, 1),
        concurrency_levels=[1, 2],
        context_lengths=[524288],
        unique_context_percent=25.0,
    )
    (two,) = (row for row in result.rows if row.label == "512K" and row.concurrency == 2)
    assert two.status is CellStatus.skipped


def test_a_file_that_does_not_say_how_it_shares() -> None:
    """Versions without the field count every prompt whole, and the reason says so."""
    result = result_of(
        cell(8192, 1), concurrency_levels=[4], context_lengths=[524288], unique_context_percent=None
    )
    (four,) = (row for row in result.rows if row.concurrency == 4)
    assert four.status is CellStatus.over_capacity and "sharing left out" in four.reason


def test_doubled_rows_are_said() -> None:
    """Of two rows for one cell the last counts, and the result says that there were two."""
    result = result_of(cell(8192, 1, aggregate_tps=10.0), cell(8192, 1, aggregate_tps=20.0))
    (row,) = result.rows
    assert row.values is not None and row.values.tokens_per_s == 20.0
    assert any("more than one row for decode 8K x 1" in warning for warning in result.warnings)
