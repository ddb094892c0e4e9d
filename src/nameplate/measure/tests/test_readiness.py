"""When held streams are ready: all have produced, the server runs exactly ours, and that has held for a while."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nameplate.engines.state import ServerSample
from nameplate.measure.readiness import (
    RESTART_SLACK_NS,
    RESTART_WAIT_NS,
    Gate,
    Restarts,
    below,
    full,
    told,
)
from nameplate.measure.tests.held_cells import MS, S, sample
from nameplate.measure.tests.trials import ok_row

GATE = Gate(streams=4, stable_ns=3 * S)
NOW = 100 * S
EARLY = [80 * S] * 4
NONE = Restarts([])


def looks(
    *running: int | None, waiting: int | None = 0, until_ns: int = NOW, step_ns: int = S // 2
) -> list[ServerSample]:
    """Return looks at the server half a second apart, the last one now; None is a failed scrape."""
    first = until_ns - (len(running) - 1) * step_ns
    return [
        ServerSample(t_ns=first + at * step_ns, error="timed out")
        if count is None
        else sample(first + at * step_ns, count, waiting)
        for at, count in enumerate(running)
    ]


def ready(
    samples: Sequence[ServerSample],
    firsts: Sequence[int] = EARLY,
    restarts: Restarts = NONE,
    tells: bool = True,
) -> bool:
    """Ask the gate now."""
    return GATE.ready(NOW, firsts, samples, restarts, tells)


def test_streams_that_run_and_have_produced_are_ready() -> None:
    """All four have produced and the server ran exactly four with none waiting for three seconds."""
    assert ready(looks(*[4] * 7))


@pytest.mark.parametrize("odd", [3, 5, 0])
@pytest.mark.parametrize("at", range(7))
def test_one_odd_look_within_the_stable_time_is_enough(odd: int, at: int) -> None:
    """One look at fewer or more than ours within the last three seconds, and they are not ready."""
    running = [4] * 7
    running[at] = odd
    assert not ready(looks(*running))


def test_a_look_before_the_stable_time_is_forgotten() -> None:
    """What was before the last three seconds does not count."""
    assert ready(looks(9, 0, 3, *[4] * 7))


def test_one_that_waits_is_one_too_many() -> None:
    """With a request waiting the server does not run all of ours, or has somebody else's."""
    assert not ready(looks(*[4] * 7, waiting=1))


def test_every_stream_must_have_produced_for_the_whole_stable_time() -> None:
    """Three streams are not four, and a first output two seconds ago has not been stable for three."""
    assert not ready(looks(*[4] * 7), EARLY[:3])
    assert not ready(looks(*[4] * 7), [*EARLY[:3], NOW - 2 * S])
    assert ready(looks(*[4] * 7), [*EARLY[:3], NOW - 3 * S])


def test_failed_scrapes_are_unknown_and_not_zero() -> None:
    """Failed looks neither hold readiness up nor give it: what is left must span half of the stable time."""
    assert ready(looks(4, None, 4, None, None, 4, 4))
    assert not ready(looks(*[None] * 7))
    assert not ready(looks(*[None] * 6, 4))
    assert not ready(looks(*[None] * 5, 4, 4))


def test_slow_scrapes_still_make_ready() -> None:
    """Looks that come only every 2.9 seconds are observation enough, every 3.1 seconds none."""
    assert ready(looks(4, 4, 4, step_ns=2900 * MS))
    assert not ready(looks(4, 4, 4, step_ns=3100 * MS))


def test_what_the_last_look_before_the_stable_time_showed_held_when_it_began() -> None:
    """Where no look fell on the beginning of the stable time, the one before it says what was then; without one it is
    not known."""
    late = NOW - 100 * MS
    assert ready(looks(*[4] * 7, until_ns=late))
    assert not ready(looks(3, *[4] * 6, until_ns=late))
    assert not ready(looks(*[4] * 6, until_ns=late))


def test_looks_at_the_future_do_not_count() -> None:
    """Samples later than now, of a file read later, change nothing."""
    assert ready([*looks(*[4] * 7), sample(NOW + 1, 9)])


def test_a_server_that_tells_nothing_is_judged_by_output_alone() -> None:
    """Without gauges every stream's output for the stable time is all there is to go by."""
    assert ready([], tells=False)
    assert not ready([], EARLY[:3], tells=False)
    assert not ready([], tells=True)


def test_a_stream_that_starts_again_may_be_missing() -> None:
    """While one of four starts again, three running are full, and one that waits for a moment is no stranger."""
    restart = Restarts([(2, NOW - 1100 * MS, NOW - 900 * MS)])
    missing = [4, 4, 4, 4, 3, 4, 4]
    assert ready(looks(*missing), restarts=restart)
    assert not ready(looks(*missing))
    assert not ready(looks(4, 4, 3, 4, 4, 4, 4), restarts=restart)
    assert not ready(looks(4, 4, 4, 4, 2, 4, 4), restarts=restart)


@pytest.mark.parametrize("edge", [-1, 1])
def test_a_restart_has_slack_at_both_ends(edge: int) -> None:
    """A quarter of a second before the send and after the first output belong to a restart, and no more."""
    restarts = Restarts([(0, 50 * S, 51 * S)])
    outside = 50 * S - RESTART_SLACK_NS - 1 if edge < 0 else 51 * S + RESTART_SLACK_NS + 1
    assert restarts.at(sample(outside)) == 0
    assert restarts.at(sample(outside - edge)) == 1


