"""One decode cell against numbers worked out by hand: what streams that are held produce in a fixed window."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nameplate.measure.cell import Cell, measure_cell, token_totals
from nameplate.measure.tests.held_cells import (
    BEGIN,
    END,
    MS,
    WINDOW,
    Part,
    S,
    cell_evidence,
    every,
    held,
    sample,
    samples,
    shifted,
)
from nameplate.measure.tests.trials import identity
from nameplate.measure.trial_evidence import TrialEvidence
from nameplate.wire.events import Channel
from nameplate.wire.loop import Loop


def measured(evidence: TrialEvidence) -> Cell:
    """Measure evidence as a trial does."""
    return measure_cell(evidence, evidence.held)


def steady(streams: int = 2, gap_ns: int = 10 * MS, tokens: int | None = 1) -> list[Part]:
    """Return streams that produce evenly from before the window to after it."""
    return [Part(stream, every(gap_ns), tokens) for stream in range(streams)]


def test_a_steady_cell() -> None:
    """Two streams of a token each ten milliseconds are 200 tokens a second, 100 for each user."""
    cell = measured(cell_evidence(steady()))
    assert cell.tokens is not None and (cell.tokens.tokens, cell.tokens.estimated) == (800, False)
    assert cell.rate == 200.0
    assert cell.window is not None and cell.window.length_ns == WINDOW
    assert (cell.itl.n, cell.itl.p50, cell.itl.max) == (2, 10 * MS, 10 * MS)
    assert cell.per_user.p50 == pytest.approx(100.0) and cell.per_user.unit == "1/s"
    assert cell.chunk_gaps.p50 == cell.chunk_gaps.max == 10 * MS and cell.chunk_gaps.censored == 0
    assert cell.tokens_per_chunk == 1.0
    assert (cell.in_flight, cell.completed, cell.restarts) == (2.0, 0, 0)
    assert (cell.ready_ns, cell.ready_deadline_ns) == (9 * S, 60 * S)


def test_the_window_takes_its_beginning_and_not_its_end() -> None:
    """What arrives at the very begin counts, what arrives at the very end does not."""
    times = [BEGIN - 1, BEGIN, BEGIN + S, END - 1, END]
    cell = measured(cell_evidence([Part(0, times, [100, 1, 2, 4, 100])], streams=1))
    assert cell.tokens is not None and cell.tokens.tokens == 7
    assert cell.rate == 7 / 4


def test_the_window_is_the_denominator() -> None:
    """A stream that stops halfway is divided by the whole window, not by the time to its last token."""
    whole = Part(0, every(10 * MS))
    half = Part(1, every(10 * MS, end_ns=BEGIN + 2 * S), outcome="ok", end_ns=BEGIN + 2 * S)
    cell = measured(cell_evidence([whole, half]))
    assert cell.rate == (400 + 200) / 4
    assert cell.in_flight == pytest.approx(1.5)


def test_a_silent_stream_lowers_the_rate_and_stays_in_the_percentiles() -> None:
    """A stream of which nothing arrived in the window halves the rate, stands in ITL and gaps at its worst, and as a
    user with nothing."""
    silent = Part(1, every(10 * MS, end_ns=BEGIN))
    cell = measured(cell_evidence([Part(0, every(10 * MS)), silent]))
    assert cell.rate == 100.0
    assert (cell.itl.n, cell.itl.censored, cell.itl.max) == (2, 1, None)
    assert (cell.per_user.n, cell.per_user.min) == (2, 0.0)
    assert cell.chunk_gaps.censored == 1


def test_a_window_without_a_token_has_the_rate_zero() -> None:
    """Nothing arrived, and that is a number: zero is kept."""
    cell = measured(cell_evidence([Part(0, every(10 * MS, end_ns=BEGIN))], streams=1))
    assert cell.rate == 0.0 and cell.tokens is not None and cell.tokens.tokens == 0
    assert cell.tokens_per_chunk is None and cell.per_user.max == 0.0


def test_several_tokens_a_chunk_are_not_chunks() -> None:
    """With three tokens a chunk ITL is a third of the gap between chunks."""
    cell = measured(cell_evidence(steady(gap_ns=30 * MS, tokens=3)))
    assert cell.itl.p50 == pytest.approx(10 * MS)
    assert cell.chunk_gaps.p50 == 30 * MS and cell.tokens_per_chunk == 3.0


def test_latency_is_only_of_what_arrived_in_the_window() -> None:
    """A slow ramp before the window leaves no trace in its ITL and gaps."""
    slow, quick = every(500 * MS, end_ns=BEGIN), every(10 * MS, BEGIN)
    cell = measured(cell_evidence([Part(0, [*slow, *quick])], streams=1))
    assert cell.itl.p50 == 10 * MS
    assert cell.chunk_gaps.p99 == 10 * MS


def test_without_counts_tokens_are_estimated_by_the_ended_requests() -> None:
    """Where only ended requests have a count, their tokens a chunk are what a chunk of a cut one holds, in the rate
    and in ITL alike."""
    ended = Part(
        0,
        every(40 * MS, end_ns=BEGIN + 2 * S),
        None,
        outcome="ok",
        end_ns=BEGIN + 2 * S,
        output_tokens=4 * len(every(40 * MS, end_ns=BEGIN + 2 * S)),
        output_tokens_source="usage",
    )
    cell = measured(cell_evidence([ended, Part(1, every(40 * MS), None)]))
    assert cell.tokens is not None and cell.tokens.estimated
    assert cell.tokens.tokens == pytest.approx(4 * 50 + 4 * 100)
    assert cell.itl.p50 == pytest.approx(10 * MS, rel=1e-3)
    assert cell.tokens_per_chunk is None


def test_totals_of_cut_requests() -> None:
    """A count of the server's stands; without any a chunk is a token; no event is no token."""
    parts = [Part(0, every(S), 2), Part(1, every(S), None), Part(2, [], None)]
    totals = token_totals([part.row for part in parts])
    assert totals[0] == 2 * len(every(S)) and totals[1] == 2 * len(every(S)) and totals[2] == 0
    assert token_totals([parts[1].row]) == {1: len(every(S))}


