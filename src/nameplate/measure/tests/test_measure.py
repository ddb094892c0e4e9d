"""Measurement: numbers of trials whose true values are known by construction."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.engines.state import ServerSample
from nameplate.evidence.rows import RequestRow
from nameplate.evidence.timeline import Timeline
from nameplate.measure.concurrency import InFlight
from nameplate.measure.measurement import Measurement, measure
from nameplate.measure.server_side import counters_that_fell, extra_requests
from nameplate.measure.tests.trials import MS, S, closed_loop, evidence, ok_row, timeline_of
from nameplate.measure.windows import Window, steady, tokens_inside, whole_run


def measured(**more: object) -> Measurement:
    return measure(evidence(**more))  # type: ignore[arg-type]


def test_latencies_of_a_constant_server_are_its_constants() -> None:
    """TTFT 100 ms, ITL 10 ms, E2E 200 ms, gaps 10 ms, 100 tokens/s per user, at every percentile."""
    found = measured().latencies.whole
    assert (found.ttft.p50, found.ttft.p99, found.ttft.n) == (100 * MS, 100 * MS, 64)
    assert (found.itl.p95, found.tpot.p95, found.e2e.max) == (10 * MS, 10 * MS, 200 * MS)
    assert (found.longest_gap.max, found.chunk_gaps.max, found.chunk_gaps.n) == (10 * MS, 10 * MS, 640)
    assert found.per_user.p50 == 100.0 and found.per_user.unit == "1/s"
    assert "p99" in found.ttft.unsupported and "p95" not in found.ttft.unsupported


def test_phases_split_by_when_a_request_was_sent() -> None:
    """Opening and steady have their own samples and add up to the whole; warm-up is in neither."""
    rows = closed_loop(4, 64, ttft=lambda n: S if n < 4 else 100 * MS)
    found = measured(rows=rows).latencies
    assert (found.opening.requests, found.steady.requests, found.whole.requests) == (4, 60, 64)
    assert (found.opening.ttft.min, found.steady.ttft.max) == (S, 100 * MS)


def test_unfinished_requests_are_counted_and_hide_what_they_reach() -> None:
    """Percentiles over the 4 of 12 that got a token would be a lie: eight are censored."""
    rows = [ok_row(n, S, phase="opening") for n in range(12)]
    rows[4:] = [
        structs.replace(row, outcome="unfinished", first_output_ns=None, last_output_ns=None, end_ns=5 * S)
        for row in rows[4:]
    ]
    found = measured(rows=rows, concurrency=12, requests=12)
    assert (found.latencies.whole.ttft.n, found.latencies.whole.ttft.censored) == (12, 8)
    assert found.latencies.whole.ttft.p50 is None
    assert (found.correctness.ok, found.correctness.unfinished) == (4, 8)


def test_rates_name_their_windows_and_divide_by_them() -> None:
    """64 requests of 11 tokens, 4 at a time, 200 ms each: 20 requests/s and 220 tokens/s, whole and steady."""
    rates = measured().rates
    assert rates.requests_whole is not None and rates.tokens_whole is not None
    assert rates.requests_whole.per_s == pytest.approx(20.0)
    assert rates.tokens_whole.per_s == pytest.approx(220.0)
    assert rates.tokens_whole.window.begins == "first measured request sent"
    assert rates.tokens_steady is not None and not rates.tokens_steady.estimated
    assert rates.tokens_steady.per_s == pytest.approx(220.0)
    assert rates.tokens_steady.window.ends == "last request started"


def test_the_steady_window_is_null_where_it_is_empty() -> None:
    """All requests in the opening wave, or an opening request that never ended: no window, no rate."""
    rows = closed_loop(8, 8)
    found = measured(rows=rows, concurrency=8, requests=8)
    assert found.steady_window is None and found.rates.tokens_steady is None
    assert found.rates.tokens_whole is not None
    open_ = [structs.replace(rows[2], end_ns=None), *rows[3:], ok_row(99, 9 * S)]
    assert steady(open_) is None


def test_nothing_sent_measures_nothing() -> None:
    """An empty trial has nulls, not zeros, and no exception."""
    found = measured(rows=[])
    assert found.whole_run is None and found.rates.requests_whole is None
    assert found.latencies.whole.ttft.p50 is None and found.concurrency.max is None
    assert found.lateness.send_lag is None


def test_tokens_in_a_window_count_wherever_their_request_ends() -> None:
    """Half of a request's events lie inside: counted tokens are summed, uncounted ones spread evenly."""
    window = Window(0, 50, "a", "b")
    times = array("q", range(0, 100, 10))
    counted = Timeline(0, times, array("i", [3] + [1] * 9))
    assert tokens_inside(window, [counted], {0: 12}).tokens == 7
    spread = tokens_inside(window, [Timeline(0, times)], {0: 30})
    assert (spread.tokens, spread.estimated) == (15.0, True)
    assert tokens_inside(window, [counted], {1: 12}).tokens == 0


