"""The status of a cell: each condition alone, their precedence, and that nothing but valid is valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from nameplate.verdict.cell import CellFacts, CellStatus, judge_cell

SOUND = CellFacts(streams=8, ready=True, samples=60, tokens=1000.0, most_running=8, in_flight_below=0.0)

# Each fault with its status and words of its reason, in the order in which they weigh.
FAULTS: list[tuple[dict[str, Any], CellStatus, str]] = [
    ({"interrupted": True}, CellStatus.interrupted, "interrupted"),
    ({"refused_length": "the server refused 9,000 tokens"}, CellStatus.over_limit, "9,000"),
    ({"failures": 3, "failure": "http_error, boom"}, CellStatus.server_error, "3 requests failed, the first"),
    ({"server_changed": "version 1 to 2"}, CellStatus.server_error, "version 1 to 2"),
    ({"damaged": "reads.zst is torn"}, CellStatus.client_limited, "torn"),
    ({"ready": False, "gave_up": "not ready within 60 s"}, CellStatus.not_ready, "not ready within 60 s"),
    ({"window_whole": False}, CellStatus.interrupted, "before its window was over"),
    ({"client_late": "send lag p99 80 ms"}, CellStatus.client_limited, "80 ms"),
    ({"extra_samples": 2, "most_running": 9}, CellStatus.extra_traffic, "9 running of 8 ours, in 2 of 60"),
    ({"other_traffic": "2 more than ours"}, CellStatus.extra_traffic, "2 more"),
    ({"below_samples": 4}, CellStatus.underfilled, "fewer than 8 running in 4 of 60 samples"),
    ({"mean_running": 4.0, "mean_waiting": 4.0}, CellStatus.underfilled, "4.0 of 8 running and 4.0 waiting"),
    ({"in_flight_below": 0.06}, CellStatus.underfilled, "6% of the window"),
    ({"looped_streams": 1}, CellStatus.looped, "1 of 8 streams"),
    ({"tokens": 0.0}, CellStatus.server_error, "no output"),
]


@pytest.mark.parametrize(("fault", "status", "words"), FAULTS)
def test_each_fault_has_its_status(fault: dict[str, Any], status: CellStatus, words: str) -> None:
    """A cell with one fault has that fault's status, with a reason that says what was seen."""
    verdict = judge_cell(structs.replace(SOUND, **fault))
    assert verdict.status is status and words in verdict.reason and not verdict.valid


@given(st.sets(st.integers(0, len(FAULTS) - 1), max_size=5))
def test_the_weightiest_fault_gives_the_status(chosen: set[int]) -> None:
    """Of several faults the first in order decides; without one the cell is valid, and only then."""
    facts = SOUND
    for number in sorted(chosen, reverse=True):
        facts = structs.replace(facts, **FAULTS[number][0])
    verdict = judge_cell(facts)
    assert verdict.status is (FAULTS[min(chosen)][1] if chosen else CellStatus.valid)
    assert verdict.valid == (not chosen) and verdict.reason


@given(samples=st.integers(1, 400), below=st.integers(0, 400))
def test_underfilled_is_more_than_five_percent_of_samples(samples: int, below: int) -> None:
    """Exactly 5% of the samples may show fewer; one more may not."""
    facts = structs.replace(SOUND, samples=samples, below_samples=min(below, samples))
    expected = 20 * min(below, samples) > samples
    assert (judge_cell(facts).status is CellStatus.underfilled) == expected


@given(streams=st.integers(1, 1024), looped=st.integers(0, 1024))
def test_looped_is_more_than_the_limit(streams: int, looped: int) -> None:
    """More than 5% of the streams void the cell: one of nineteen does, one of twenty does not."""
    looped = min(looped, streams)
    facts = structs.replace(SOUND, streams=streams, looped_streams=looped)
    assert (judge_cell(facts).status is CellStatus.looped) == (20 * looped > streams)


def test_a_limit_of_one_lets_all_streams_loop() -> None:
    """With a limit of 100% loops void nothing."""
    assert judge_cell(structs.replace(SOUND, looped_streams=8, loop_limit=1.0)).valid


def test_a_server_that_tells_nothing_can_be_valid() -> None:
    """Without samples neither underfilled nor extra traffic can be said; our own share in flight still decides."""
    silent = structs.replace(SOUND, samples=0, most_running=None)
    assert judge_cell(silent).valid
    assert judge_cell(structs.replace(silent, in_flight_below=0.5)).status is CellStatus.underfilled
    assert judge_cell(structs.replace(silent, in_flight_below=None)).valid


def test_more_running_than_ours_while_waiting_is_extra_traffic() -> None:
    """A cell that never was ready because somebody else's requests ran is extra traffic, not slow."""
    facts = structs.replace(
        SOUND, ready=False, gave_up="not ready within 60 s", saw_running=9, saw="9 running"
    )
    verdict = judge_cell(facts)
    assert verdict.status is CellStatus.extra_traffic and "9 running of 8 ours" in verdict.reason
    assert judge_cell(structs.replace(facts, saw_running=8)).status is CellStatus.not_ready
    assert judge_cell(structs.replace(facts, saw_running=None)).status is CellStatus.not_ready


def test_a_full_pool_contradicts_a_claim_that_there_is_room() -> None:
    """Under ten of twelve ran at 93% of a pool of which the plan claims a fifth: the reason says so."""
    facts = structs.replace(
        SOUND,
        streams=12,
        ready=False,
        saw_running=9,
        kv_claim_tokens=270_336,
        kv_tokens=1_515_055,
        kv_held_share=0.93,
    )
    verdict = judge_cell(facts)
    assert verdict.status is CellStatus.not_ready
    assert "KV claim contradicted: 270,336 of 1,515,055 tokens" in verdict.reason and "93%" in verdict.reason
    for change in ({"kv_held_share": 0.5}, {"kv_tokens": None}, {"kv_claim_tokens": 1_500_000}):
        assert "contradicted" not in judge_cell(structs.replace(facts, **change)).reason


@pytest.mark.parametrize(("running", "waiting"), [(8.0, 4.0), (7.0, 0.1), (None, 4.0), (4.0, None)])
def test_a_short_wait_or_an_unknown_one_voids_nothing(running: float | None, waiting: float | None) -> None:
    """Only fewer running with others waiting, on average, is a server that does not run all at once."""
    assert judge_cell(structs.replace(SOUND, mean_running=running, mean_waiting=waiting)).valid


def test_a_counted_cell_says_what_it_counted() -> None:
    """A load that is counted has no window to speak of."""
    verdict = judge_cell(structs.replace(SOUND, samples=0, counted_requests=40, tokens=40.0))
    assert verdict.valid and verdict.reason == "all 40 requests came to their end"
    none = judge_cell(structs.replace(SOUND, samples=0, counted_requests=0, tokens=0.0))
    assert none.status is CellStatus.server_error