def test_streams_that_start_again() -> None:
    """A stream whose requests last a second has each in its place: ended ones well, tokens of all, restarts counted."""
    parts = []
    for number in range(14):
        begin = S + number * S
        whole = number < 13
        parts.append(
            Part(
                0,
                every(10 * MS, begin + 100 * MS, begin + S if whole else END),
                index=number * 2,
                sent_ns=begin,
                phase="opening" if number == 0 else "steady",
                outcome="ok" if whole else "cancelled",
                end_ns=begin + S if whole else END + MS,
                cached_tokens=0 if number == 0 else 992,
            )
        )
    cell = measured(cell_evidence([*parts, Part(1, every(10 * MS))]))
    assert cell.tokens is not None and cell.tokens.tokens == 4 * 90 + 400
    assert (cell.restarts, cell.completed) == (4, 4)
    assert cell.prefill_inside is False
    assert cell.e2e_per_user.p50 == pytest.approx(90 / 0.99)
    assert cell.itl.n == 5 and cell.itl.max == 10 * MS
    assert cell.ttft.n == 2 and cell.in_flight == 2.0


@pytest.mark.parametrize(
    ("cached", "caching", "inside"), [(0, True, True), (992, False, False), (None, True, False)]
)
def test_prefill_inside_the_window(cached: int | None, caching: bool, inside: bool) -> None:
    """A restart that was computed anew is said; by usage first, else by whether the server has a prefix cache."""
    first = Part(0, every(10 * MS, end_ns=BEGIN + S), outcome="ok", end_ns=BEGIN + S)
    again = Part(
        0, every(10 * MS, BEGIN + 2 * S), index=1, sent_ns=BEGIN + S, phase="steady", cached_tokens=cached
    )
    known = identity(engine="vllm", block_size_tokens=16, prefix_caching=caching)
    cell = measured(cell_evidence([first, again], streams=1, identity_before=known))
    assert cell.restarts == 1 and cell.prefill_inside is inside