def test_a_stream_that_is_kept_waiting_is_not_starting() -> None:
    """A restart that is queued for longer than a moment may not excuse a server that runs fewer than ours: with a
    running limit of two, four streams that take turns are never full."""
    queued = Restarts([(stream, NOW - 20 * S, NOW + S) for stream in (2, 3)])
    look = sample(NOW, running=2, waiting=2)
    assert queued.at(look) == 2 and queued.lately(look) == 0
    assert below(look, 4, queued) and not full(look, 4, queued)
    fresh = Restarts([(stream, NOW - RESTART_WAIT_NS, NOW + S) for stream in (2, 3)])
    assert not below(look, 4, fresh) and full(look, 4, fresh)


def test_a_restart_that_is_prefilled_may_take_its_time() -> None:
    """Without a prefix cache a stream that starts again is prefilled for seconds, and some engines do not count it as
    running meanwhile: none waits, so none is kept waiting."""
    prefilled = Restarts([(3, NOW - 8 * S, NOW + S)])
    assert full(sample(NOW, running=3, waiting=0), 4, prefilled)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 10 * S), st.integers(0, 3 * S)), min_size=1, max_size=60
    ),
    st.integers(0, 12 * S),
    st.integers(0, 2 * S),
)
def test_a_stream_counts_once_however_often_it_starts_again(
    starts: list[tuple[int, int, int]], t_ns: int, scrape_ns: int
) -> None:
    """With short answers a stream's restarts overlap by their slack, and within a slow scrape it may start again
    several times, and still it is one stream."""
    intervals = [(stream, begin, begin + length) for stream, begin, length in starts]
    slack, restarts = RESTART_SLACK_NS, Restarts(intervals)
    look, since_ns = sample(t_ns, scrape_ns=scrape_ns), t_ns - scrape_ns
    inside = {stream for stream, begin, end in intervals if begin - slack <= t_ns and since_ns <= end + slack}
    lately = {
        stream
        for stream, begin, end in intervals
        if begin - slack <= t_ns and since_ns <= min(end, begin + RESTART_WAIT_NS) + slack
    }
    assert restarts.at(look) == len(inside) and restarts.lately(look) == len(lately)


def test_a_slow_scrape_that_spans_two_restarts_of_a_stream_counts_it_once() -> None:
    """A page that took two seconds may show any moment of them, and a stream that started twice meanwhile is one."""
    restarts = Restarts([(0, 10 * S, 10 * S), (0, 11 * S, 11 * S), (1, 11 * S, 11 * S)])
    assert restarts.at(sample(11 * S, scrape_ns=2 * S)) == 2


def test_restarts_are_the_later_requests_of_streams() -> None:
    """Of rows, only requests after a stream's first count, from the send to the first output, the end, or the end of
    the trial."""
    rows = [
        ok_row(0, 10 * S, phase="opening", slot=0),
        ok_row(2, 20 * S, slot=0, ttft_ns=S),
        ok_row(3, 30 * S, slot=1, first_output_ns=None, end_ns=32 * S),
        ok_row(4, 40 * S, slot=0, first_output_ns=None, end_ns=None),
        msgspec.structs.replace(ok_row(5, 50 * S, slot=2), sent_ns=None),
        ok_row(6, 60 * S, phase="arrival", slot=9),
    ]
    restarts = Restarts.of(rows, 45 * S)
    seconds = [t for t in range(70) if restarts.at(sample(t * S))]
    assert seconds == [20, 21, 30, 31, 32, 40, 41, 42, 43, 44, 45]


def test_a_crowd_is_more_than_ours_for_three_stable_times() -> None:
    """Only when more than ours ran in every look of nine seconds, with all streams producing, will it not get
    better."""
    crowd = looks(*[5] * 20)
    assert GATE.crowded(NOW, EARLY, crowd)
    assert not GATE.crowded(NOW, EARLY[:3], crowd)
    assert not GATE.crowded(NOW, [NOW - 8 * S] * 4, crowd)
    assert not GATE.crowded(NOW, EARLY, [*crowd[:-1], sample(NOW, 4)])
    assert not GATE.crowded(NOW, EARLY, looks(*[5] * 5))
    assert not GATE.crowded(NOW, EARLY, [])


def test_a_look_says_what_was_seen() -> None:
    """The last look tells how many produced and the server's last word; a failed scrape is not its last word."""
    told_twice = [sample(0, 4, 1), sample(1, 4, 1, kv_usage_mean=0.93), ServerSample(t_ns=2, error="gone")]
    said = "2 of 4 streams had produced output; the server ran 4 and kept 1 waiting, its KV pool 93% full"
    assert str(GATE.look(2, [1, 2], told_twice)) == said
    once = str(GATE.look(2, [1, 2], told_twice[1:]))
    assert once == f"{said} when it last told; 1 of its samples could be read in the stable time"
    assert (
        str(GATE.look(2, [], []))
        == "0 of 4 streams had produced output; the server does not tell what it runs"
    )
    assert "kept an unknown number waiting" in str(GATE.look(2, [], [sample(1, 4, None)]))


def test_only_samples_that_tell_count_as_told() -> None:
    """A page without the gauge is no look, and neither is a failed one; a zero is a look."""
    kept = told([sample(1, None), ServerSample(t_ns=2, error="x"), sample(3, 0)])
    assert [each.t_ns for each in kept] == [3]