def test_partial_tokens_are_kept_apart() -> None:
    """A broken stream's tokens are in the whole-run rate and not in the completed one."""
    rows = closed_loop(4, 64)
    rows[-1] = structs.replace(rows[-1], outcome="stream_error", output_tokens=5)
    found = measured(rows=rows)
    assert (found.correctness.output_tokens, found.correctness.partial_tokens) == (63 * 11, 5)
    assert found.rates.tokens_whole is not None and found.rates.tokens_completed is not None
    assert found.rates.tokens_whole.counted - found.rates.tokens_completed.counted == 5


def test_without_usage_tokens_are_estimated() -> None:
    """Rows whose tokens are counted events mark the totals and the rates."""
    rows = [structs.replace(row, output_tokens_source="estimated") for row in closed_loop(4, 64)]
    found = measured(rows=rows)
    assert found.correctness.tokens_estimated
    assert found.rates.tokens_whole is not None and found.rates.tokens_whole.estimated


def test_a_perfect_closed_loop_keeps_its_concurrency() -> None:
    """Never above C, never below between the last opening send and the last start."""
    found = measured().concurrency
    assert (found.max, found.mean, found.below_share) == (4, 4.0, 0.0)
    assert found.mean_whole_run == pytest.approx(4.0)


def test_an_empty_slot_shows_in_the_share_below() -> None:
    """A slot that idles for a tenth of the judged time is below the plan for a tenth of it."""
    rows = closed_loop(2, 20)
    begin = max(row.sent_ns or 0 for row in rows if row.phase == "opening")
    end = max(row.sent_ns or 0 for row in rows if row.measured)
    late = rows[10]
    assert late.sent_ns is not None
    rows[10] = structs.replace(late, sent_ns=late.sent_ns + (end - begin) // 10)
    found = measured(rows=rows, concurrency=2, requests=20).concurrency
    assert found.below_share == pytest.approx(0.1, rel=1e-6)


def with_turnaround(rows: list[RequestRow], turnaround_ns: int) -> list[RequestRow]:
    """Shorten each answer's end, so that its slot is empty for `turnaround_ns` before the next request."""
    return [structs.replace(row, end_ns=(row.end_ns or 0) - turnaround_ns) for row in rows]


def test_handovers_of_short_requests_are_no_empty_slots() -> None:
    """Sixteen slots of 200 ms requests with 0.6 ms between them: below C for 4% or so, never underfilled."""
    rows = closed_loop(16, 320, ttft=lambda n: (100 + n % 16) * MS)
    found = measured(rows=with_turnaround(rows, 600_000), concurrency=16, requests=320).concurrency
    assert found.below_share is not None and found.below_share > 0.03
    assert found.underfilled_share == 0.0
    slow = measured(rows=with_turnaround(rows, 12 * MS), concurrency=16, requests=320).concurrency
    assert slow.underfilled_share is not None and slow.underfilled_share > 0.3


def test_a_slot_that_never_works_is_underfilled_however_many_there_are() -> None:
    """99 of 100 in flight is below the plan all the time, whatever the share of empty slots."""
    found = measured(rows=closed_loop(99, 400), concurrency=100, requests=400).concurrency
    assert (found.below_share, found.underfilled_share, found.max) == (1.0, 1.0, 99)


INTERVALS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda p: (min(p), max(p))), max_size=12
)


@settings(max_examples=150)
@given(INTERVALS, st.integers(0, 50), st.integers(0, 50))
def test_in_flight_is_the_count_at_each_moment(
    intervals: list[tuple[int, int]], first: int, second: int
) -> None:
    """Levels, means and highest values equal counting at every moment."""
    begin, end = min(first, second), max(first, second)
    flight = InFlight(intervals)
    count = [sum(a <= t < b for a, b in intervals) for t in range(51)]
    assert flight.highest == max(count)
    assert flight.highest_between(begin, end) == max(count[begin : end + 1])
    if end > begin:
        assert flight.mean_between(begin, end) == pytest.approx(sum(count[begin:end]) / (end - begin))
    else:
        assert flight.mean_between(begin, end) is None


def test_single_user_rates_subtract_what_was_cached() -> None:
    """(1000 - 200) tokens in 100 ms are 8,000 tokens/s; nominal is 10,000; decode is 1 / ITL."""
    rows = [structs.replace(row, cached_tokens=200) for row in closed_loop(1, 10)]
    alone = measured(rows=rows, concurrency=1, requests=10).single_user
    assert alone is not None and not alone.cached_assumed
    assert (alone.prefill_counted.p50, alone.prefill_nominal, alone.decode) == (8000.0, 10000.0, 100.0)
    unknown = [structs.replace(row, cached_tokens=None) for row in rows]
    again = measured(rows=unknown, concurrency=1, requests=10).single_user
    assert again is not None and again.cached_assumed and again.prefill_counted.p50 == 10000.0
    assert measured().single_user is None


