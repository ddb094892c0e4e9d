"""Segments put together: sums add up, gaps stay gaps, nothing is stitched."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from nameplate.contract.arrivals import ArrivalPlan
from nameplate.contract.errors import EvidenceError
from nameplate.evidence.client_sample import ClientSample
from nameplate.measure.soak.combine import measure_soak
from nameplate.measure.soak.fold import measure_segment
from nameplate.measure.soak.result import decode_soak, encode_soak
from nameplate.measure.soak.segment import SegmentResult
from nameplate.measure.soak.tests.segments import BEGAN, WALL, Writing, loop
from nameplate.measure.tests.trials import MS, S


def piece(
    directory: Path, *, after_s: int = 0, seconds: int = 3600, ttft_ns: int = 20 * S, window_s: int = 300
) -> SegmentResult:
    """Measure one segment that begins so many seconds after the soak did."""
    writing = Writing(
        directory, wall_ns=WALL + after_s * S, duration_s=seconds, window_s=window_s, slos=("ttft p95 < 45s",)
    )
    last = loop(writing, until_ns=BEGAN + seconds * S, running=3, ttft_ns=ttft_ns, itl_ns=50 * MS)
    writing.orderly(BEGAN + seconds * S, last)
    writing.sampled(range(BEGAN, last, 10 * S), running=3, waiting=1, kv_usage_mean=0.5)
    for t_ns in range(BEGAN, last, 60 * S):
        writing.client.append(
            ClientSample(t_ns=t_ns, process="load", worker=0, rss_bytes=(50 + after_s // 60) << 20)
        )
    return measure_segment(writing.write())


def test_segments_add_up_and_gaps_are_told(tmp_path: Path) -> None:
    """Two segments half an hour apart: counts, tokens and rates are sums, the gap is in none of them."""
    first, second = piece(tmp_path / "a"), piece(tmp_path / "b", after_s=5400)
    result = measure_soak([second, first])
    assert [segment.segment for segment in result.segments] == ["a", "b"]
    (gap,) = result.gaps
    assert gap.length_s == pytest.approx(1800, abs=60) and (gap.after, gap.before) == ("a", "b")
    assert result.counts.sent == first.counts.sent + second.counts.sent
    assert result.counts.balanced and result.submitted_s == 7200
    rate = result.rates[0]
    assert rate.counted == pytest.approx(first.rates[0].counted + second.rates[0].counted)
    assert rate.seconds == pytest.approx(7200) and rate.per_s == pytest.approx(rate.counted / 7200)
    assert len(rate.parts) == 2 and rate.begins == "submission began"
    ttft = next(held for held in result.latencies if held.metric == "ttft")
    assert ttft.n == result.counts.sent
    assert result.slos[0].n == result.counts.sent


def test_a_step_over_a_gap_is_dated_by_the_wall_clock(tmp_path: Path) -> None:
    """A server that is slower after the gap stepped when the second segment began, an hour and a half in."""
    first = piece(tmp_path / "a", window_s=120)
    second = piece(tmp_path / "b", after_s=5400, ttft_ns=30 * S, window_s=120)
    drift = measure_soak([first, second]).drift
    ttft = next(held for held in drift.series if held.series == "ttft_p50")
    assert drift.conclusion == "stepped" and ttft.conclusion == "stepped"
    (shift,) = ttft.shifts
    assert 3400 <= shift.at_s <= 5400 + 300 and shift.share == pytest.approx(0.5, rel=0.05)


def test_an_open_loop_drifts_from_its_schedule(tmp_path: Path) -> None:
    """Where requests leave ever later than they arrived, TTFT from sending is steady and users wait ever longer."""
    closed = piece(tmp_path / "a", window_s=60)
    later = tuple(
        structs.replace(
            window,
            ttft_from_schedule=structs.replace(window.ttft, p50=(window.ttft.p50 or 0) * (1 + at / 60)),
        )
        for at, window in enumerate(closed.windows)
    )
    closed = structs.replace(closed, windows=later)
    arrivals = ArrivalPlan.parse(0.1, "poisson", 0, 100)
    opened = structs.replace(closed, plan=structs.replace(closed.plan, arrivals=arrivals))
    for segment, conclusion, basis in ((closed, "steady", "send"), (opened, "drifting up", "schedule")):
        drift = measure_soak([segment]).drift
        ttft = next(held for held in drift.series if held.series == "ttft_p50")
        assert (ttft.conclusion, ttft.basis) == (conclusion, basis)
        assert next(held for held in drift.series if held.series == "itl_p50").basis is None


def test_each_process_of_the_client_has_its_own_memory(tmp_path: Path) -> None:
    """A new process begins with another memory: that is no drift of either."""
    first, second = piece(tmp_path / "a"), piece(tmp_path / "b", after_s=5400)
    series = [held for held in measure_soak([first, second]).drift.series if held.series == "client_memory"]
    assert [held.stretch for held in series] == ["a", "b"]
    assert {held.conclusion for held in series} <= {"steady", "undecided"}


def test_the_opening_wave_is_left_out_and_said(tmp_path: Path) -> None:
    """Windows in which the first requests ended are no part of the drift verdict."""
    result = measure_soak([piece(tmp_path / "a")])
    assert result.warm_up.windows == 1 and "start together" in result.warm_up.detail
    assert all(held.left_out >= 1 for held in result.drift.series)


def test_a_short_first_segment_does_not_hide_the_warm_up(tmp_path: Path) -> None:
    """A client that was killed in its first window says nothing of how long the server takes to fill."""
    result = measure_soak([piece(tmp_path / "a", seconds=200), piece(tmp_path / "b", after_s=1800)])
    assert result.warm_up.windows == 1
    ttft = next(held for held in result.drift.series if held.series == "ttft_p50")
    assert ttft.n == 11 and ttft.left_out == 1


def test_clocks_that_contradict_the_order_give_no_gap(tmp_path: Path) -> None:
    """Where the second segment's wall clock lies within the first, the gap's length is not known."""
    result = measure_soak([piece(tmp_path / "a"), piece(tmp_path / "b", after_s=1800)])
    assert result.gaps[0].length_s is None


def test_segments_of_different_soaks_are_refused(tmp_path: Path) -> None:
    """Another load is another soak."""
    first = piece(tmp_path / "a", seconds=600)
    other = structs.replace(first, plan=structs.replace(first.plan, concurrency=5), segment="b")
    with pytest.raises(EvidenceError, match="not of one soak"):
        measure_soak([first, other])
    with pytest.raises(EvidenceError):
        measure_soak([])


def test_the_result_goes_to_json_and_back(tmp_path: Path) -> None:
    """What is written is what was measured; another schema is refused."""
    result = measure_soak([piece(tmp_path / "a", seconds=900)])
    data = encode_soak(result)
    assert decode_soak(data) == result and encode_soak(decode_soak(data)) == data
    with pytest.raises(EvidenceError, match="schema"):
        decode_soak(data.replace(b"nameplate.soak/1", b"nameplate.soak/9"))