def test_the_ramps_ttft_is_apart_and_counts_who_never_produced() -> None:
    """TTFT is of the first requests alone; one that was cut before its first output is counted, and bounds it."""
    never = Part(1, [], sent_ns=S)
    cell = measured(cell_evidence([Part(0, every(10 * MS), sent_ns=S), never], held=held(2)))
    assert (cell.ttft.n, cell.ttft.censored, cell.ttft.min, cell.ttft.p99) == (2, 1, S, None)
    assert (cell.second_output.n, cell.second_output.min) == (2, S + 10 * MS)


def test_an_answer_of_one_chunk_has_no_second_token() -> None:
    """A whole answer without a second output is no member of that sample; a cut one is censored."""
    one = Part(0, [2 * S], outcome="ok", end_ns=2 * S)
    assert measured(cell_evidence([one, Part(1, [2 * S])])).second_output.n == 1


def test_gauges_are_of_the_samples_in_the_window() -> None:
    """Fewer and more than ours are counted in the window only, failed scrapes are unknown, and a queue has a share."""
    before = [sample(t, 9, 5) for t in range(S, BEGIN, S)]
    inside = [
        sample(BEGIN, 2),
        sample(BEGIN + S, 1, 1, kv_usage_mean=0.5),
        sample(BEGIN + 2 * S, 3, kv_usage_mean=0.7),
        structs.replace(sample(BEGIN + 3 * S, None, None), error="timed out"),
    ]
    cell = measured(cell_evidence(steady(), samples=[*before, *inside, sample(END, 0)]))
    assert (cell.samples, cell.below_samples, cell.extra_samples, cell.scrape_failures) == (3, 1, 1, 1)
    assert cell.running is not None and (cell.running.n, cell.running.mean, cell.running.max) == (3, 2.0, 3)
    assert cell.kv_usage is not None and cell.kv_usage.mean == pytest.approx(0.6)
    assert cell.queue_share == pytest.approx(1 / 3)