def test_the_first_event_may_hold_several_tokens() -> None:
    """ITL divides by the tokens after the first event, TPOT by n - 1 whatever it held."""
    rows = [structs.replace(row, first_event_tokens=6) for row in closed_loop(4, 64)]
    found = measured(rows=rows).latencies.whole
    assert (found.itl.p50, found.tpot.p50) == (20 * MS, 10 * MS)


def test_silent_tokens_at_the_end_are_flagged() -> None:
    """A last output more than 5% of the decode time before the finish event flags the ITL."""
    rows = closed_loop(4, 64)
    rows[5] = structs.replace(rows[5], finish_ns=(rows[5].last_output_ns or 0) + 6 * MS)
    rows[6] = structs.replace(rows[6], finish_ns=(rows[6].last_output_ns or 0) + 5 * MS)
    assert measured(rows=rows).correctness.silent_tails == 1


def test_the_servers_side_is_measured_inside_the_window_only() -> None:
    """Gauges are over measured time; a failed scrape is unknown, not zero; counters go from idle to idle."""
    window = whole_run(evidence().measured)
    assert window is not None
    samples = [
        ServerSample(0, running=99),
        ServerSample(window.begin_ns + 1, running=2, waiting=0, kv_usage_mean=0.5),
        ServerSample(window.begin_ns + 2, error="timed out"),
        ServerSample(window.begin_ns + 3, running=4, waiting=3, kv_usage_mean=0.7),
    ]
    found = measured(
        samples=samples,
        idle_before=ServerSample(0, preemptions_total=3, finished=(("stop", 5),), queue_s=(1.0, 10)),
        idle_after=ServerSample(
            1, preemptions_total=4, finished=(("stop", 5), ("length", 66)), queue_s=(4.0, 20)
        ),
    ).server
    assert found.running is not None and (found.running.mean, found.running.max, found.running.n) == (
        3.0,
        4,
        2,
    )
    assert (found.scrapes, found.scrape_failures) == (4, 1)
    assert (found.preemptions, found.requests) == (1, 66)
    assert found.queue_mean_s == pytest.approx(0.3)
    assert found.output_tokens is None


def test_counters_that_fall_are_named() -> None:
    """A restarted server's counters begin again; gauges and unknown values do not matter."""
    readings = [
        ServerSample(0, prompt_tokens_total=10, running=5),
        ServerSample(1, error="timed out"),
        None,
        ServerSample(2, prompt_tokens_total=4, running=1),
        ServerSample(3, prompt_tokens_total=6),
    ]
    assert counters_that_fell(readings) == ("prompt_tokens_total",)


def test_running_above_our_own_is_other_traffic() -> None:
    """Nine running of our eight is one too many; a waiting one must be seen twice."""
    rows = closed_loop(8, 200)
    until = max(row.end_ns or 0 for row in rows)
    start = (rows[2].sent_ns or 0) + 1_500 * MS
    at = [start + i * 100 * MS for i in range(4)]

    def extra(*held: tuple[int, int]) -> int | None:
        samples = [ServerSample(t, running=r, waiting=w) for t, (r, w) in zip(at, held, strict=False)]
        return extra_requests(samples, rows, until)

    assert extra((8, 0), (8, 0)) == 0
    assert extra((9, 0)) == 1
    assert extra((8, 1), (8, 0)) == 0
    assert extra((8, 1), (8, 2)) == 1
    assert extra_requests([ServerSample(at[0])], rows, until) is None
    cut = [structs.replace(row, outcome="cancelled") for row in rows]
    assert extra_requests([ServerSample(at[0], running=9)], cut, until) == 0


def test_every_number_is_finite_or_null() -> None:
    """Whatever failed, nothing that is published is infinite or not a number."""
    rows = closed_loop(4, 64)
    rows[3:9] = [
        structs.replace(row, outcome="reset", first_output_ns=None, last_output_ns=None) for row in rows[3:9]
    ]

    def walk(value: object) -> None:
        if isinstance(value, float):
            assert math.isfinite(value)
        elif isinstance(value, dict):
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                walk(inner)
        elif hasattr(value, "__struct_fields__"):
            walk(structs.asdict(value))  # type: ignore[arg-type]

    walk(measured(rows=rows))


def test_gaps_of_several_events_in_one_read_are_zero() -> None:
    """A zero gap is legal and kept."""
    rows = closed_loop(1, 1, warmup=0)
    burst = Timeline(0, array("q", [5, 5, 5, 25]), None)
    found = measured(rows=rows, concurrency=1, requests=1, timelines=[burst]).latencies.whole.chunk_gaps
    assert (found.n, found.min, found.max) == (3, 0.0, 20.0)
    assert timeline_of(rows[0]).times_ns[0] == rows[0].first_output_ns
