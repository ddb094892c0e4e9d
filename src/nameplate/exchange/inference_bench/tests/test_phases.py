"""Prefill and mixed-prefill entries of newer versions."""

from __future__ import annotations

from typing import Any

import pytest

from nameplate.exchange.inference_bench.tests.making import cell, result_of
from nameplate.verdict.cell import CellStatus

PREFILL = {
    "ttft_seconds": 1.538,
    "prefill_seconds": 1.538,
    "tok_per_sec": 21306.0,
    "prompt_tokens": 32769,
    "samples": 1,
    "method": "scout",
    "server_validation": {"tok_per_sec": 22000.0, "prefill_seconds": 1.49, "cached_tokens": 0},
}


def mixed(**changes: Any) -> dict[str, Any]:
    told = {
        "context": 32768,
        "status": "ok",
        "ttft_alone_s": 2.0,
        "ttft_under_load_s": 4.0,
        "slowdown": 2.0,
        "prompt_tokens_under_load": 32800,
        "cached_tokens_under_load": None,
        "bg_tok_s_before": 200.0,
        "windows": {
            "before": {"start_s": -10.0, "end_s": 0.0, "seconds": 10.0, "tokens": 2000, "tok_s": 200.0},
            "during": {"start_s": 0.0, "end_s": 4.0, "seconds": 4.0, "tokens": 200, "tok_s": 50.0},
            "after": {"start_s": 4.0, "end_s": 14.0, "seconds": 10.0, "tokens": 1800, "tok_s": 180.0},
        },
        "background": {"streams": 2, "token_source": "usage"},
        "timeline": {"bin_seconds": 1.0, "first_bin_start_s": -10.0, "tok_s": [200.0, 50.0]},
        "errors": [],
        "warnings": [],
        "loop_detected": False,
    }
    return told | changes


def test_prefill_from_the_first_cold_request() -> None:
    """A prefill entry is a row with its rate, its one sample, and the server's own time beside it."""
    result = result_of(
        cell(32768, 1),
        top={"prefill": {"32768": PREFILL}},
        version="0.6.2",
        skip_prefill=False,
        prefill_mode="integrated_decode_scout",
    )
    (row,) = result.rows_of("prefill")
    assert row.status is CellStatus.valid and row.reason == "one sample"
    assert row.values is not None and row.values.tokens_per_s == 21306.0
    prefill = row.values.prefill
    assert prefill is not None and prefill.n == 1 and prefill.ttft_median_ns == pytest.approx(1.538e9)
    assert prefill.server_difference == pytest.approx(0.048 / 1.49, rel=1e-6)
    assert any("first cold request" in note for note in row.notes)


def test_a_prefill_that_is_missing_or_zero() -> None:
    """A planned prefill without an entry is skipped; one of rate zero is no measurement."""
    result = result_of(
        cell(8192, 1),
        cell(32768, 1),
        top={"prefill": {"32768": PREFILL | {"tok_per_sec": 0, "ttft_seconds": 0}}},
        version="0.6.2",
        skip_prefill=False,
        prefill_mode="integrated_decode_scout",
    )
    first, second = result.rows_of("prefill")
    assert (first.label, first.status) == ("8K", CellStatus.skipped)
    assert (second.label, second.status) == ("32K", CellStatus.server_error) and second.values is None


def test_mixed_prefill() -> None:
    """A mixed entry has the arrival's two times, the slowdown, and the streams' rates around it."""
    result = result_of(cell(), top={"mixed_prefill": {"32768": mixed()}}, version="0.7.0")
    (row,) = result.rows_of("mixed")
    assert row.status is CellStatus.valid and row.concurrency == 2 and row.values is not None
    values = row.values
    assert (values.tokens_per_s, values.slowdown, values.alone_ttft_ns) == (200.0, 2.0, 2e9)
    assert values.mixed is not None and values.mixed.ttft_ns == 4 * 10**9
    assert values.mixed.during is not None and values.mixed.during.rate == 50.0
    assert values.mixed.timeline == (200.0, 50.0)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        (
            {"status": "error", "errors": ["HTTP 500: boom"], "ttft_under_load_s": None},
            CellStatus.server_error,
        ),
        ({"status": "skipped", "reason": "skipped by user"}, CellStatus.skipped),
        ({"status": "skipped", "reason": "KV cache: needs 20,496 tokens"}, CellStatus.over_capacity),
        (
            {"status": "skipped", "reason": "prompt exceeds model context length 12,000"},
            CellStatus.over_limit,
        ),
        ({"loop_detected": True}, CellStatus.looped),
        ({"ttft_under_load_s": None}, CellStatus.server_error),
    ],
)
def test_mixed_prefill_that_is_none(changes: dict[str, Any], status: CellStatus) -> None:
    """Errors, skips and loops of a mixed entry are statuses with their reason, without values."""
    (row,) = result_of(cell(), top={"mixed_prefill": {"32768": mixed(**changes)}}).rows_of("mixed")
    assert row.status is status and row.reason and row.values is None