def taking_turns(turn_ns: int) -> list[Part]:
    """Return four streams of which two run for a turn while the other two wait for theirs."""
    parts = []
    for stream in range(4):
        for number in range(-(-(END - S) // (2 * turn_ns))):
            turn = S + (2 * number + stream % 2) * turn_ns
            cut = turn + turn_ns > END
            parts.append(
                Part(
                    stream,
                    every(10 * MS, turn + 10 * MS, min(turn + turn_ns, END)),
                    index=stream + 4 * number,
                    sent_ns=turn - turn_ns if number else S,
                    phase="steady" if number else "opening",
                    outcome="cancelled" if cut else "ok",
                    end_ns=END if cut else turn + turn_ns,
                )
            )
    return [part for part in parts if part.timeline.times_ns]


def test_a_server_with_a_lower_running_limit_is_seen() -> None:
    """Four streams of which two wait their turn are never four, however often they start again: long turns show in
    each look, short ones on average."""
    slow = measured(cell_evidence(taking_turns(5 * S), streams=4, samples=samples(2, 2)))
    assert slow.below_samples > 0.5 * slow.samples
    quick = measured(cell_evidence(taking_turns(S // 2), streams=4, samples=samples(2, 2)))
    assert quick.running is not None and quick.waiting is not None
    assert (quick.running.mean, quick.waiting.mean) == (2.0, 2.0)


def test_the_counter_is_compared_between_samples() -> None:
    """The server's tokens between two samples are held against ours between the same moments, not the window's."""
    counting = [sample(BEGIN + at * S, output_tokens_total=1000 + 200 * at) for at in range(4)]
    cell = measured(cell_evidence(steady(), samples=counting))
    assert cell.counter is not None and cell.counter.difference == 0.0
    assert cell.counter.server_tokens == cell.counter.our_tokens
    off = [
        structs.replace(each, output_tokens_total=2 * (each.output_tokens_total or 0)) for each in counting
    ]
    doubled = measured(cell_evidence(steady(), samples=off)).counter
    assert doubled is not None and doubled.difference == pytest.approx(0.5)
    assert measured(cell_evidence(steady())).counter is None


def test_a_counter_that_stands_still_has_no_ratio() -> None:
    """A server that counts only at the end of requests grew by nothing: the difference is unknown."""
    still = [sample(BEGIN + at * S, output_tokens_total=7) for at in range(4)]
    counter = measured(cell_evidence(steady(), samples=still)).counter
    assert counter is not None and counter.server_tokens == 0 and counter.difference is None


def test_speculation_is_a_growth_of_counters() -> None:
    """Acceptance is accepted by drafted tokens between two samples in the window; an unknown counter is null."""
    drafting = [
        sample(
            BEGIN + at * S,
            spec_drafts_total=10 * at,
            spec_draft_tokens_total=50 + 30 * at,
            spec_accepted_tokens_total=7 + 12 * at,
        )
        for at in range(4)
    ]
    cell = measured(cell_evidence(steady(), samples=drafting))
    assert cell.speculation is not None and cell.speculation.acceptance == pytest.approx(0.4)
    assert (cell.speculation.drafts, cell.speculation.draft_tokens) == (30, 90)
    assert measured(cell_evidence(steady())).speculation is None
    none = [
        sample(BEGIN + at * S, spec_draft_tokens_total=5, spec_accepted_tokens_total=3) for at in range(4)
    ]
    idle = measured(cell_evidence(steady(), samples=none)).speculation
    assert idle is not None and idle.acceptance is None and idle.draft_tokens == 0


def test_loops_are_counted_by_stream() -> None:
    """A stream that looped in several requests is one stream, and one too short to judge is not judged."""
    loop = Loop(Channel.content, 10, 5000)
    parts = [
        Part(0, every(10 * MS), loop=loop, longest_channel_chars=9000),
        Part(0, every(10 * MS), index=2, phase="steady", loop=loop, longest_channel_chars=9000),
        Part(1, every(10 * MS), longest_channel_chars=100),
    ]
    cell = measured(cell_evidence(parts))
    assert (cell.judged_streams, cell.looped_streams) == (1, 1)


@pytest.mark.parametrize("ended_ns", [BEGIN + S, END - 1])
def test_a_window_that_was_not_whole_is_none(ended_ns: int) -> None:
    """Where the trial ended before the window was over, or no window was decided on, there is no rate."""
    for without in (
        cell_evidence(steady(), ended_ns=ended_ns),
        cell_evidence(steady(), held=held(2, begin_ns=None, end_ns=None)),
        cell_evidence(steady(), held=None),
    ):
        cell = measured(without)
        assert cell.window is None and cell.rate is None and cell.tokens is None and cell.in_flight is None
        assert cell.itl.n == cell.per_user.n == cell.chunk_gaps.n == cell.samples == 0
        assert cell.ttft.n == 2


streams_of_times = st.lists(
    st.lists(st.integers(2 * S, END + S), min_size=0, max_size=30, unique=True).map(sorted),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(times=streams_of_times, counted=st.booleans(), by_ns=st.integers(-S, 10**18))
def test_invariants_of_every_cell(times: list[list[int]], counted: bool, by_ns: int) -> None:
    """Tokens in the window are never more than all; rate x window is tokens; every stream is in the percentiles or
    has a single token; and a clock that shows another time changes no number."""
    parts = [Part(stream, each, 2 if counted else None) for stream, each in enumerate(times)]
    given_evidence = cell_evidence(parts, streams=len(parts))
    cell = measured(given_evidence)
    assert cell.tokens is not None and cell.rate is not None
    inside = [[t for t in each if BEGIN <= t < END] for each in times]
    assert cell.tokens.tokens == (2 if counted else 1) * sum(map(len, inside))
    assert cell.tokens.tokens <= sum(part.row.output_tokens or 0 for part in parts)
    assert cell.rate * WINDOW / S == pytest.approx(cell.tokens.tokens)
    assert cell.itl.censored == sum(not each for each in inside)
    assert cell.per_user.n == cell.itl.n
    moved = measured(shifted(given_evidence, by_ns))
    assert moved.window is not None and moved.window.begin_ns == BEGIN + by_ns
    assert structs.replace(moved, window=cell.window) == cell


@given(st.permutations(range(4)))
def test_the_order_of_evidence_is_none_of_its_meaning(order: list[int]) -> None:
    """Timelines in any order give the same cell."""
    given_evidence = cell_evidence(steady(4), streams=4)
    lines = list(given_evidence.timelines)
    moved = structs.replace(given_evidence, timelines=[lines[at] for at in order])
    assert measured(moved) == measured(given_evidence)
